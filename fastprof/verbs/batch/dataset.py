"""Earlier outputs in a folder of tables, which other programs read as one: what a run may add to them."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from contextlib import suppress

from fastprof.core.errors import usage_error
from fastprof.core.messages import counted
from fastprof.core.urls import is_url, shown
from fastprof.verbs.batch.files import File
from fastprof.verbs.batch.jobs import Record


class Dataset:
    """The outputs of earlier runs, `before`.

    `keys`: those of --partition; None without.  `size_of` raises LookupError or OSError for a missing output.
    """

    def __init__(
        self,
        outdir: str,
        keys: list[str] | None,
        before: Mapping[str, Record],
        size_of: Callable[[str], int],
        suffix: str,
    ) -> None:
        self._outdir, self._keys, self._size_of = outdir, keys, size_of
        self._before = {output: record for output, record in before.items() if output.endswith(suffix)}

    def refuse_moved(self, outputs: Container[str], files: Iterable[File]) -> None:
        """Refuse other outputs of the same files: their rows would count twice.  A run without --partition refuses
        partitioned ones.

        Errors: UsageError."""
        inputs = {file.path for file in files}
        found = (
            output
            for output, record in self._before.items()
            if output not in outputs and record.get("input") in inputs and (self._keys or _keys_of(output))
        )
        moved = [*self._existing(found)]
        if moved:
            what = (
                "{outdir}: {n} of the same inputs with other labels, first {first}: their rows would count twice; "
                "remove them, or choose another folder"
            )
            if self._keys is None:
                what = (
                    "{outdir}: {n} of the same inputs made with {--partition}, first {first}: their rows would count "
                    "twice; give {--partition} again, or choose another folder"
                )
            n = counted(len(moved), "output")
            raise usage_error(what, outdir=shown(self._outdir), n=n, first=min(moved))

    def refuse_others(self, missing: Callable[[Set[int]], set[int]], given: Iterable[str], *, append: bool) -> None:
        """Refuse outputs of other inputs in one dataset, except with `append` those with the same keys.

        `missing`: which hashes of paths are not of inputs of this batch.  Inputs below `given` folders belong to it,
        too, even if they are gone.
        Errors: UsageError."""
        inputs = {hash(path): path for path in map(_input_of, self._before.values())}
        below = tuple(given if is_url(given) else os.path.join(os.path.abspath(given), "") for given in given)
        others = {path for path in map(inputs.__getitem__, missing({*inputs})) if not path.startswith(below)}
        for output in self._existing(self._before) if others else ():
            record = self._before[output]
            if _input_of(record) not in others:
                continue
            keys = _keys_of(output)
            if keys != (self._keys or []):
                how = "with {--partition:=}{keys}" if keys else "without {--partition}"
                what = "{outdir}: {output} was made " + how + " of another input, {input}; choose another folder"
            elif self._keys and not append:
                what = (
                    "{outdir}: the dataset has rows of another input, {input} ({output}); {--append} adds to it, or "
                    "choose another folder"
                )
            else:
                continue
            fields = {"output": output, "input": shown(_input_of(record)), "keys": ",".join(keys)}
            raise usage_error(what, outdir=shown(self._outdir), **fields)

    def _existing(self, outputs: Iterable[str]) -> Iterator[str]:
        for output in outputs:
            with suppress(OSError, LookupError):
                self._size_of(output)
                yield output


def _input_of(record: Record) -> str:
    return str(record.get("input", ""))


def _keys_of(output: str) -> list[str]:
    """ "host=web1/date=0314/x.parquet" has the keys host and date."""
    return [key for key, equals, _ in (part.partition("=") for part in output.split("/")[:-1]) if equals]
