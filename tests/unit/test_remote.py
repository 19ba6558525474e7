"""Objects at URLs, read and written: moto's S3 on 127.0.0.1, and failures of networks and servers."""

from __future__ import annotations

import gzip
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import boto3
import pytest
from moto.server import ThreadedMotoServer

import fastprof
from fastprof.core import prefetch, remote
from fastprof.core.errors import FastprofError, FileError, UsageError
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.core.urls import is_url, shown
from fastprof.store import adding, listing
from tests.support.faulty import Fault, Faulty
from tests.support.paths import CORPUS
from tests.support.signals import heard
from tests.unit.test_io import read_all

POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
CPU = CORPUS / "gperftools/good/32be.prof"
GRAPH = CORPUS / "callgrind/good/xdebug.callgrind"
NOISE = os.urandom(9_000_000)
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "1"}


class Bucket(NamedTuple):
    """`s3` is a client connected directly to the server, `http` the bucket's http:// URL through `proxy`."""

    s3: Any
    proxy: Faulty

    @property
    def http(self) -> str:
        return f"{self.proxy.url}/bucket"

    def put(self, key: str, data: bytes) -> str:
        self.s3.put_object(Bucket="bucket", Key=key, Body=data)
        return f"s3://bucket/{key}"

    def get(self, key: str) -> bytes:
        data: bytes = self.s3.get_object(Bucket="bucket", Key=key)["Body"].read()
        return data

    def keys(self) -> list[str]:
        return [found["Key"] for found in self.s3.list_objects_v2(Bucket="bucket").get("Contents", [])]

    def unfinished(self) -> list[Any]:
        return [*self.s3.list_multipart_uploads(Bucket="bucket").get("Uploads", [])]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    yield "http://{}:{}".format(*moto.get_host_and_port())
    moto.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(remote.RETRIES, "max_retries", 2)
    proxy = Faulty(server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    s3 = boto3.client("s3", endpoint_url=server, region_name="us-east-1")
    s3.create_bucket(Bucket="bucket", ACL="public-read-write")
    yield Bucket(s3, proxy)
    proxy.close()
    found = Bucket(s3, proxy)
    bucket_keys = found.keys()
    assert not found.unfinished(), "an upload is left"
    for key in bucket_keys:
        s3.delete_object(Bucket="bucket", Key=key)
    s3.delete_bucket(Bucket="bucket")


# ---- names ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("https://me:secret@host:81/a/b.prof?X-Amz-Signature=1f#x", "https://host:81/a/b.prof"),
        ("http://host?key=1", "http://host"),
        ("https://host/a@b", "https://host/a@b"),
        ("s3://bucket/what?#.prof", "s3://bucket/what?#.prof"),
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("me:secret@host?x", "me:secret@host?x"),
    ],
)
def test_secrets_are_not_shown(given: str, want: str) -> None:
    assert shown(given) == want


def test_what_is_a_url() -> None:
    assert all(is_url(f"{scheme}://x") for scheme in ("s3", "gs", "az", "https", "http"))
    assert not any(map(is_url, ["ftp://x", "s3:/x", "/s3://x", "-", b"s3://x"]))


# ---- reading ------------------------------------------------------------------


def test_reads_an_object(bucket: Bucket) -> None:
    url = bucket.put("some/a b~#%25+ü?.bin", NOISE)
    source = Source(url)
    assert (source.name, source.seekable, source.again, source.compressed_size) == (url, False, True, len(NOISE))
    assert read_all(source) == NOISE
    assert read_all(Source(bucket.put("x.gz", gzip.compress(NOISE)))) == NOISE
    assert read_all(Source(f"{bucket.http}/x.gz?signature=1")) == NOISE
    assert bucket.proxy.seen[-1] == "GET /bucket/x.gz?signature=1"
    assert read_all(Source(bucket.put("empty", b""))) == b""


