"""`make new-format NAME=x [KIND=json]`: the folder of a format of text lines, in JSON or binary, with tests that fail
until it reads (docs/first-change.md)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
FILES = {
    "registration.py": "fastprof/formats/@name@/__init__.py",
    "page.md": "docs/formats/@format@.md",
    "corpus.md": "tests/corpus/@format@/README.md",
    "test.py": "tests/unit/test_@name@.py",
}
ROOM = "fastprof/formats/@name@"
C = {
    "c/read.py": f"{ROOM}/read.py",
    "c/reported.py": f"{ROOM}/reported.py",
    "c/read.h": "csrc/@name@/read.h",
    "c/fuzz.c": "tests/fuzz/@name@_fuzz.c",
}
KINDS = {
    "text": {f"text/{name}": f"{ROOM}/{name}" for name in ("read.py", "reported.py", "_lexer.pyx")},
    "json": C | {"json/read.c": "csrc/@name@/read.c"},
    "binary": C | {"binary/read.c": "csrc/@name@/read.c"},
}
# Words of files that several kinds have: what tests add to a file, and in which line that is an error; what is lost.
OF_C = {
    "@line@": "None",
    "@repairs@": "None.",
    "@losses@": "values that cannot be read, and the rest of a damaged file",
}
WORDS = {
    "text": {
        "@damage@": r"\0\n",
        "@line@": 'small.count(b"\\n") + 1',
        "@repairs@": "Blank lines.",
        "@losses@": "lines that cannot be read",
    },
    "json": {
        **OF_C,
        "@damage@": "]",
        "@example@": '{"name": "main", "value": 5, "children": [{"name": "f", "value": 2}]}',
        "@memory@": "linear in the depth of the tree",
    },
    "binary": {
        **OF_C,
        "@damage@": r"\xff",
        "@example@": "78 56 34 12  01 00 00 00  05 00 00 00 00 00 00 00  66     a record: f 5",
        "@memory@": "does not grow with the file",
    },
}
# Lists that name all formats: the line after which a new one is added.
LISTS = {
    "fastprof/formats/heads.py": (
        r"^HEADS: .*(?:\n .*)*",
        '\n    "@name@": (("@format@",), (Head(),)),  # say here what it begins with',
    ),
    "docs/README.md": (
        r"^(?:\| \[formats/.*\n)+",
        "| [formats/@format@.md](formats/@format@.md) | say here what it is |\n",
    ),
}


def main(name: str, kind: str = "text") -> None:
    """Errors: SystemExit; then nothing is written."""
    if kind not in KINDS:
        raise SystemExit(f"KIND={kind}: expected {', '.join(KINDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name):
        raise SystemExit(f"NAME={name}: expected small letters, digits and _, as in trace_event")
    words = {"@name@": name, "@NAME@": name.upper(), "@format@": name.replace("_", "-")}
    words |= {"@Class@": name.title().replace("_", "")} | WORDS[kind]

    def filled(text: str) -> str:
        return re.sub("@[A-Za-z]+@", lambda match: words[match[0]], text)

    files = FILES | KINDS[kind]
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
