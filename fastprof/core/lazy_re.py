"""`re`, imported when a pattern is first used: importing and compiling patterns took a third of the start of `info`.

    from fastprof.core import lazy_re as re

`compile` reports an invalid pattern at its first use only, so patterns of users are compiled by `re` itself.
"""

from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import ASCII as ASCII
    from re import DOTALL as DOTALL
    from re import IGNORECASE as IGNORECASE
    from re import MULTILINE as MULTILINE
    from re import VERBOSE as VERBOSE
    from re import Match as Match
    from re import Pattern as Pattern
    from re import compile as compile
    from re import findall as findall
    from re import finditer as finditer
    from re import fullmatch as fullmatch
    from re import match as match
    from re import search as search
    from re import sub as sub
else:
    ASCII, IGNORECASE, MULTILINE, DOTALL, VERBOSE = 256, 2, 8, 16, 64

    class compile:
        def __init__(self, pattern, flags=0):
            self._given = pattern, flags

        def __getattr__(self, name):
            import re

            self.__dict__[name] = found = getattr(re.compile(*self._given), name)  # later calls do not come here
            return found

    def __getattr__(name):
        import re

        if name not in re.__all__:
            raise AttributeError(name)
        globals()[name] = found = getattr(re, name)
        return found
