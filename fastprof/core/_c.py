"""Imported only if the compiled core is missing: Python prefers an extension module of the same name."""

import os

from fastprof.core.errors import NotBuiltError

_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

raise NotBuiltError(
    f"{_FOLDER} holds the source of fastprof, which is not compiled; to use an installed fastprof, leave this "
    "directory or run `python -P`; to compile in place, run `pip install -e .` here",
    name=__name__,
)
