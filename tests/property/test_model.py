"""The model's tables against a dict: an entry added again keeps its id, and ids are dense."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.model import Model

NAME = st.sampled_from(["", "f", "g", "main", "operator()"])
FUNCTION = st.tuples(NAME, NAME, st.integers(0, 2), NAME, st.integers(0, 1))


@given(st.lists(FUNCTION, max_size=60))
def test_functions(rows: list[tuple[str, str, int, str, int]]) -> None:
    model = Model()
    assert [model.object(name) for name in "ab"] == [1, 2]
    ids: dict[tuple[str, str, int, str, int], int] = {}
    for row in rows:
        assert model.function(*row) == ids.setdefault(row, len(ids) + 1)
    assert [model.function(*row) for row in ids] == list(ids.values())


def test_many_functions_of_few_names() -> None:
    """Enough entries to grow each table a few times, alternately known and new ones."""
    model = Model()
    assert [model.object(name) for name in "abcd"] == [1, 2, 3, 4]
    rows = [(f"f{n}" if n % 3 else "operator()", f"file{n % 977}", n % 5) for n in range(200_000)]
    ids: dict[tuple[str, str, int], int] = {}
    for row in rows:
        assert model.function(*row) == ids.setdefault(row, len(ids) + 1)
    assert model.function(*rows[0]) == 1
