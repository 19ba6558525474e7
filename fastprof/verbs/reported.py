"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("no-such-label",),
    not_representable={
        "cut-sources": "source file(s) with lines that do not fit the page",
        "merged-label-values": "value(s) of (a label|labels) too small for the page, merged into [others]",
        "pruned-contexts": "context(s) too small for the page (up to {share} of the cost), merged into [pruned]",
    },
    warnings={
        "no-total": "{file}: {--normalize:name}: its total is not above 0, so its values stay as they are",
        "worker-left-out": "Dask: worker {worker} is not used: {why}",
        "worker-rejected": "Dask: worker {worker}: {why}; its files are retried on other workers",
        "changed-source": ("{path} was changed after the profile was recorded: line numbers may not match"),
        "idle-options": "{option} had no effect on any of these files",
        "labels-left-out": "labels left out of the page: {n:,}, first {name:.80} with {values}",
        "mangled-names": "{path}: {names}",
        "missing-page-sources": "source files not found: {n:,}, first {first}; {--source:=}DIR adds a folder",
        "missing-sources": "source files not found: {n:,}, first {first}; {--source:=}DIR adds a directory to search",
        "no-disassembly": "{error}",
        "no-instructions": "{reason}",
        "no-value-types": "{inputs}no value types: there is nothing to compare",
        "busy-cache": "{path}: another run has the cache; this one does without it",
        "all-empty-inputs": "the costs of all inputs are 0",
        "empty-inputs": "inputs whose costs are 0, left out: {n:,}, first {first}",
        "few-points": "{points}: changes need at least {least} to be distinguished from noise",
        "sparse-inputs": "inputs with few samples, less than a fiftieth of the median, left out: {n:,}, first {first}",
        "other-duration": "OLD was recorded for {old}, NEW for {new}{hint}",
        "other-number": "profiles added up: OLD {old}, NEW {new}{hint}",
        "other-period": "OLD was sampled every {old}, NEW every {new}{hint}",
        "other-build": "{path}: has costs in the middle of instructions: it seems to be another build",
        "paired": "paired across builds: {what}; {--pair:=}exact keeps different names apart",
        "partly-missing-value": "{option}: some parts of the input have no {name}, counted as 0",
        "pointless-inputs": "inputs without a {what}, left out: {n:,}, first {first}",
        "short-source": "{path}: has {lines}, but the profile has costs at line {line:,}",
        "unordered-points": "points that {--order} does not list, left out: {n:,}: {names}",
        "unsorted-commits": "the points look like commits, in the order of inputs; {--order:=}git sorts them",
        "untested-rows": "rows that cost least, not tested: {n:,}, {share} of the cost; {--function} chooses others",
        "unlabelled-outputs": "inputs without a label of {--partition}: {n:,}, first {first}; the column is NULL there",
        "uncomputed-events": "inherited event {name:.80} cannot be computed: {problem}",
    },
)
