"""What only an object store does: uploads in parts, lost answers, wrong keys, servers that go away."""

import os
import pickle
import socket
import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.io import conditional_writes, open_store
from bergline.io.fileio import FileIO
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.testing.file_io_suite import KEYS
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

MIB = 1024 * 1024


@pytest.fixture
def files(s3_server: S3Server) -> FileIO:
    return ObjectStoreFileIO(s3_server.properties)


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def far_files(s3_server: S3Server, proxy: Proxy) -> FileIO:
    return ObjectStoreFileIO({**s3_server.properties, "s3.endpoint": proxy.endpoint})


@pytest.fixture
def arrow(s3_server: S3Server) -> pyarrow.fs.S3FileSystem:
    return pyarrow.fs.S3FileSystem(
        access_key=ACCESS_KEY, secret_key=SECRET_KEY, endpoint_override=s3_server.endpoint, region=REGION
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_store, "RETRY_SECONDS", 1)
    monkeypatch.setattr(conditional_writes, "RETRY_SECONDS", 1)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("key", KEYS)
def test_peers_see_the_same_key(files: FileIO, arrow: pyarrow.fs.S3FileSystem, bucket: str, key: str) -> None:
    files.create(f"{bucket}/d/{key}", b"ours")
    name = bucket.removeprefix("s3://")
    with arrow.open_input_stream(f"{name}/d/{key}") as stream:
        assert stream.read() == b"ours"
    selected = arrow.get_file_info(pyarrow.fs.FileSelector(f"{name}/d", recursive=True))
    assert [found.path for found in selected if found.is_file] == [f"{name}/d/{key}"]


def test_all_spellings_of_the_scheme_reach_one_object(files: FileIO, bucket: str) -> None:
    files.create(f"{bucket}/x", b"1")
    for scheme in ("s3a", "s3n", "S3"):
        location = f"{scheme}{bucket[2:]}/x"
        assert files.read(location) == b"1"
        with pytest.raises(AlreadyExistsError):
            files.create(location, b"2")


@pytest.mark.parametrize("close", [False, True])
def test_abort_leaves_no_part_of_an_upload(s3_server: S3Server, files: FileIO, bucket: str, close: bool) -> None:
    name = bucket.removeprefix("s3://")
    output = files.create_output(f"{bucket}/x")
    output.stream().write(os.urandom(50 * MIB))
    assert s3_server.uploads_under_way(name)
    if close:
        files.create(f"{bucket}/x", b"winner")
        with pytest.raises(AlreadyExistsError):
            output.close()
    else:
        output.abort()
    assert s3_server.uploads_under_way(name) == []
    assert files.list(bucket) == ([f"{bucket}/x"] if close else [])


def test_upload_that_cannot_be_completed_is_a_storage_error(
    s3_server: S3Server, proxy: Proxy, far_files: FileIO, bucket: str, impatient: None
) -> None:
    output = far_files.create_output(f"{bucket}/x")
    output.stream().write(bytes(40 * MIB))
    proxy.lose_answers = 1000
    with pytest.raises((StorageError, UnavailableError), match=f"{bucket}/x"):
        output.close()
    output.abort()
    proxy.lose_answers = 0
    assert far_files.list(bucket) == []


def test_lost_answer_to_a_create_is_settled_by_the_bytes(proxy: Proxy, far_files: FileIO, bucket: str) -> None:
    proxy.lose_answers = 1
    far_files.create(f"{bucket}/x", b"ours")
    assert far_files.read(f"{bucket}/x") == b"ours"
    assert [request.split()[0] for request in proxy.requests] == ["PUT", "PUT", "GET", "GET"]


def test_lost_answer_to_a_create_of_a_taken_name_is_already_exists(
    files: FileIO, proxy: Proxy, far_files: FileIO, bucket: str
) -> None:
    files.create(f"{bucket}/x", b"theirs")
    proxy.lose_answers = 1
    with pytest.raises(AlreadyExistsError):
        far_files.create(f"{bucket}/x", b"ours, ")
    assert files.read(f"{bucket}/x") == b"theirs"


