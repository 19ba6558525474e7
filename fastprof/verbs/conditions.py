"""Selects the profiles a query needs, by its conditions on columns that are constant in each profile.

For `select ... from samples where profile like 'web%' and cpu > 3`, that is `profile like 'web%'`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from fastprof.core._typing import Any

# Functions whose value is the same each time: a condition on other ones is left to DuckDB alone.
_FUNCTIONS = {"~~", "!~~", "~~*", "!~~*", "~~~", "like_escape", "ilike_escape", "not_like_escape", "not_ilike_escape"}
_FUNCTIONS |= {"regexp_matches", "regexp_full_match", "starts_with", "prefix", "suffix", "ends_with", "contains"}
_FUNCTIONS |= {"lower", "upper", "||", "split_part", "regexp_extract", "length", "strlen", "substring", "substr"}
_CLASSES = {"COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "CAST"}
# Functions of FROM that read no table.  Others may name one in a text: query('from samples').
_ROWS_WITHOUT_TABLES = {"range", "generate_series", "unnest", "repeat", "json_each", "json_tree"}


class Conditions:
    """A query, as DuckDB parses it.  What is not understood is no condition: then all profiles are read.

    `db` has a table `known.profiles`: the `number` of each profile, and its constants.
    """

    def __init__(self, db: Any, query: str) -> None:
        self._db = db
        self._tree: Any = None
        self._words = {*re.findall(r"\w+", query.casefold())}
        found = json.loads(db.execute("select json_serialize_sql(?)", [query]).fetchall()[0][0])
        if not found.get("error") and len(found.get("statements", ())) == 1:
            self._tree = found["statements"][0]

    def uses(self, table: str) -> bool:
        """Whether the query may read a table."""
        return any(True for _ in self._uses(self._tree, table)) if self._tree else table in self._words

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

    def _uses(self, tree: Any, table: str) -> Iterator[list[Any] | None]:
        """The conditions on each use of a table; None for a use that is not understood."""
        if isinstance(tree, list):
            for one in tree:
                yield from self._uses(one, table)
        elif isinstance(tree, dict):
            if tree.get("type") == "SELECT_NODE":
                names = [*_tables(tree.get("from_table"))]
                for name, alias in names:
                    if name == table:
                        yield [_bare(one, {alias or name}, names) for one in _all_of(tree.get("where_clause"))]
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

        template = "select json_serialize_sql('select number from known.profiles where true')"
        made = json.loads(self._db.execute(template).fetchall()[0][0])

        def renamed(node: Any) -> Any:
            if isinstance(node, list):
                return [*map(renamed, node)]
            if not isinstance(node, dict):
                return node
            if node.get("class") == "COLUMN_REF":
                return node | {"column_names": [columns[node["column_names"][0].casefold()]]}
            return {key: renamed(value) for key, value in node.items()}

        found: set[int] | None = None
        for condition in conditions:
            made["statements"][0]["node"]["where_clause"] = renamed(condition)
            try:
                ((sql,),) = self._db.execute("select json_deserialize_sql(?::json)", [json.dumps(made)]).fetchall()
                numbers = {row[0] for row in self._db.execute(sql).fetchall()}
            except Error:  # host = 7, if a host is not a number
                continue
            found = numbers if found is None else found & numbers
        return found


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
    if kind == "BASE_TABLE" and not any(map(node.get, ("schema_name", "catalog_name", "column_name_alias"))):
        yield str(node["table_name"]).casefold(), str(node.get("alias") or "").casefold()
    elif kind == "JOIN" and node.get("join_type") == "INNER" and node.get("ref_type") in ("REGULAR", "CROSS"):
        yield from _leaves(node["left"])
        yield from _leaves(node["right"])
    else:
        yield None


def _joined_on(node: dict[str, Any]) -> list[Any]:
    """The conditions of joins of tables, which may have queries in them."""
    return [node.get("condition"), *_joined_on(node["left"]), *_joined_on(node["right"])] if "left" in node else []


def _all_of(condition: Any) -> list[Any]:
    """The parts of a condition that must all be true."""
    if not isinstance(condition, dict):
        return []
    if condition.get("type") == "CONJUNCTION_AND":
        return [part for child in condition["children"] for part in _all_of(child)]
    return [condition]


def _bare(node: Any, own: set[str], tables: list[tuple[str, str]]) -> Any:
    """A condition whose columns of this table have no prefix.  Without one they are of all tables, which join by
    them: a single name would be ambiguous otherwise."""
    if isinstance(node, list):
        return [_bare(one, own, tables) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "COLUMN_REF":
        names = node["column_names"]
        if len(names) == 2 and names[0].casefold() in own:
            return node | {"column_names": names[1:]}
        return node
    return {key: _bare(value, own, tables) for key, value in node.items()}