@pytest.mark.parametrize("path", [POOL, CPU, GRAPH], ids=lambda path: path.name)
@pytest.mark.parametrize("to", ["pprof", "callgrind", "archive"])
def test_converts_as_files_do(path: Path, to: str, bucket: Bucket, tmp_path: Path) -> None:
    fastprof.convert(path, tmp_path / "out.gz", to=to)
    url = bucket.put(path.name, path.read_bytes())
    log = fastprof.convert(url, "s3://bucket/deep/out.gz", to=to)
    want, got = gzip.decompress((tmp_path / "out.gz").read_bytes()), gzip.decompress(bucket.get("deep/out.gz"))
    assert len(got) == len(want)
    assert got.replace(url.encode(), b"NAME") == want.replace(str(path).encode(), b"NAME") or to == "archive"
    assert log.facts["output_bytes"] == len(bucket.get("deep/out.gz"))


def test_all_verbs_take_urls(bucket: Bucket, tmp_path: Path) -> None:
    one, two = (bucket.put(f"dir/{n}.callgrind", GRAPH.read_bytes()) for n in (1, 2))
    bucket.put("dir/.hidden", b"?")
    assert fastprof.info(one).facts["file"] == one
    fastprof.merge([GRAPH, GRAPH], tmp_path / "want.callgrind")
    for inputs in ([one, two], ["s3://bucket/dir/"], [f"{bucket.http}/dir/1.callgrind?x=1", two]):
        fastprof.merge(inputs, tmp_path / "got.callgrind")
        assert (tmp_path / "got.callgrind").read_bytes() == (tmp_path / "want.callgrind").read_bytes()
    with fastprof.open(one) as profile:
        assert [sum(map(len, profile)) for _ in range(2)] == [sum(map(len, profile))] * 2
        bucket.put("dir/1.callgrind", GRAPH.read_bytes() + b"\n")
        with pytest.raises(FastprofError, match=r"1\.callgrind: changed since it was opened"):
            next(iter(profile))


def test_empty_objects_are_skipped(bucket: Bucket, tmp_path: Path) -> None:
    for key in ("dir/", "dir/0.prof", "dir/deep/", "dir/deep/1.prof", "dir/.hidden"):
        bucket.put(key, b"")
    with pytest.raises(FastprofError, match=r"^s3://bucket/dir/: no objects below this prefix that are not empty$"):
        fastprof.merge("s3://bucket/dir/", tmp_path / "out.callgrind")
    bucket.put("dir/deep/2.callgrind", GRAPH.read_bytes())
    log = fastprof.merge("s3://bucket/dir/", tmp_path / "out.callgrind")
    assert log.warnings == ["s3://bucket/dir/: skipped 2 empty objects"]


def test_a_folder_is_no_output(bucket: Bucket) -> None:
    for write in (fastprof.convert, fastprof.merge):
        with pytest.raises(UsageError, match=r"^s3://bucket/out/: names a folder"):
            write([GRAPH], "s3://bucket/out/", to="folded")
    assert not bucket.keys()


def test_the_format_is_that_of_the_name_without_a_query(bucket: Bucket) -> None:
    url = f"{bucket.http}/x.callgrind.gz?signature=a.pb"
    fastprof.convert(POOL, url)
    assert gzip.decompress(bucket.get("x.callgrind.gz")).startswith(b"# callgrind format")
    assert bucket.proxy.seen == ["PUT /bucket/x.callgrind.gz?signature=a.pb"]


