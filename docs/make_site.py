"""Builds the documentation site from docs/ into build/site/html: `make site`.

Pages stay as they are in the repository.  Links to files that are not pages become plain text, and the front pages of
the repository become pages of the site.  The site loads nothing from elsewhere; its search works from files, too.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fastprof

REPO = Path(__file__).resolve().parent.parent
SITE = REPO / "build" / "site"
PAGES = SITE / "pages"
FRONT = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "bench/RESULTS.md": "results.md"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^.+\n)*)+", re.MULTILINE)
CONFIG = f"""
project = "fastprof"
author = "the authors of fastprof"
version = release = "{fastprof.__version__}"
extensions = ["myst_parser"]
source_suffix = {{".md": "markdown"}}
root_doc = "index"
html_theme = "furo"
html_title = "fastprof"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
highlight_language = "none"
"""
# The chapters of the site, and their pages in order.
CHAPTERS = {
    "Start": "install get-started recipes comparison",
    "Tasks": "top annotate report viewers tables merge-diff ci store batch filters symbols remote",
    "From another tool": "for-* from-converters",
    "Reference": "options python python-api formats/*",
    "Concepts": "bridges memory results changes",
    "Contributing": "contributing first-change architecture cores glossary",
}


def title(source: Path) -> str:
    return source.read_text().partition("# ")[2].partition("\n")[0]


def page(source: Path, target: Path) -> None:
    """Writes a page with links that hold in the site."""

    def moved(match: re.Match[str]) -> str:
        text, path, heading = match[1], match[2], match[3] or ""
        if not path:
            return match[0]
        found = (source.parent / path).resolve()
        name = str(found.relative_to(REPO))
        inside = FRONT.get(name, "index.md" if name in ("README.md", "docs/README.md") else "")
        if not inside and name.startswith("docs/") and name.endswith(".md"):
            inside = name.removeprefix("docs/")
        if text == Path(path).name and inside:
            text = title(found)  # the name of a file says less
        up = "../" * (len(target.relative_to(PAGES).parts) - 1)
        return f"[{text}]({up}{inside}{heading})" if inside else text

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(LINK.sub(moved, source.read_text()).replace("](docs/pictures/", "](pictures/"))


def described(name: str) -> str:
    """A function or class of the Python interface: its signature, explanation, examples and options."""
    found = getattr(fastprof, name)
    given = inspect.signature(found)
    kept = [p for p in given.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [""] if len(kept) < len(given.parameters) else []
    arguments = ",\n    ".join([str(p).replace("'", "") for p in kept] + ["**options" for _ in more])
    text, _, options = (inspect.getdoc(found) or "").partition("\nOptions (")
    text = EXAMPLE.sub(lambda match: f"```python\n{match[0]}```\n", text + "\n")
    rows = re.findall(r"^(\w+): (.*)\n    (.*)$", options, re.MULTILINE)
    table = "".join(f"| `{key}` | `{kind.replace('|', chr(92) + '|')}` | {what} |\n" for key, kind, what in rows)
    listed = f"\n| option | type and default | |\n| --- | --- | --- |\n{table}" if rows else ""
    return f"## {name}\n\n```python\nfastprof.{name}(\n    {arguments}\n)\n```\n\n{text}{listed}\n"


def contents() -> str:
    """The chapters, as the site's navigation."""
    made = []
    for chapter, names in CHAPTERS.items():
        listed = [found for name in names.split() for found in sorted(PAGES.glob(f"{name}.md"))]
        lines = "\n".join(str(found.relative_to(PAGES).with_suffix("")) for found in listed)
        made.append(f"```{{toctree}}\n:hidden:\n:caption: {chapter}\n\n{lines}\n```\n")
    return "\n".join(made)


def main() -> None:
    shutil.rmtree(SITE, ignore_errors=True)
    for source in (REPO / "docs").rglob("*.md"):
        name = source.relative_to(REPO / "docs")
        page(source, PAGES / name)
    for path, target in FRONT.items():
        page(REPO / path, PAGES / target)
    shutil.copytree(REPO / "docs" / "pictures", PAGES / "pictures")
    names = [name for name in fastprof.__all__ if not name.startswith("_") and not name.endswith("Error")]
    names.sort(key=lambda name: (name[0].isupper(), name))
    (PAGES / "python-api.md").write_text("# Functions and classes\n\n" + "\n".join(map(described, names)))
    page(REPO / "README.md", PAGES / "index.md")
    readme = (PAGES / "index.md").read_text().partition("\n## Install\n")[0]
    listed = (PAGES / "README.md").read_text().partition("\n")[2]
    (PAGES / "README.md").unlink()
    (PAGES / "index.md").write_text(f"{readme}\n{listed}\n{contents()}")
    (PAGES / "conf.py").write_text(CONFIG)
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(PAGES), str(SITE / "html")]
    subprocess.run(build, check=True)
    print(SITE / "html" / "index.html")


if __name__ == "__main__":
    main()
