"""Transforms of a page, in a browser: the shared examples, and what the options of the same names give."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import report
from tests.differential.test_report_browser import AT, BOX, click, click_box, drive, tab, text_of, value
from tests.support.paths import CORPUS

EXAMPLES = json.loads((Path(__file__).parents[1] / "support" / "transforms.json").read_text())["examples"]
# The stacks with a cost: frames as name and object.
STACKS = """(() => {
    const {view: {tree, name}, data, state} = fastprof, k = state.event.old, {texts} = data.head, objects = data.column('function object');
    return Array.from({length: tree.n}, (_, i) => i).filter(i => tree.self[k][i])
        .map(i => [tree.path(i).map(fn => fn === 4294967295 ? ['[pruned]', ''] : [name(fn), texts[objects[fn]]]), tree.self[k][i]]);
})()"""
# Steps as of the shared examples; the path of a subtree has names.
DO = """(steps => {{
    const {{menu, transforms, view}} = fastprof;
    for (const [kind, what] of steps) {{
        const {{tree}} = view, path = what.split(';');
        const at = kind !== 'subtree' ? 0 : Array.from({{length: tree.n}}, (_, i) => i).find(i => i && tree.path(i).map(fn => view.name(fn)).join(';') === what);
        menu.do([kind, kind === 'subtree' ? tree.path(at).join('.') : what]);
    }}
    return transforms.address();
}})({})"""
UNDO = value("(fastprof.menu.undoAll(), null)")
CHIPS = value("[...document.querySelectorAll('#steps button')].map(b => b.textContent)")


def stacks(found: list[Any]) -> Counter[tuple[tuple[str, str], ...]]:
    sums: Counter[tuple[tuple[str, str], ...]] = Counter()
    for frames, cost in found:
        sums[tuple((one, "") if isinstance(one, str) else (one[0], one[1]) for one in frames)] += cost
    return sums


def test_the_shared_examples(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = []
    for number, example in enumerate(EXAMPLES):
        rows = [
            ([f if isinstance(f, str) else fastprof.Frame(f[0], object=f[1]) for f in stack], cost)
            for stack, cost in example["stacks"]
        ]
        # one page for all: each example below a root of its own, on which the page focuses first
        steps.append({"name": number, "rows": [([f"example {number}", *stack], cost) for stack, cost in rows]})
    made = fastprof.from_stacks([row for step in steps for row in step["rows"]])
    report(made, tmp_path / "page.html", prune=0)
    for number, example in enumerate(EXAMPLES):
        [*_, found] = drive(
            tmp_path / "page.html",
            UNDO,
            value(DO.format(json.dumps([["focus", f"^example {number}$"], ["hide", f"^example {number}$"], *example["do"]]))),
            value(STACKS),
        )
        assert stacks(found) == stacks(example["result"]), example["name"]
