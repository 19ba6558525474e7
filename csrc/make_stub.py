"""The stub of the C core, fastprof/core/_c.pyi: the declarations given to cffi, as types for mypy."""

from keyword import iskeyword

from cffi import model

HEAD = """\
# Made by csrc/build_core.py from the headers under csrc/, which document everything.
# mypy: disable-error-code="overload-overlap"
# A string that is no literal below is the type of an array or pointer of numbers.
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, Never, Protocol, Self, SupportsInt, TypeVar, overload, type_check_only

from _typeshed import ReadableBuffer

_T = TypeVar("_T")
_C = TypeVar("_C", bound="CData")

@type_check_only
class CData: ...

# A pointer to a struct, its memory, and an array of structs are used alike.
@type_check_only
class Struct(CData):
    def __getitem__(self, i: int | slice, /) -> Self: ...
    def __setitem__(self, i: int, value: Self | dict[str, object] | tuple[object, ...], /) -> None: ...
    def __add__(self, n: int, /) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Self]: ...

# A pointer or array whose elements are not structs.
@type_check_only
class Pointer(CData, Generic[_T]):
    @overload
    def __getitem__(self, i: int, /) -> _T: ...
    @overload
    def __getitem__(self, i: slice, /) -> Pointer[_T]: ...
    @overload
    def __setitem__(self, i: int, value: _T, /) -> None: ...
    @overload
    def __setitem__(self, i: slice, value: Sequence[_T] | Pointer[_T], /) -> None: ...
    def __add__(self, n: int, /) -> Pointer[_T]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...

@type_check_only
class Buffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int | slice, /) -> bytes: ...
    def __setitem__(self, i: int | slice, value: ReadableBuffer, /) -> None: ...

@type_check_only
class CType:
    cname: str
    item: CType  # of a pointer or array
    fields: Sequence[tuple[str, object]]  # of a struct: names and details

@type_check_only
class Allocator(Protocol):
    def __call__(self, cdecl: str, n: int, /) -> Pointer[int]: ...

@type_check_only
class FFI:
    NULL: Never  # a null pointer of every type
    error: type[Exception]
    def addressof(self, cdata: _C, /) -> _C: ...
    def buffer(self, cdata: CData, size: int = ..., /) -> Buffer: ...
    @overload
    def from_buffer(self, source: ReadableBuffer, /) -> Pointer[int]: ...
    @overload
    def from_buffer(self, cdecl: str, source: ReadableBuffer, /) -> Pointer[int]: ...
    def gc(self, cdata: _T, destructor: Callable[[_T], None], size: int = ..., /) -> _T: ...
    def memmove(self, to: CData | ReadableBuffer, source: CData | ReadableBuffer, n: int, /) -> None: ...
    def sizeof(self, cdata: CData | CType | str, /) -> int: ...
    def string(self, cdata: Pointer[int], maxlen: int = ..., /) -> bytes: ...
    def unpack(self, cdata: Pointer[_T], length: int, /) -> list[_T]: ...
    def typeof(self, cdata: CData | str, /) -> CType: ...
    def new_allocator(self, *, should_clear_after_alloc: bool) -> Allocator: ...
"""
NEW = """\
    @overload
    def new(self, cdecl: Literal[{names}], init: object = ..., /) -> {made}: ...
"""
CAST = """\
    @overload
    def cast(self, cdecl: Literal[{names}], value: object, /) -> {made}: ...
"""
OTHER = """\
    @overload
    def {name}(self, cdecl: str, {value}, /) -> Pointer[int]: ...
"""
INTS = ("int", "size_t", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def of_type(c: object) -> str:
    """The type of a field, or of what is returned."""
    if isinstance(c, model.VoidType):
        return "None"
    if isinstance(c, model.EnumType):
        return "int"
    if isinstance(c, model.PrimitiveType):
        return "float" if c.name in ("double", "float") else "int"
    if isinstance(c, (model.StructType, model.UnionType)):
        return c.name
    if isinstance(c, (model.PointerType, model.ArrayType)):
        to = c.totype if isinstance(c, model.PointerType) else c.item
        if isinstance(to, (model.VoidType, model.RawFunctionType)):
            return "CData"
        return of_type(to) if isinstance(to, model.StructType) else f"Pointer[{of_type(to)}]"
    return "CData"  # a function


def of_argument(c: object) -> str:
    """cffi makes arrays of sequences, and of bytes."""
    name = of_type(c)
    if name == "CData":
        return "CData | bytes"
    return f"{name} | Sequence[{name[8:-1]}]" if name.startswith("Pointer[") else name


def stub(declarations: dict[str, tuple[object, int]]) -> str:
    """`declarations`: those of a cffi parser."""
    structs, functions, constants = [], [], []
    for key, (c, _) in sorted(declarations.items()):
        kind, name = key.split(" ", 1)
        if kind == "struct":
            fields = zip(c.fldnames or (), c.fldtypes or (), strict=True)
            body = "".join(f"\n    {field}: {of_type(type_)}" for field, type_ in fields if not iskeyword(field))
            structs.append((name, f"@type_check_only\nclass {name}(Struct):{body or ' ...'}\n"))
        elif kind == "function":
            arguments = [f"a{i}: {of_argument(each)}" for i, each in enumerate(c.args)]
            head = ", ".join(["self", *arguments, "/"])
            functions.append(f"    def {name}({head}) -> {of_type(c.result)}: ...\n")
        elif isinstance(c, model.EnumType):
            constants += [f"    {each}: int\n" for each in c.enumerators]
    made = [((f"struct {name} *", f"struct {name}[]"), name) for name, _ in structs]
    made += [([f"{name}{end}" for name in INTS for end in (" *", "[]")], "Pointer[int]")]
    made += [(("double *", "double[]"), "Pointer[float]")]
    news = [NEW.format(names=", ".join(f'"{each}"' for each in names), made=type_) for names, type_ in made]
    casts = [CAST.format(names=f'"{names[0]}"', made=type_) for names, type_ in made[: len(structs)]]
    casts += [CAST.format(names='"uintptr_t"', made="SupportsInt")]
    casts += [CAST.format(names=", ".join(f'"{name} *"' for name in INTS), made="Pointer[int]")]
    methods = [
        *news,
        OTHER.format(name="new", value="init: object = ..."),
        *casts,
        OTHER.format(name="cast", value="value: object"),
    ]
    classes = "\n".join(text for _, text in structs)
    library = "\n@type_check_only\nclass Lib:\n" + "".join(constants + functions)
    return HEAD + "".join(methods) + "\n" + classes + library + "\nffi: FFI\nlib: Lib\n"