def test_an_archive_is_read_by_ranges_where_a_part_is_wanted(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "many.fpa"
    with adding.adding(str(path)) as session:
        for name in ("a", "b"):
            session.add(str(POOL), name)
        session.add(str(GRAPH), "c")
    url = bucket.put("many.fpa", path.read_bytes())
    assert listing.members(url) == listing.members(str(path))
    fastprof.convert(url, tmp_path / "c.callgrind", member="c")
    fastprof.convert(path, tmp_path / "want.callgrind", member="c")
    assert (tmp_path / "c.callgrind").read_bytes() == (tmp_path / "want.callgrind").read_bytes()
    with pytest.raises(UsageError, match=r"^s3://bucket/many\.fpa: a store must be a plain file, not a URL"):
        adding.add(url, [str(POOL)])


def test_a_store_is_read_by_ranges(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_BLOCK", 256)
    monkeypatch.setattr(remote, "_KEPT", 256)
    path = str(tmp_path / "st.fpa")
    with adding.adding(path) as session:
        for n in range(40):
            session.add(str((POOL, GRAPH)[n % 2]), f"host{n // 10}/{n}")
    data = Path(path).read_bytes()
    url = bucket.put("st.fpa", data)
    n_blocks = len(data) // 256

    def requests(ask: Callable[[], Any]) -> int:
        before = len(bucket.proxy.seen)
        ask()
        return len(bucket.proxy.seen) - before

    # 16 are the head, by which the format is recognized
    assert n_blocks > 35 and requests(lambda: listing.members(url)) <= 24
    assert listing.members(url, ["host3/*"]) == listing.members(path, ["host3/*"])
    assert fastprof.info(url).facts == fastprof.info(path).facts | {"file": url}
    assert fastprof.info(f"{url}:host1/11").facts["file"] == f"{url}:host1/11"
    for name in ("host1/11", "host*/?1", "host2/*[13579]"):
        for place in (url, path):
            fastprof.merge(f"{place}:{name}", tmp_path / f"{place == url}.folded")
        assert (tmp_path / "True.folded").read_bytes() == (tmp_path / "False.folded").read_bytes()
    assert requests(lambda: fastprof.convert(f"{url}:host1/11", tmp_path / "one.folded")) <= 26
    assert requests(lambda: fastprof.merge(f"{url}:host1/*[13579]", tmp_path / "five.folded")) <= 40
    fastprof.merge([f"{bucket.http}/st.fpa:host1/11", f"{url}:host1/13"], tmp_path / "two.folded")
    with pytest.raises(UsageError, match=r"^s3://bucket/st\.fpa:x: the archive has no profile 'x', only host"):
        fastprof.info(f"{url}:x")
    with fastprof.open(f"{url}:host1/11") as profile:
        rows = sum(map(len, profile))
        adding.add(path, [str(GRAPH)], name="more")
        bucket.put("st.fpa", Path(path).read_bytes())
        with pytest.raises(FastprofError, match=r"st\.fpa\S*: (the archive was replaced|changed) "):
            assert rows and sum(map(len, fastprof.open(f"{url}:host1/11"))) and sum(map(len, profile))


def test_a_store_whose_server_has_no_ranges(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "st.fpa")
    with adding.adding(path) as session:
        for name in "ab":
            session.add(str(GRAPH), name)
    url = bucket.put("st.fpa", Path(path).read_bytes())
    monkeypatch.setattr(remote, "_checked", lambda _: None)
    fastprof.merge([f"{url}:a", f"{url}:b"], tmp_path / "got.folded")
    fastprof.merge(f"{path}:*", tmp_path / "want.folded")
    assert (tmp_path / "got.folded").read_bytes() == (tmp_path / "want.folded").read_bytes()
    assert fastprof.info(url).facts["profiles"] == 2


def test_profiles_behind_urls_are_added_to_a_store(bucket: Bucket, tmp_path: Path) -> None:
    for key in ("dir/a.callgrind", "dir/deep/b.callgrind", "c.callgrind"):
        bucket.put(key, GRAPH.read_bytes())
    path = str(tmp_path / "s.fpa")
    adding.add(path, ["s3://bucket/dir/", f"{bucket.http}/c.callgrind?signature"])
    assert {m["name"] for m in listing.members(path)} == {"a.callgrind", "deep/b.callgrind", "c.callgrind"}


def test_ranges_are_those_of_one_object(bucket: Bucket) -> None:
    url = bucket.put("x", NOISE)
    source = Source(url)
    source.use_ranges()
    assert source.seekable and source.size == len(NOISE)
    assert source.read_at(5_000_000, 2_500_000) == NOISE[5_000_000:7_500_000]
    assert source.read_at(len(NOISE) - 3, 100) == NOISE[-3:]
    before = len(bucket.proxy.seen)
    assert source.read_at(len(NOISE) - 30, 20) == NOISE[-30:-10]
    assert len(bucket.proxy.seen) == before  # still cached
    bucket.put("x", NOISE[::-1])
    with pytest.raises(FastprofError, match=r"^s3://bucket/x: changed while it was read$"):
        source.read_at(0, 10)
    source.close()


# ---- failures while reading -----------------------------------------------------

ALWAYS = float("inf")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(status=503), ""),
        (Fault(cut=1_000_000), ""),
        (Fault(status=500, times=ALWAYS), "the server answered 500 Internal Server Error"),
        (Fault(status=503, times=ALWAYS), "the server answered 503 Service Unavailable"),
        (Fault(status=403, times=ALWAYS), "the server answered 403 Forbidden"),
        (Fault(cut=0, times=ALWAYS), "the connection ended after 0 of 9,000,000 bytes"),
        (Fault(cut=1_000_000, times=ALWAYS), r"the connection ended after [0-9,]+ of 9,000,000 bytes"),
    ],
    ids=["503", "cut", "500s", "503s", "403s", "cut-all", "cuts"],
)
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_faults(scheme: str, fault: Fault, message: str, bucket: Bucket) -> None:
    url = bucket.put("x", NOISE)
    if scheme == "http":
        url = f"{bucket.http}/x"
    bucket.proxy.faults = [Fault(**vars(fault))]
    if message:
        with pytest.raises(FileError, match=f"^{url}: {message}$") as caught:
            read_all(Source(f"{url}{'?secret=1' * (scheme == 'http')}"))
        assert caught.value.status == (fault.status or None) and caught.value.filename == url and caught.value.__cause__
    else:
        assert read_all(Source(url)) == NOISE


