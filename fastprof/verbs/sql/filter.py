"""What a query reads: the columns and rows of tables, and the profiles.

For `select sum(self) from spans where profile like 'web%' and thread = 7 and self > 3` these are the columns `self`,
`thread` and `profile`, the rows of thread 7, and the profiles that meet `profile like 'web%'`, which is evaluated
before any is opened.  DuckDB applies all conditions anyway, so a condition that is not understood is only slower.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import ceil, floor, isfinite

from fastprof.core._typing import Any
from fastprof.core.engine import Scan
from fastprof.core.options import INT64, UINT64

# Functions whose value is the same each time: a condition on other ones is left to DuckDB alone.
_FUNCTIONS = {"~~", "!~~", "~~*", "!~~*", "~~~", "like_escape", "ilike_escape", "not_like_escape", "not_ilike_escape"}
_FUNCTIONS |= {"regexp_matches", "regexp_full_match", "starts_with", "prefix", "suffix", "ends_with", "contains"}
_FUNCTIONS |= {"lower", "upper", "||", "split_part", "regexp_extract", "length", "strlen", "substring", "substr"}
_WORDS = {
    "class",
    "type",
    "kind",
    "function_name",
    "qualified_name",
    "aggregate_handling",
    "null_order",
    "limit_type",
}  # keys; name no columns
_ANY_TIME = (0, UINT64)
_CLASSES = {"COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "CAST"}
_EXPRESSIONS = _CLASSES | {"CASE", "WINDOW", "SUBQUERY", "LAMBDA", "COLLATE"}
# Functions of FROM that read no table.  Others may name one in a text: query('from samples').
_ROWS_WITHOUT_TABLES = {"range", "generate_series", "unnest", "repeat", "json_each", "json_tree"}
# Items of FROM that read the columns that the query names, and no others
_NAMING = {"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "COLUMN_DATA", "EMPTY", "EMPTY_FROM"}
_MIRRORED = {
    "COMPARE_EQUAL": "COMPARE_EQUAL",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "prefix": str.startswith,
    "starts_with": str.startswith,
    "suffix": str.endswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}


class Conditions:
    """A query, as DuckDB parses it.  What is not understood is no condition.

    For `numbers`, `db` has a table `known.profiles`: the `number` of each profile, and its constants.
    """

    def __init__(self, db: Any, query: str) -> None:
        self._db = db
        self._tree: Any = None
        self._words = {*re.findall(r"\w+", query.casefold())}
        found = self._parsed(query)
        if not found.get("error") and len(found.get("statements", ())) == 1:
            self._tree = found["statements"][0]

    def _parsed(self, query: str) -> Any:
        text = query.replace("'", "''")
        return json.loads(self._db.execute(f"select json_serialize_sql('{text}')").fetchall()[0][0])

    def _result(self, statement: Any) -> list[Any]:
        """The rows that a parsed statement selects."""
        text = json.dumps(statement).replace("'", "''")
        ((sql,),) = self._db.execute(f"select json_deserialize_sql('{text}'::json)").fetchall()
        found: list[Any] = self._db.execute(sql).fetchall()
        return found

    def uses(self, table: str) -> bool:
        """Whether the query may read a table."""
        return any(True for _ in self._uses(self._tree, table)) if self._tree else table in self._words

    def reads(self, table: str) -> bool:
        """Whether the query names a table, and not another one by this name (`with series as ...`)."""
        if table not in self._words:
            return False
        return _reads(self._tree, table, own=True) if self._tree else True

    def numbers(self, table: str, columns: Mapping[str, str], n: int) -> list[int]:
        """The numbers of the profiles that the query may read of a table: all if no use of it is understood.
        `columns`: those that are constant, by their names in it and in `known.profiles`."""
        found: set[int] | None = None
        for conditions in self._uses(self._tree, table):
            numbers = self._matching([one for one in conditions or () if _is_usable(one, columns)], columns)
            if numbers is None:
                return [*range(n)]
            found = numbers | (found or set())
        return [*range(n)] if found is None else sorted(found)

    def scan(self, table: str) -> Scan:
        """The columns and rows of a table that the query may read."""
        if self._tree is None:
            return Scan()
        uses = [self._rows(conditions or []) for conditions in self._uses(self._tree, table)]
        columns = _columns(self._tree)
        if not uses:
            return Scan(columns)
        threads = [use.threads for use in uses if use.threads is not None]
        functions = [use.functions for use in uses if use.functions]
        return Scan(
            columns,
            frozenset[int]().union(*threads) if len(threads) == len(uses) else None,
            (min(use.times[0] for use in uses), max(use.times[1] for use in uses)),
            partial(_any, functions) if len(functions) == len(uses) else None,
        )

    def _rows(self, conditions: list[Any]) -> Scan:
        """The rows of one use of a table."""
        threads, (first, last), tests = None, _ANY_TIME, []
        for condition in _halves(conditions):
            column, kind, values = self._comparison(condition)
            if not values:
                continue
            if column == "thread" and kind == "COMPARE_EQUAL" and all(type(value) is int for value in values):
                threads = frozenset(values) if threads is None else threads & frozenset(values)
            elif column == "ts":
                bounds = [_bounds(kind, value) for value in values]
                first = max(first, min(bound[0] for bound in bounds))
                last = min(last, max(bound[1] for bound in bounds))
            elif column == "function" and (test := _text_test(kind, values)):
                tests.append(test)
        times = (first, last) if first <= last else (1, 0)
        return Scan(None, threads, times, partial(_all, tests) if tests else None)

    def _comparison(self, condition: Any) -> tuple[str, str, list[Any]]:
        """The column, the kind of comparison, and the values with one of which it is compared.  No values if the
        condition is another one."""
        kind, children = str(condition.get("type")), _operands(condition)
        if condition.get("class") == "COMPARISON":
            children = [condition["left"], condition["right"]]
            if _column(children[1]):
                children, kind = children[::-1], _MIRRORED.get(kind, "")
        elif kind == "COMPARE_IN":
            kind = "COMPARE_EQUAL"
        elif condition.get("class") == "FUNCTION":
            kind = str(condition.get("function_name"))
        else:
            return "", "", []
        column = _column(children[0]) if len(children) > 1 else ""
        return column, kind, self._values(children[1:]) if column else []

    def _values(self, nodes: list[Any]) -> list[Any]:
        """The values of constants; none if one is not understood.  A comparison with NULL is never true."""
        from duckdb import Error

        if not all(map(_is_constant, nodes)):
            return []
        made = self._parsed("select 1")
        made["statements"][0]["node"]["select_list"] = nodes
        try:
            (row,) = self._result(made)
        except (Error, ValueError, OverflowError):  # also values that Python cannot hold
            return []
        return [value for value in row if value is not None]

    def _uses(self, tree: Any, table: str) -> Iterator[list[Any] | None]:
        """The conditions on each use of a table; None for a use that is not understood."""
        if isinstance(tree, list):
            for one in tree:
                yield from self._uses(one, table)
        elif isinstance(tree, dict):
            if tree.get("type") == "SELECT_NODE":
                # a sample is taken of the rows before `where`
                names = [] if tree.get("sample") else [*_tables(tree.get("from_table"))]
                for name, alias in names:
                    if name == table:
                        bare = partial(_bare, alias or name)
                        yield [_renamed(one, bare) for one in _all_of(tree.get("where_clause"))]
                if names:
                    tree = tree | {"from_table": _joined_on(tree["from_table"])}
            elif _may_name(tree, table):
                yield None
            for one in tree.values():
                yield from self._uses(one, table)

    def _matching(self, conditions: list[Any], columns: Mapping[str, str]) -> set[int] | None:
        """The profiles that meet all conditions.  Conditions that cannot be evaluated alone are ignored; None if none
        remains."""
        from duckdb import Error

        made = self._parsed("select number from known.profiles where true")

        def known(names: list[str]) -> list[str]:
            return [columns[names[0].casefold()]]

        found: set[int] | None = None
        for condition in conditions:
            made["statements"][0]["node"]["where_clause"] = _renamed(condition, known)
            try:
                numbers = {row[0] for row in self._result(made)}
            except Error:  # host = 7, if a host is not a number
                continue
            found = numbers if found is None else found & numbers
        return found


def _reads(tree: Any, table: str, *, own: bool) -> bool:
    """Whether a query names a table or may do so in a text.  Not `own`: the name is that of a subquery of `with`."""
    if isinstance(tree, list):
        return any(_reads(one, table, own=own) for one in tree)
    if not isinstance(tree, dict):
        return False
    if _may_name(tree, table) and (own or tree.get("type") != "BASE_TABLE"):
        return True
    with_, own_inside = tree.get("cte_map"), own
    for one in with_["map"] if with_ else ():
        if _reads(one["value"], table, own=own_inside):
            return True
        own_inside = own_inside and one["key"].casefold() != table
    return any(_reads(one, table, own=own_inside) for key, one in tree.items() if key != "cte_map")


def _may_name(node: Mapping[str, Any], table: str) -> bool:
    """Whether an item of FROM is this table, or may read it."""
    kind = node.get("type")
    if kind == "TABLE_FUNCTION":
        return node["function"].get("function_name") not in _ROWS_WITHOUT_TABLES
    if kind == "SHOW_REF":
        return not node.get("query")  # `show tables`; `describe samples` has a query
    return kind == "BASE_TABLE" and str(node.get("table_name")).casefold() == table


def _is_usable(condition: Any, columns: Mapping[str, str]) -> bool:
    """Whether a condition is on these columns alone."""
    refs: list[str] = []

    def walk(node: Any) -> bool:
        if isinstance(node, list):
            return all(map(walk, node))
        if not isinstance(node, dict):
            return True
        kind = node.get("class")
        if kind is not None and kind not in _CLASSES:
            return False
        if kind == "COLUMN_REF":
            name, *more = node["column_names"]
            refs.append(name.casefold())
            if more or refs[-1] not in columns:
                return False
        if kind == "FUNCTION" and node.get("function_name") not in _FUNCTIONS:
            return False
        return all(map(walk, node.values()))

    return walk(condition) and bool(refs)


def _tables(node: Any) -> Iterator[tuple[str, str]]:
    """Name and alias of each table that a FROM joins; none if it has anything but tables and inner joins."""
    if not isinstance(node, dict):
        return
    found = [*_leaves(node)]
    if None not in found:
        yield from (one for one in found if one)


def _leaves(node: dict[str, Any]) -> Iterator[tuple[str, str] | None]:
    kind = node.get("type")
    if kind == "BASE_TABLE" and not any(map(node.get, ("schema_name", "catalog_name", "column_name_alias", "sample"))):
        yield str(node["table_name"]).casefold(), str(node.get("alias") or "").casefold()
    elif kind == "JOIN" and _is_inner(node):
        yield from _leaves(node["left"])
        yield from _leaves(node["right"])
    else:
        yield None


def _is_inner(join: dict[str, Any]) -> bool:
    return join.get("join_type") == "INNER" and join.get("ref_type") in ("REGULAR", "CROSS") and not join.get("sample")


def _joined_on(node: dict[str, Any]) -> list[Any]:
    """The conditions of joins of tables, which may have queries in them."""
    return [node.get("condition"), *_joined_on(node["left"]), *_joined_on(node["right"])] if "left" in node else []


def _columns(tree: Any) -> frozenset[str] | None:
    """Case-folded names, with those of all columns that a query reads; None if it also reads columns that it does not
    name, as in `select *`."""
    names, refs, tables = set[str](), set[str](), set[str]()

    def walk(node: Any) -> bool:
        others = _WORDS
        if isinstance(node, list):
            return all(map(walk, node))
        if isinstance(node, str):
            names.add(node.casefold())
        if not isinstance(node, dict):
            return True
        kind, class_ = node.get("type"), node.get("class")
        if class_ is not None and class_ not in _EXPRESSIONS:
            return False
        if class_ == "CONSTANT":
            return True
        if class_ == "COLUMN_REF":
            refs.add(node["column_names"][-1].casefold())
        if class_ is None and "sample" in node and "from_table" not in node:  # an item of FROM
            if kind not in _NAMING or (kind == "TABLE_FUNCTION" and _may_name(node, "")):
                return False
            if kind == "BASE_TABLE":
                tables.update((str(node["table_name"]).casefold(), str(node.get("alias")).casefold()))
                others = _WORDS | {"table_name", "alias"}
                if node.get("column_name_alias"):
                    return False
            if kind == "JOIN" and node.get("ref_type") not in ("REGULAR", "CROSS", "ASOF"):
                return False
        return all(walk(value) for key, value in node.items() if key not in others)

    # the name of a table is a struct of all its columns
    return frozenset(names - {""}) if walk(tree) and not refs & tables else None


def _halves(conditions: list[Any]) -> Iterator[Any]:
    """`between` as two comparisons."""
    for one in conditions:
        if one.get("type") == "COMPARE_BETWEEN":
            half = {"class": "COMPARISON", "left": one["input"]}
            yield half | {"type": "COMPARE_GREATERTHANOREQUALTO", "right": one["lower"]}
            yield half | {"type": "COMPARE_LESSTHANOREQUALTO", "right": one["upper"]}
        else:
            yield one


def _column(node: Any) -> str:
    """The case-folded name of a column without prefix, or nothing."""
    names: list[Any] = node["column_names"] if node.get("class") == "COLUMN_REF" else []
    return str(names[0]).casefold() if len(names) == 1 else ""


def _operands(node: Any) -> list[Any]:
    """DuckDB 2 has named arguments of functions."""
    return node.get("children") or [one["expression"] for one in node.get("arguments", ())]


def _is_constant(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_is_constant, node))
    if not isinstance(node, dict):
        return True
    if node.get("class") not in (None, "CONSTANT", "CAST", "FUNCTION"):
        return False
    if node.get("class") == "FUNCTION" and node.get("function_name") not in ("+", "-", "*", "//"):
        return False
    return all(map(_is_constant, node.values()))


def _bounds(kind: str, value: Any) -> tuple[int, int]:
    """The first and the last time that may compare like this with a value."""
    if kind not in _MIRRORED or isinstance(value, bool) or not hasattr(value, "__floor__") or not isfinite(value):
        return _ANY_TIME
    # times beyond 2^53 are rounded when they are compared with a float
    slack = 0 if isinstance(value, int) else (int(abs(value)) >> 50) + 1
    low, high = floor(value) - slack, ceil(value) + slack
    first = low if kind in ("COMPARE_EQUAL", "COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO") else 0
    last = high if kind in ("COMPARE_EQUAL", "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO") else INT64
    return min(max(first, 0), INT64), max(min(last, INT64), 0)


def _text_test(kind: str, values: list[Any]) -> Callable[[str], bool] | None:
    """Whether a text compares like this with one of the values; None if that is not understood."""
    if not all(isinstance(value, str) for value in values):
        return None
    if kind == "COMPARE_EQUAL":
        return frozenset(values).__contains__
    if len(values) == 1 and kind == "~~" and "\\" not in values[0]:
        return _like(values[0])
    if len(values) == 1 and kind in _TEXT_TESTS:
        return lambda text: _TEXT_TESTS[kind](text, values[0])
    return None


def _like(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern of LIKE.  Each piece between `%` is searched once, so the time is linear."""
    pieces = [re.compile(re.escape(piece).replace("_", "."), re.DOTALL) for piece in pattern.split("%")]
    last = len(pattern.rpartition("%")[2])

    def matches(text: str) -> bool:
        if not text.isascii():  # `_` is not always one of Python's characters
            return True
        if len(pieces) == 1:
            return pieces[0].fullmatch(text) is not None
        at = 0
        for i, piece in enumerate(pieces[:-1]):
            found = piece.search(text, at) if i else piece.match(text)
            if not found:
                return False
            at = found.end()
        return len(text) - last >= at and pieces[-1].match(text, len(text) - last) is not None

    return matches


def _any(tests: list[Callable[[str], bool]], text: str) -> bool:
    return any(test(text) for test in tests)


def _all(tests: list[Callable[[str], bool]], text: str) -> bool:
    return all(test(text) for test in tests)


def _all_of(condition: Any) -> list[Any]:
    """The parts of a condition that must all be true."""
    if not isinstance(condition, dict):
        return []
    if condition.get("type") == "CONJUNCTION_AND":
        return [part for child in condition["children"] for part in _all_of(child)]
    return [condition]


def _bare(own: str, names: list[str]) -> list[str]:
    """The name of a column, without prefix if it is of this table.  Without one it is of all tables, which join by it:
    a single name would be ambiguous otherwise."""
    return names[1:] if len(names) == 2 and names[0].casefold() == own else names


def _renamed(node: Any, column: Callable[[list[str]], list[str]]) -> Any:
    """A condition with other names of columns."""
    if isinstance(node, list):
        return [_renamed(one, column) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "COLUMN_REF":
        return node | {"column_names": column(node["column_names"])}
    return {key: _renamed(value, column) for key, value in node.items()}
