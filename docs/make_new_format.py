"""`make new-format NAME=x [KIND=json]`: a room for a format of text lines, or in JSON, with tests that fail until it
reads (docs/first-change.md)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
FILES = {
    "door.py": "fastprof/formats/@name@/__init__.py",
    "page.md": "docs/formats/@format@.md",
    "corpus.md": "tests/corpus/@format@/README.md",
    "test.py": "tests/unit/test_@name@.py",
}
PYTHON = {name: f"fastprof/formats/@name@/{name}" for name in ("read.py", "reported.py")}
KINDS = {
    "text": PYTHON | {name: f"fastprof/formats/@name@/{name}" for name in ("_lexer.pyx", "_lexer.pyi")},
    "json": PYTHON
    | {name: f"csrc/@name@/{name}" for name in ("read.c", "read.h")}
    | {"fuzz.c": "tests/fuzz/@name@_fuzz.c"},
}
# Words of files that all kinds have: what tests add to a file, and in which line that is an error.
WORDS = {
    "text": {
        "@damage@": r"\0\n",
        "@line@": 'small.count(b"\\n") + 1',
        "@repairs@": "Blank lines.",
        "@losses@": "lines that cannot be read",
    },
    "json": {
        "@damage@": "]",
        "@line@": "None",
        "@repairs@": "None.",
        "@losses@": "values that cannot be read, and the rest of a damaged file",
    },
}
# Lists that name all formats: the line after which a new one is added.
LISTS = {
    "fastprof/formats/__init__.py": (r"^ROOMS = \((?:\n    \S+)*", '\n    "@name@",'),
    "docs/README.md": (
        r"^(?:\| \[formats/.*\n)+",
        "| [formats/@format@.md](formats/@format@.md) | say here what it is |\n",
    ),
}


def main(name: str, kind: str = "text") -> None:
    """Errors: SystemExit; then nothing is written."""
    if kind not in KINDS:
        raise SystemExit(f"KIND={kind}: expected {' or '.join(KINDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name):
        raise SystemExit(f"NAME={name}: expected small letters, digits and _, as in trace_event")
    words = {"@name@": name, "@NAME@": name.upper(), "@format@": name.replace("_", "-")}
    words |= {"@Class@": name.title().replace("_", "")} | WORDS[kind]

    def filled(text: str) -> str:
        return re.sub("@[A-Za-z]+@", lambda match: words[match[0]], text)

    files = FILES | {f"{kind}/{of}": to for of, to in KINDS[kind].items()}
    made = {REPO / filled(to): filled((REPO / f"docs/new_format/{of}.in").read_text()) for of, to in files.items()}
    lists = {
        REPO / to: re.sub(old, r"\g<0>" + filled(new), (REPO / to).read_text(), flags=re.MULTILINE)
        for to, (old, new) in LISTS.items()
    }
    if taken := [path for path in made if path.exists()]:
        raise SystemExit(f"NAME={name}: {taken[0].relative_to(REPO)} is there already")
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path.relative_to(REPO))
    for folder in ("good", "bad"):
        (REPO / filled(f"tests/corpus/@format@/{folder}")).mkdir()
    for path, text in lists.items():
        path.write_text(text)
        print(f"{path.relative_to(REPO)}: names {name}")
    print(f"next: make build && .venv/bin/python -m pytest tests/unit/test_{name}.py (docs/first-change.md)")


if __name__ == "__main__":
    main(*sys.argv[1:])