def store_of_two(path: Path) -> bytes:
    for name in "ab":
        adding.add(str(path), [str(POOL)], name=name)
    return path.read_bytes()


@pytest.mark.parametrize("verb", ["convert", "member", "info", "merge", "add", "report"])
@pytest.mark.parametrize("fault", [Fault(status=500), Fault(cut=9)], ids=["500", "cut"])
def test_each_request_fails(verb: str, fault: Fault, bucket: Bucket, tmp_path: Path) -> None:
    """The first and all later requests, the second and all later ones, ... until none fails."""
    one, two = (bucket.put(f"{n}.callgrind", GRAPH.read_bytes()) for n in (1, 2))
    log = bucket.put("log.xray", POOL.read_bytes())
    store_ = bucket.put("store.fpa", store_of_two(tmp_path / "store"))
    out = tmp_path / "out.fpa"
    before = {*tmp_path.iterdir()}
    actions: dict[str, Callable[[], object]] = {
        "convert": lambda: fastprof.convert(log, out),
        "member": lambda: fastprof.convert(store_, out, member="b"),
        "info": lambda: fastprof.info(store_, member="a"),
        "merge": lambda: fastprof.merge([one, two], out),
        "add": lambda: adding.add(str(out), [one, two, log], replace=True),
        "report": lambda: fastprof.report(one, out),
    }
    failed, good = 0, False
    while not good:
        bucket.proxy.faults = [Fault(**vars(fault) | {"times": ALWAYS, "skip": failed})]
        try:
            actions[verb]()
            good = True
        except FastprofError as error:
            failed += 1
            assert str(error).startswith("s3://bucket/"), error
            if verb != "add":  # profiles added so far stay
                assert {*tmp_path.iterdir()} == before
        else:
            assert failed


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_an_object_that_changes_while_it_is_read(scheme: str, bucket: Bucket) -> None:
    url = bucket.put("x", NOISE)
    bucket.proxy.faults = [Fault(cut=1_000_000, meanwhile=lambda: bucket.put("x", NOISE[::-1]))]
    if scheme == "http":
        url = f"{bucket.http}/x"
    with pytest.raises(FastprofError, match=f"^{url}: changed while it was read$"):
        read_all(Source(url))


