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
from fastprof.cli import main as main_of_fastprof

REPO = Path(__file__).resolve().parent.parent
SITE = REPO / "build" / "site"
PAGES = SITE / "pages"
FRONT = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "bench/RESULTS.md": "results.md"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
# A block of commands, and the block of Python that does the same, directly after it.
COMMANDS = re.compile(r"^```\n(?=(\$ )?(?:fastprof|python3|perf|valgrind|\.venv/|apt-get|pip) )", re.MULTILINE)
LINES_OF_BLOCK = r"((?:(?!```).*\n)*)```\n"
SAME = re.compile(rf"^```(console|sh)\n{LINES_OF_BLOCK}\n```python\n{LINES_OF_BLOCK}", re.MULTILINE)
EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^.+\n)*)+", re.MULTILINE)
CONFIG = f"""
project = "fastprof"
author = "the authors of fastprof"
version = release = "{fastprof.__version__}"
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_inline_tabs"]
source_suffix = {{".md": "markdown"}}
root_doc = "index"
html_theme = "furo"
html_title = "fastprof"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
highlight_language = "none"
copybutton_prompt_text = "$ "
html_extra_path = ["live"]
"""
# The chapters of the site, and their pages in order.
CHAPTERS = {
    "Start": "install get-started recipes comparison",
    "Tasks": "explain top annotate report terminal viewers pgo tables own-data merge-diff trend ci agents json store "
    "batch filters symbols remote",
    "From another tool": "for-* from-converters",
    "Reference": "options python python-api formats/*",
    "Concepts": "bridges memory results changes",
    "Contributing": "contributing first-change architecture cores glossary",
}


# The pages of `fastprof report` that the site shows, and their inputs below tests/corpus.
LIVE = {
    "one": ("xray/good/fdr5-pool-clang19.xray", "-s", "xray/pool-clang19"),
    "compared": ("pair/old.callgrind", "pair/new.callgrind"),
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
        if text in (path, Path(path).name) and inside:
            text = title(found)  # the name of a file says less
        up = "../" * (len(target.relative_to(PAGES).parts) - 1)
        return f"[{text}]({up}{inside}{heading})" if inside else text

    target.parent.mkdir(parents=True, exist_ok=True)
    text = COMMANDS.sub(lambda match: "```console\n" if match[1] else "```sh\n", source.read_text())
    text = SAME.sub(r"````{tab} Command line\n```\1\n\2```\n````\n````{tab} Python\n```python\n\3```\n````\n", text)
    target.write_text(LINK.sub(moved, text).replace("](docs/pictures/", "](pictures/"))


def live(folder: Path) -> None:
    """Makes the pages of LIVE, and embeds them where report.md shows their pictures."""
    folder.mkdir(parents=True)
    for name, words in LIVE.items():
        paths = [word if word.startswith("-") else str(REPO / "tests" / "corpus" / word) for word in words]
        if main_of_fastprof(["report", "-q", *paths, "-o", str(folder / f"{name}.html")]):
            raise SystemExit(f"no page {name}")
    target = PAGES / "report.md"
    text = target.read_text()
    for name in LIVE:
        frame = f'<iframe src="{name}.html" title="A page of fastprof report" loading="lazy"></iframe>'
        link = f'<p><a href="{name}.html">The same page alone</a></p>'
        text, n = re.subn(rf"(?:!\[.*\n\n)?<!-- live: {name} -->\n", f"```{{raw}} html\n{frame}\n{link}\n```\n", text)
        if n != 1:
            raise SystemExit(f"report.md has {n} places for the page {name}")
    target.write_text(text)


def described(name: str) -> str:
    """A function or class of the Python interface: its signature, explanation, examples and options."""
    found = getattr(fastprof, name)
    if isinstance(found, type) and issubclass(found, Exception):
        return f"## {name}\n\n```python\nfastprof.{name}\n```\n\n{inspect.getdoc(found) or ''}\n"
    given = inspect.signature(found)
    kept = [p for p in given.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [""] if len(kept) < len(given.parameters) else []
    arguments = ",\n    ".join([str(p).replace("'", "") for p in kept] + ["**options" for _ in more])
    text, _, options = (inspect.getdoc(found) or "").partition("\nArguments by name (")
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
    live(PAGES / "live")
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
    with open(SITE / "html" / "_static" / "styles" / "furo.css", "a") as css:
        css.write("iframe { width: 100%; height: 75vh; border: 1px solid #8888 }\n")
    print(SITE / "html" / "index.html")


if __name__ == "__main__":
    main()
