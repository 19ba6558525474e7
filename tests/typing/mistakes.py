"""Plausible mistakes: mypy --strict and pyright refuse each line that ends in `# wrong` and accept the others.

tests/unit/test_typing.py runs them; nothing imports this file.
"""

import io
import re
from pathlib import Path

import polars

import fastprof

profile = fastprof.open(b"main 1\n")
text = io.StringIO()

# accepted
fastprof.convert(["a", Path("b"), b"c", bytearray(), memoryview(b""), io.BytesIO(), profile], "out.pb.gz", to="pprof")
fastprof.convert("a", io.BytesIO(), to="folded", folded={"root": "main"}, symbols="./program", label={"kind": ["a"]})
fastprof.merge([profile, "b"], "both.pb.gz", union=True, progress=lambda source: print(source.name))
fastprof.top(profile, by=("thread", "function"), n=5, function=re.compile("x")).rows[0].self.bit_length()
fastprof.top("a", by=("label:host",), sort="cpu", tree="both").columns()
print(fastprof.diff(profile.where(threads=[1]), profile.where(threads="main", time="10%:20%"), sort="inclusive").values)
fastprof.report([profile, "b"], sum=True).html.upper()
print(profile.rename(r"\$\d+").labelled(host="a", n=1).convert(Path("out.folded"), to="folded").rows)
profile.table("samples").name.upper()
[frame.name.upper() for frame in profile.stack(1)]
fastprof.from_spans(polars.LazyFrame({"name": ["a"]})).where(part=1)
fastprof.from_tables(samples=polars.DataFrame({"stack_id": [1]}), frames=polars.LazyFrame({"stack_id": [1]}))
fastprof.trend([profile, profile.labelled(v="2"), "b"], over="label:v", progress=lambda source: print(source.name))
fastprof.archive_list("a", progress=print), fastprof.archive_rm("a", "b", progress=print)
fastprof.archive_verify("a", progress=print), fastprof.archive_compact("a", progress=print)
fastprof.batch_plan("a", "b", progress=print), fastprof.batch_status("a", progress=print)
with fastprof.sql(["a", b"b"], "select 1") as answer:
    answer.columns.sort()

# refused
fastprof.convert("a", "b", to="flamegraf")  # wrong
fastprof.convert("a", "b", lenent=True)  # wrong
fastprof.convert("a", "b", folded={"rot": "main"})  # wrong
fastprof.convert(text, "b")  # wrong
fastprof.convert("a", text, to="folded")  # wrong
fastprof.open("a", from_="pporf")  # wrong
fastprof.open("a").table("sample")  # wrong
fastprof.info("a", part="1")  # wrong
fastprof.top("a", by="functions")  # wrong
fastprof.top("a", n="5")  # wrong
print(fastprof.top("a").rows[0].self_cost)  # wrong
fastprof.diff("a")  # wrong
fastprof.diff("a", "b", sort="inclusiv")  # wrong
fastprof.merge(["a", 7], "b")  # wrong
