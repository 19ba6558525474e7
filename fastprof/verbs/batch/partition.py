"""Outputs of a batch as one dataset, divided into folders by labels of inputs, as Hive names them.

    --label-path '{host}/{date}.prof' --partition host,date
    dumps/web1/0314.prof  ->  host=web1/date=0314/web1%2F0314.prof.parquet

DuckDB, Polars and Spark read the folders as columns.  Spark wants the files directly in them, so the "/" of a name is
escaped.
"""

import os
import re
from collections.abc import Iterable
from hashlib import blake2b

from fastprof.bridges import INPUT_LABELS, TABLE, TABLES
from fastprof.bridges.rows.as_table import LAYOUTS, utf8
from fastprof.bridges.rows.label import InputLabels
from fastprof.core.engine import Format
from fastprof.core.errors import usage_error
from fastprof.core.log import Log, Warn
from fastprof.core.messages import joined, spelled
from fastprof.core.options import Options
from fastprof.core.urls import shown
from fastprof.verbs.batch.files import File
from fastprof.verbs.reported import REPORTED

NULL = "__HIVE_DEFAULT_PARTITION__"  # the value of a missing label
_LONGEST = 255  # bytes of the name of a folder, on all usual file systems
_MOST = 200  # bytes of a file's name without its suffix
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")  # as Hive and Spark escape it


def escaped(text: str) -> str:
    """ "a/b" becomes "a%2Fb"."""
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _value(text: str) -> str:
    """The value of a label in the name of a folder.  DuckDB reads `NULL`, in any case, as a missing one."""
    value = escaped(utf8(text)) or NULL
    return re.sub("^.", _escape, value) if text.casefold() == "null" or text == NULL else value


class Partition:
    """The folders of a dataset, by labels of inputs.

    Errors: UsageError for keys that are no labels of inputs, and for formats that are no tables.
    """

    def __init__(self, keys: str, target: Format, options: Options) -> None:
        self.keys = keys.split(",")
        if not target.holds.table:
            raise usage_error("{--partition} divides tables, as of parquet, not {format}", format=target.name)
        if len({key.casefold() for key in self.keys}) < len(self.keys) or not all(self.keys):
            raise usage_error("{--partition:=}{keys}: expected distinct keys of labels", keys=keys)
        self.flags = {option.flag for option in INPUT_LABELS}  # which have an effect on each file
        self._labels = InputLabels(options)
        known = self._labels.keys
        chosen = options[TABLE]
        tables = [chosen] if chosen else [names[0] for names in TABLES.values()]
        columns = {kind.name for table in tables for kind in LAYOUTS[table]}
        for key in self.keys:
            if key not in known:
                has = f"inputs have {', '.join(sorted(known))}" if known else "inputs have no labels"
                ways = joined(", ", [spelled(option.flag) for option in INPUT_LABELS])
                raise usage_error("{--partition:=}{key}: {has}; label them with {ways}", key=key, has=has, ways=ways)
            if key.casefold() in columns:
                raise usage_error("{--partition:=}{key}: the table has a column of this name", key=key)
            if escaped(key) != key:
                raise usage_error("{--partition:=}{key}: no column of a dataset has such a name", key=key)

    def placed(self, files: Iterable[File], warn: Warn) -> list[File]:
        """The files, with outputs in their folders.  Errors: UsageError for a value that is too long for a folder."""
        found, lacking = [], []
        for file in files:
            labels = self._labels.of(shown(file.path), Log())
            if not all(map(labels.get, self.keys)):
                lacking.append(file.path)
            folders = [f"{key}={_value(labels.get(key, ''))}" for key in self.keys]
            for key, folder in zip(self.keys, folders, strict=True):
                if (n := len(os.fsencode(folder))) > _LONGEST:
                    what = "{--partition:=}{key}: {file} has a label of {n:,} bytes as a folder, at most {most}"
                    raise usage_error(what, key=key, file=shown(file.path), n=n, most=_LONGEST)
            found.append(file._replace(name="/".join([*folders, _flat(file.name)])))
        if lacking:
            warn(REPORTED["unlabelled-outputs"], n=len(lacking), first=shown(lacking[0]))
        return found


def _flat(name: str) -> str:
    """The name of a file without folders; Spark skips names that begin with "_" or "."."""
    flat = re.sub("^[_.]", _escape, escaped(name))
    if len(os.fsencode(flat)) > _MOST:
        last = os.fsencode(flat)[-_MOST // 2 :].decode("utf-8", "ignore")
        flat = f"{blake2b(os.fsencode(name), digest_size=8).hexdigest()}-{last}"
    return flat