def test_an_object_that_changes_between_two_readings(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "SMALL", 0)  # objects are not kept
    monkeypatch.setattr(prefetch, "AT_ONCE", 1)
    urls = [bucket.put(name, GRAPH.read_bytes()) for name in "ab"]
    # a is inspected first, then b
    bucket.proxy.faults = [Fault(target="/b", cut=10**9, meanwhile=lambda: bucket.put("a", GRAPH.read_bytes() + b"\n"))]
    with pytest.raises(FastprofError, match=r"^s3://bucket/a: changed while other inputs were read"):
        fastprof.merge(urls, tmp_path / "out.callgrind")
    assert not (tmp_path / "out.callgrind").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://bucket/none", "^s3://bucket/none: no such object$"),
        ("s3://no-such-bucket/none", "^s3://no-such-bucket/none: no such object$"),
        ("s3://bucket", "^s3://bucket: expected s3://BUCKET/NAME$"),
        ("s3://bucket/none/", "^s3://bucket/none/: no objects below this prefix$"),
        ("http://me:secret@127.0.0.1:9/x?secret", "^http://127.0.0.1:9/x: Connection refused$"),
    ],
)
def test_what_is_not_there(url: str, message: str, bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(FastprofError, match=message) as caught:
        fastprof.convert(url, tmp_path / "out.callgrind")
    assert "secret" not in str(caught.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("s3://bucket/x", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true"),
        ("gs://bucket/x", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az://bucket/x", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_SKIP_SIGNATURE=true"),
    ],
)
def test_no_credentials(url: str, advice: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", str(tmp_path))
    for open_ in (Source, Sink):
        with pytest.raises(FastprofError, match=f"^{url}: no credentials: set {advice}"):
            open_(url)
    assert not bucket.proxy.seen


def test_what_anybody_may_read(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.s3.put_object(Bucket="bucket", Key="x", Body=b"1", ACL="public-read")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert read_all(Source("s3://bucket/x")) == b"1"


def test_a_user_in_the_url(bucket: Bucket) -> None:
    bucket.put("x", b"1")
    assert read_all(Source(f"{bucket.http}/x".replace("://", "://me:a%40b@"))) == b"1"
    assert bucket.proxy.authorized[-1] == "Basic bWU6YUBi"


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_the_other_clouds(scheme: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server exists for these: the requests are those that S3 understands, too."""
    bucket.put("some/x", b"1")
    monkeypatch.setenv("GOOGLE_BASE_URL", bucket.proxy.url)
    monkeypatch.setenv("AZURE_ENDPOINT", bucket.proxy.url)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "me")
    for prefix in ("GOOGLE", "AZURE"):
        monkeypatch.setenv(f"{prefix}_SKIP_SIGNATURE", "true")
        monkeypatch.setenv(f"{prefix}_ALLOW_HTTP", "true")
    assert read_all(Source(f"{scheme}://bucket/some/x")) == b"1"
    if scheme == "gs":
        with pytest.raises(FastprofError, match=r"^gs://bucket/y: no credentials: set GOOGLE_APPLICATION_CRED\w+$"):
            Sink("gs://bucket/y")
        monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "me")
    with Sink(f"{scheme}://bucket/some/y.gz") as sink:
        sink.write(b"2")
        sink.commit()
    assert gzip.decompress(bucket.get("some/y.gz")) == b"2"
    seen = [unquote(seen) for seen in bucket.proxy.seen]
    assert seen == ["GET /bucket/some/x", "PUT /bucket/some/y.gz"]


def test_without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(
        FastprofError,
        match=r"^s3://b/x: URLs need obstore: run `pip install (?:-e )?'(?:\.|fastprof-tools)\[remote\]'`",
    ):
        Source("s3://b/x")


# ---- writing ------------------------------------------------------------------


def test_large_objects_are_sent_in_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("big.bin", b"before")
    with Sink("s3://bucket/big.bin") as sink:
        for _ in range(3):
            sink.write(NOISE)
        wait_for(lambda: bool(bucket.unfinished()))
        assert bucket.get("big.bin") == b"before"
        sink.commit()
    assert bucket.get("big.bin") == NOISE * 3
    assert sum("partNumber" in seen for seen in bucket.proxy.seen) == 4
    bucket.proxy.seen.clear()
    with Sink("s3://bucket/small.bin") as sink:
        sink.write(b"small")
        sink.commit()
    assert bucket.proxy.seen == ["PUT /bucket/small.bin"]
    assert bucket.get("small.bin") == b"small"


def test_nothing_is_left_without_commit(bucket: Bucket) -> None:
    for nbytes in (1, 3 * len(NOISE)):
        with pytest.raises(ZeroDivisionError), Sink("s3://bucket/x.gz") as sink:
            for _ in range(0, nbytes, len(NOISE)):
                sink.write(NOISE[:nbytes])
            raise ZeroDivisionError
    assert not bucket.keys() and not bucket.unfinished()


@pytest.mark.parametrize("times", [1, ALWAYS], ids=["once", "always"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", "uploads", 503),
        Fault("PUT", "partNumber=1", 503),
        Fault("PUT", "partNumber=2", 500),
        Fault("POST", "uploadId", 500),
    ],
    ids=["begin", "first", "second", "end"],
)
def test_faults_of_uploads(fault: Fault, times: float, bucket: Bucket) -> None:
    bucket.proxy.faults = [Fault(fault.method, fault.target, fault.status, times=times)]

    def write() -> None:
        with Sink("s3://bucket/x.bin") as sink:
            for _ in range(5):
                sink.write(NOISE)
            sink.commit()

    if times == 1:
        write()
        assert bucket.get("x.bin") == NOISE * 5
    else:
        with pytest.raises(FastprofError, match=f"^s3://bucket/x.bin: the server answered {fault.status} "):
            write()
        assert not bucket.keys() and not bucket.unfinished()


def test_a_bad_input_leaves_no_object(bucket: Bucket) -> None:
    cut = POOL.read_bytes()[:-100]
    url = bucket.put("cut.xray", cut)
    with pytest.raises(FastprofError, match=r"^s3://bucket/cut\.xray: xray: at byte"):
        fastprof.convert(url, "s3://bucket/out.callgrind")
    assert bucket.keys() == ["cut.xray"]


INTERRUPTED = """
import os, sys
from fastprof.core.sink import Sink
from fastprof.cli import main, _terminated
import signal
signal.signal(signal.SIGTERM, _terminated)
try:
    with Sink("s3://bucket/x.bin") as sink:
        for _ in range(4):
            sink.write(os.urandom(9_000_000))
        print("writing", flush=True)
        signal.pause()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_upload_is_aborted(number: int, bucket: Bucket) -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, preexec_fn=heard)
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "writing\n"
        wait_for(lambda: bool(bucket.unfinished()))
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert not bucket.keys() and not bucket.unfinished()


def test_an_interrupt_is_heard_while_waiting_for_a_server(bucket: Bucket) -> None:
    """obstore does not handle signals, and a server may be silent for a minute."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.callgrind"
        command = [sys.executable, "-m", "fastprof", "info", url]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heard)
        with process:
            there, _ = silent.accept()
            there.recv(1000)
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == -signal.SIGINT
            assert time.monotonic() - begun < 30  # otherwise it ends after 60 s of silence, six times
            there.close()


def test_command_line(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("pool.xray", POOL.read_bytes())

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, "-m", "fastprof", *words], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "secret" not in done.stderr + done.stdout
        return done

    secret = bucket.http.replace("://", "://secret:secret@")
    done = run("convert", "s3://bucket/pool.xray", "-t", "pprof", "-o", "s3://bucket/y.pb.gz", "--json")
    assert json.loads(done.stderr)["facts"]["output_bytes"] == len(bucket.get("y.pb.gz"))
    assert "s3://bucket/y.pb.gz" in run("convert", "s3://bucket/pool.xray", "-o", "s3://bucket/y.pb.gz").stderr
    url = f"{bucket.http}/pool.xray?secret"
    assert json.loads(run("info", url, "--json").stdout)["facts"]["file"] == f"{bucket.http}/pool.xray"
    for verb in ("top", "diff", "annotate"):
        run(verb, url, *[url] * (verb == "diff"))
    run("report", url, "-o", "s3://bucket/page.html")
    assert b"secret" not in bucket.get("page.html")
    assert f"{bucket.http}/none.xray" in run("info", f"{secret}/none.xray?secret", code=1).stderr
    assert run("info", "s3://bucket/pool.xray", "--from", "pprof", code=1).stderr.startswith(
        "fastprof: s3://bucket/pool.xray: pprof: "
    )
    run("archive", "list", "s3://bucket/pool.xray", code=1)
    for name in ("a", "b"):
        run("archive", "add", str(tmp_path / "two.fpa"), str(POOL), "--name", name)
    bucket.put("two.fpa", (tmp_path / "two.fpa").read_bytes())
    assert run("archive", "list", f"{bucket.http}/two.fpa?secret").stdout.split("\n")[1].startswith("a ")
    run("archive", "extract", f"{bucket.http}/two.fpa?secret", "b", "-o", "s3://bucket/b.callgrind")
    assert bucket.get("b.callgrind").startswith(b"# callgrind format")


def wait_for(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.02)
