"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("inputs-passed-over", "only-zeros", "unread-inputs"),
    not_representable={
        "pruned-contexts": (
            "context too small for the page (up to {share} of the cost), merged into [pruned]",
            "contexts too small for the page (up to {share} of the cost), merged into [pruned]",
        ),
    },
    warnings={
        "worker-left-out": "Dask: the worker {worker} is left out: {why}",
        "worker-not-believed": "Dask: the worker {worker}: {why}; such files are tried elsewhere",
        "changed-source": (
            "{path} was changed after the profile was recorded: its lines may not be those of the profile"
        ),
        "idle-options": "{option} did nothing for any of these files",
        "mangled-names": "{path}: {names}",
        "missing-sources": "source files not found: {n:,}, first {first}; {--include:=}DIR says where to look",
        "no-disassembly": "{error}",
        "no-instructions": "{reason}",
        "no-value-types": "{inputs}no value types: there is nothing to compare",
        "other-build": "{path}: costs inside of instructions: it seems to be another build",
        "partly-missing-value": "{option}: parts of the input have no {name} and count as 0",
        "short-source": "{path}: has {lines}, but the profile has costs of line {line:,}",
        "uncomputed-events": "inherited event {name:.80} cannot be computed: {problem}",
    },
)