def test_reading_a_parquet_file_costs_few_requests(files: FileIO, proxy: Proxy, far_files: FileIO, bucket: str) -> None:
    small = pa.table({f"c{i}": range(1000) for i in range(20)})
    large = pa.table({"a": pa.array(os.urandom(8) for _ in range(400_000)), "b": range(400_000)})
    for name, table, columns, most in (("small", small, None, 1), ("large", large, ["b"], 4)):
        output = files.create_output(f"{bucket}/{name}")
        pq.write_table(table, output.stream(), row_group_size=200_000)
        output.close()
        proxy.requests.clear()
        with far_files.open_input(f"{bucket}/{name}") as stream, pq.ParquetFile(stream) as file:
            assert file.read(columns=columns).num_rows == table.num_rows
        assert 1 <= len(proxy.requests) <= most, proxy.requests


def test_object_that_vanishes_while_it_is_read_is_not_found(files: FileIO, bucket: str) -> None:
    table = pa.table({"a": pa.array(os.urandom(8) for _ in range(200_000))})
    output = files.create_output(f"{bucket}/x")
    pq.write_table(table, output.stream())
    output.close()
    with files.open_input(f"{bucket}/x") as stream, pq.ParquetFile(stream) as file:
        files.delete([f"{bucket}/x"])
        with pytest.raises(NotFoundError, match="no file"):
            file.read()


def test_thousands_are_deleted_in_bulk(s3_server: S3Server, proxy: Proxy, far_files: FileIO, bucket: str) -> None:
    directory = s3_server.objects / bucket.removeprefix("s3://")
    for number in range(2500):
        (directory / f"f{number}").touch()
    found = far_files.list(bucket)
    assert len(found) == 2500
    proxy.requests.clear()
    assert far_files.delete([*found, f"{bucket}/none"]) == []
    assert far_files.list(bucket) == []
    assert len([request for request in proxy.requests if "delete" in request]) == 3


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("s3://", InvalidInputError),
        ("s3:///key", InvalidInputError),
        ("s3:/bucket/key", InvalidInputError),
        ("s3://bucket", InvalidInputError),
        ("s3://bucket/", InvalidInputError),
        ("s3://no bucket/key", InvalidInputError),
        ("s3://user:pass@bucket/key", InvalidInputError),
        ("s3://bucket/a//b", UnsupportedError),
        ("s3://bucket/a/", UnsupportedError),
        ("s3://bucket/../b", UnsupportedError),
        ("s3://bucket/a\nb", UnsupportedError),
    ],
)
def test_location_that_is_no_object_is_refused(files: FileIO, location: str, error: type[BerglineError]) -> None:
    create = partial(files.create, data=b"")
    for use in (files.read, files.open_input, files.exists, files.create_output, create):
        with pytest.raises(error, match="found"):
            use(location)


def test_bucket_that_does_not_exist(files: FileIO) -> None:
    for use in (files.read, files.open_input, files.list, lambda place: files.create(place, b"")):
        with pytest.raises(NotFoundError, match="no bucket for s3://none-such/x") as caught:
            use("s3://none-such/x")
        assert caught.value.kind == "bucket"
    assert not files.exists("s3://none-such/x")
    assert files.delete(["s3://none-such/x"]) == ["s3://none-such/x"]


@pytest.mark.parametrize(
    "wrong", [{"s3.secret-access-key": "not-the-secret"}, {"s3.access-key-id": "nobody"}], ids=["secret", "key"]
)
def test_wrong_credentials_are_an_authentication_error_without_the_secret(
    s3_server: S3Server, files: FileIO, bucket: str, wrong: dict[str, str]
) -> None:
    files.create(f"{bucket}/x", b"")
    stranger = ObjectStoreFileIO({**s3_server.properties, **wrong})
    for use in (stranger.read, stranger.list, lambda place: stranger.create(place, b"")):
        with pytest.raises(AuthenticationError) as caught:
            use(f"{bucket}/x")
        assert f"{bucket}/x" in str(caught.value)
        assert not any(secret in repr(caught.value) for secret in (SECRET_KEY, "not-the-secret"))
        assert caught.value.__cause__ is None
    assert stranger.delete([f"{bucket}/x"]) == [f"{bucket}/x"]
    assert files.exists(f"{bucket}/x")


