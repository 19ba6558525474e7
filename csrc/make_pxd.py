"""Declares the C core to Cython, from the headers themselves: what .pyx files may cimport.

It takes the functions, structs and enums whose types Cython can have.  Of a struct it leaves out other fields, because
C alone decides how it is laid out.
"""

import re
from keyword import iskeyword
from pathlib import Path

HERE = Path(__file__).parent
MADE = {
    "fastprof/core/fp.pxd": [
        f"core/{name}.h" for name in ("fp", "array", "buf", "digits", "model", "batch", "key_sums", "sort")
    ],
    "fastprof/formats/callgrind/c.pxd": [f"callgrind/{name}.h" for name in ("lines", "rows", "numbers", "write")],
    "fastprof/formats/folded/c.pxd": ["folded/stack_memo.h"],
}
HEAD = """\
# Made by csrc/make_pxd.py from the headers under csrc/, which document everything.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
"""
PREFETCH = '''
cdef extern from *:
    """
    #define fp_prefetch(p) __builtin_prefetch(p)
    """
    void fp_prefetch(const void *p) nogil
'''
SCALARS = {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
SCALARS |= {"void", "char", "int", "unsigned", "size_t", "double", "float", "uintptr_t"}

NOT_CYTHON = re.compile(
    r"/\*.*?\*/|^#(?:[^\n]*\\\n)*[^\n]*|\b(?:static inline |FP_INLINE |struct (?!\w* ?\{))", re.DOTALL | re.MULTILINE
)
ITEM = re.compile(
    r"(struct|enum) ?(\w*) \{(.*?)\};|(\w[\w ]*[ *])(fp_\w+)\(([^(){};]*)\)(?:;|\s\{.*?^\})", re.DOTALL | re.MULTILINE
)
DECLARED = re.compile(r"\s*((?:const )?)(\w+) (\**)(\w+)(\[\w[^]]*\])?(?: : \d+)?")


def as_cython(declared: str, known: set[str]) -> tuple[str, str]:
    """The type and the name of a field or parameter; "" if Cython cannot have it.  An array becomes a pointer."""
    found = DECLARED.fullmatch(re.sub(r"enum \w+", "int", declared))
    if not found or found[2] not in known or (found[2] == "void" and not found[3]) or iskeyword(found[4]):
        return "", ""
    return f"{found[1]}{found[2]} {found[3]}{'*' * bool(found[5])}".rstrip(), found[4]


def fields(body: str, known: set[str]) -> str:
    made = [""]
    for field in body.split(";") if "{" not in body else ():
        first, *more = field.split(",")
        of = re.match(r"\s*(?:const )?\w+ ", first)
        made += [" ".join(as_cython(each, known)) for each in (first, *(of[0] + each.strip() for each in more if of))]
    return "\n        ".join(["", *filter(str.strip, made)]) if any(map(str.strip, made)) else " pass"


def declarations(header: str, known: set[str]) -> str:
    found = ITEM.findall(NOT_CYTHON.sub("", (HERE / header).read_text()))
    made = f'\n\ncdef extern from "{header}" nogil:\n'
    for kind, name, body, result, function, parameters in found:
        if kind == "enum":
            made += "    enum:" + "".join(f"\n        {each}" for each in re.findall(r"(?:^|,)\s*(\w+)", body)) + "\n"
        elif kind:
            known.add(name)
            made += f"    struct {name}:{fields(body, known)}\n"
        else:
            types = [as_cython(each, known)[0] for each in parameters.split(",")] if parameters != "void" else []
            result = "void" if result == "void " else as_cython(f"{result}_", known)[0]
            if result and all(types) and function not in known:  # C may name a struct like a function
                made += f"    {result} {function}({', '.join(types)})\n"
    return made


core = {*SCALARS}
for name, headers in MADE.items():
    is_core = name.endswith("/fp.pxd")
    known = core if is_core else {*core}
    text = HEAD + (PREFETCH if is_core else "\nfrom fastprof.core.fp cimport *\n")
    text += "".join(declarations(header, known) for header in headers)
    path = HERE.parent / name
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
