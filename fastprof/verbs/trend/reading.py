"""Reads the profiles of a trend: together where their sums are kept together, else one by one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fastprof import bridges
from fastprof.bridges.rows.label import InputLabels
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.options import Option, Options
from fastprof.inputs.expand import skipped, with_advice
from fastprof.inputs.stored import distinct_names
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import none_can_be_read
from fastprof.verbs.trend.points import Over, times_of
from fastprof.verbs.trend.sums import Profile, Sums


def read(
    paths: Sequence[Any],
    sums: Sums,
    over: Over,
    chosen: Options,
    known: Sequence[Option[Any]],
    log: Log,
    *,
    keep_going: bool,
) -> list[tuple[str, Profile]]:
    """(point, profile) of all inputs that have a point.  `known`: the options of the verb.

    Errors: FastprofError; UsageError for options without effect.
    """
    labels = InputLabels(chosen)
    all_: list[Profile] = []
    last: FastprofError | None = None

    def labels_of(name: str) -> dict[str, str]:
        return labels.of(name, log)

    def one_by_one(run: Sequence[Any], times: Mapping[int, int]) -> Iterator[Profile]:
        nonlocal last
        for number, path in enumerate(run):
            try:
                yield sums.read(path, times.get(number), labels_of, log)
            except FastprofError as error:
                if not keep_going or isinstance(error, UsageError):
                    raise with_advice(error, len(paths), keep_going) from None
                skipped(error, log)
                last = error

    for numbers, key in sums.runs(paths):
        run = [paths[number] for number in numbers]
        profiles = sums.read_run(key, run, labels_of, log) if key else None
        if profiles is None:
            times = times_of(run) if key or over.needs_time() else {}
            profiles = [*one_by_one(run, times)]
            if key:
                sums.keep_run(run, times)
        all_ += profiles
    found_, without = _placed(all_, over)
    if last and not sums.n_read:
        raise none_can_be_read(last.message())
    for option in known:
        if sums.n_read and sums.unused.get(option.key) == sums.n_read and option not in bridges.INPUT_LABELS:
            raise usage_error("{option} has no effect on any input", option=spelled(option.flag))
    sums.check_per()
    what = f"label {over.key}" if over.key else "date"
    if without and not found_:
        raise usage_error("{--over:=}{over}: no input has a {what}", over=over.given, what=what)
    if without:
        log.warn(REPORTED["pointless-inputs"], n=len(without), what=what, first=without[0])
    return found_


def _placed(profiles: Sequence[Profile], over: Over) -> tuple[list[tuple[str, Profile]], list[str]]:
    """The profiles with their points, and names of those that have none."""
    over.settle(profile.labels for profile in profiles)
    found, without = list[tuple[str, Profile]](), list[str]()
    names: Iterable[str | None]
    if over.key is not None:
        names = [profile.labels.get(over.key) for profile in profiles]
    elif over.word == "order":  # each is a point
        names = distinct_names((profile.name, profile.path) for profile in profiles)
    else:
        names = [over.moment(profile.time_ns) for profile in profiles]
    for name, profile in zip(names, profiles, strict=True):
        if name is None:
            without.append(profile.name)
        else:
            found.append((name, profile))
    return found, without