@pytest.mark.usefixtures("impatient")
def test_server_that_is_gone_is_given_up_in_time(closed_port: int) -> None:
    gone = ObjectStoreFileIO(
        {
            "s3.endpoint": f"http://127.0.0.1:{closed_port}",
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
        }
    )
    for use in (gone.read, lambda place: gone.create(place, b"")):
        start = time.monotonic()
        with pytest.raises(UnavailableError, match=r"s3://bucket/x: the server http://127.0.0.1:.* cannot be reached"):
            use("s3://bucket/x")
        assert time.monotonic() - start < 60
    locations = [f"s3://bucket/{number}" for number in range(2000)]
    assert gone.delete(locations) == locations


@pytest.mark.usefixtures("impatient")
def test_answers_that_stay_away_leave_reads_unavailable_and_writes_in_doubt(
    proxy: Proxy, far_files: FileIO, bucket: str
) -> None:
    far_files.create(f"{bucket}/x", b"")
    proxy.lose_answers = 1000
    with pytest.raises(UnavailableError, match=r"the connection to the server .* was lost"):
        far_files.read(f"{bucket}/x")
    with pytest.raises(StorageError, match=r"the connection to the server .* was lost"):
        far_files.create(f"{bucket}/y", b"")


def test_storage_can_be_sent_to_another_process_and_opens_its_buckets_there(s3_server: S3Server, bucket: str) -> None:
    files = SchemeFileIO(properties=s3_server.properties)
    files.create(f"{bucket}/x", b"1")
    there = pickle.loads(pickle.dumps(files))  # noqa: S301
    assert there.read(f"{bucket}/x") == b"1"


def test_environment_gives_what_properties_leave_out(
    s3_server: S3Server, files: FileIO, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.create(f"{bucket}/x", b"1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", REGION)
    assert ObjectStoreFileIO().read(f"{bucket}/x") == b"1"


def test_properties_come_before_the_environment(
    s3_server: S3Server, files: FileIO, bucket: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.create(f"{bucket}/x", b"1")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "another")
    assert ObjectStoreFileIO(s3_server.properties).read(f"{bucket}/x") == b"1"


@pytest.mark.usefixtures("impatient")
def test_output_that_could_not_be_closed_does_not_take_away_what_was_there(
    files: FileIO, proxy: Proxy, far_files: FileIO, bucket: str
) -> None:
    files.create(f"{bucket}/x", b"theirs")
    output = far_files.create_output(f"{bucket}/x")
    output.stream().write(b"ours")
    proxy.lose_answers = 1000
    with pytest.raises((StorageError, AlreadyExistsError)):
        output.close()
    proxy.lose_answers = 0
    output.abort()
    assert files.read(f"{bucket}/x") == b"theirs"


def test_batch_with_an_object_that_cannot_be_deleted_names_only_that_one(
    s3_server: S3Server, files: FileIO, bucket: str
) -> None:
    files.create(f"{bucket}/a", b"")
    files.create(f"{bucket}/dir/b", b"")
    assert files.delete([f"{bucket}/a", f"{bucket}/{'x' * 2000}", f"{bucket}/dir/b"]) == [f"{bucket}/{'x' * 2000}"]
    assert files.list(bucket) == []


@pytest.mark.usefixtures("impatient")
def test_nothing_follows_a_write_that_failed(s3_server: S3Server, proxy: Proxy, far_files: FileIO, bucket: str) -> None:
    output = far_files.create_output(f"{bucket}/x")
    output.stream().write(bytes(20 * MIB))
    proxy.lose_answers = 1000
    with pytest.raises(StorageError, match="cannot write"):
        output.stream().write(bytes(80 * MIB))
    proxy.lose_answers = 0
    with pytest.raises(InvalidInputError, match="closed or failed"):
        output.stream().write(bytes(20 * MIB))
    with pytest.raises(InvalidInputError, match="closed or failed"):
        output.close()
    output.abort()
    assert far_files.list(bucket) == []
