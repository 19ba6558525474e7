# The C core through cffi (csrc/build_core.py), which knows no types; the headers under csrc/ say what everything means.
from typing import Any

ffi: Any
lib: Any
