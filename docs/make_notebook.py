"""Runs docs/notebook.ipynb and writes its pictures to docs/pictures: `python -m docs.make_notebook`."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

REPO = Path(__file__).parents[1]
NOTEBOOK = REPO / "docs" / "notebook.ipynb"
INPUT = REPO / "tests" / "corpus" / "pprof" / "good" / "go-cpulabels.pb.gz"


def executed() -> Any:
    """The notebook with its outputs, run in a folder that has cpu.pb.gz.  Errors: CellExecutionError."""
    with TemporaryDirectory() as folder:
        shutil.copy(INPUT, Path(folder) / "cpu.pb.gz")
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        return NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()


def pictures(notebook: Any) -> dict[str, bytes]:
    """The pictures that its cells show, by name."""
    found: dict[str, bytes] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                found[f"notebook-{len(found) + 1}.svg"] = data["image/svg+xml"].encode()
            elif "image/png" in data:
                found[f"notebook-{len(found) + 1}.png"] = base64.b64decode(data["image/png"])
    return found


if __name__ == "__main__":
    for name, picture in pictures(executed()).items():
        (REPO / "docs" / "pictures" / name).write_bytes(picture)
