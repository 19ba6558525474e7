"""Path patterns with fields that become labels.

dumps/{host}/{service}-{date}.prof    dumps/web1/api-0314.prof    host=web1, service=api, date=0314
"""

from __future__ import annotations

import re

_FIELD = re.compile(r"\{(\w+)\}|(\*\*)|(\*)|(\?)")


def compiled(text: str) -> re.Pattern[str]:
    """`dumps/{host}/{date}.prof` as a regular expression for the end of a path: fields and * have no slash.

    Errors: ValueError.
    """
    made, at, names = [], 0, set[str]()
    for field in _FIELD.finditer(text):
        made.append(re.escape(text[at : field.start()]))
        at = field.end()
        if name := field[1]:
            if name in names:
                raise ValueError(f"{text!r:.80} has the field {name} twice")
            names.add(name)
            made.append(rf"(?P<{name}>[^/]+)")
        else:
            made.append(".*" if field[2] else "[^/]*" if field[3] else "[^/]")
    if not names or any(name[0].isdigit() for name in names):
        raise ValueError(f"{text!r:.80} has no field such as {{host}}")
    made.append(re.escape(text[at:]))
    return re.compile(rf"(?:.*/)??{''.join(made)}", re.DOTALL)
