"""Lakes on REST servers: connections cut while tables are written, and files with credentials that come along."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline.errors import BerglineError, CommitUnknownError, ConflictError, UnavailableError
from bergline.table.scans.scan import TableScan
from support.fixtures.concurrency import run_for_each
from support.proxies.disconnecting_proxy import CuttingProxy
from support.servers.bergline_server import BerglineServer
from support.servers.java_rest_server import JavaRestServer
from support.servers.s3_server import S3Server
from support.servers.scripted_rest_server import Reply, RestScript, load_answer

_WRITERS, _ROUNDS = 3, 4
COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture(params=["reference", "ours"])
def uri(request: pytest.FixtureRequest) -> str:
    name = "java_rest_server" if request.param == "reference" else "bergline_server"
    server: JavaRestServer | BerglineServer = request.getfixturevalue(name)
    return server.uri


@pytest.fixture
def proxy(uri: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(uri, seed=7) as opened:
        yield opened


def test_every_acknowledged_commit_is_there_once_whatever_is_cut(proxy: CuttingProxy, tmp_path: Path) -> None:
    """What is acknowledged is there once, what is refused is not there, and only what is unknown may be either."""
    space = f"cut_{tmp_path.name}".replace("-", "_")
    quick = {"commit.status-check.min-wait-ms": "1", "commit.retry.min-wait-ms": "1", "commit.retry.num-retries": "50"}
    with bergline.connect(proxy.uri) as lake:
        lake.create_namespace(space)
        lake.create_table(f"{space}.orders", COLUMNS, properties=quick)
    done: list[int] = []
    perhaps: list[int] = []

    def write(writer: int) -> None:
        for number in range(_ROUNDS):
            row = writer * 100 + number
            try:
                tables[writer].append(pa.table({"id": [row]}, schema=COLUMNS))
                done.append(row)
            except CommitUnknownError:
                perhaps.append(row)
            except (ConflictError, UnavailableError):
                pass

    with ExitStack() as opened:
        lakes = [opened.enter_context(bergline.connect(proxy.uri)) for _ in range(_WRITERS)]
        tables = [lake.load_table(f"{space}.orders") for lake in lakes]
        proxy.cuts = 0.2
        run_for_each(write, range(_WRITERS))
        proxy.cuts = 0
    with bergline.connect(proxy.uri) as lake:
        found = lake.load_table(f"{space}.orders").scan().to_arrow()["id"].to_pylist()
    assert len(found) == len(set(found))
    assert set(done) <= set(found) <= set(done) | set(perhaps)
    assert sum(proxy.counts.values()) > 0
    assert len(done) > _WRITERS * _ROUNDS / 2


def answer_for_orders(keys: dict[str, str], bucket: str, directory: Path) -> dict[str, Any]:
    """What a server says of a table with two rows in a bucket."""
    with bergline.connect(f"sqlite:///{directory}/catalog.db", warehouse=bucket, properties=keys, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", COLUMNS)
        table.append(pa.table({"id": [1, 2]}, schema=COLUMNS))
        return load_answer(lake.catalog.load_table(table.name))


def test_files_are_read_and_written_with_what_the_server_hands_out(
    s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    """The client has no keys of its own; without those of the server it gets nowhere."""
    keys = s3_server.properties
    answer = answer_for_orders(keys, bucket, tmp_path)
    credentials = [{"prefix": f"{bucket}/", "config": keys}]
    with RestScript() as server:
        server.on("GET /v1/namespaces/db/tables/orders", Reply(body={**answer, "storage-credentials": credentials}))
        with bergline.connect(server.uri) as reader:
            assert reader.load_table("db.orders").scan().to_arrow()["id"].to_pylist() == [1, 2]
        wrong = {**keys, "s3.secret-access-key": "wrong"}
        server.on("GET /v1/namespaces/db/tables/orders", Reply(body={**answer, "config": wrong}))
        with bergline.connect(server.uri) as reader, pytest.raises(BerglineError) as caught:
            reader.load_table("db.orders").scan().to_arrow()
        assert "wrong" not in str(caught.value)


def test_credentials_that_are_about_to_expire_are_renewed_before_files_are_opened(
    s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    """Those that came with the table are wrong by now; those of the credentials endpoint open the files."""
    keys = s3_server.properties
    answer = answer_for_orders(keys, bucket, tmp_path)
    now_ms = time.time_ns() // 1_000_000

    def lent(secret: str, lives_ms: int) -> list[dict[str, object]]:
        config = keys | {"s3.secret-access-key": secret, "s3.session-token-expires-at-ms": str(now_ms + lives_ms)}
        return [{"prefix": f"{bucket}/", "config": config}]

    path = "GET /v1/namespaces/db/tables/orders"
    with RestScript() as server:
        server.on(path, Reply(body={**answer, "storage-credentials": lent("old", 60_000)}))
        fresh = lent(keys["s3.secret-access-key"], 3_600_000)
        server.on(f"{path}/credentials", Reply(body={"storage-credentials": fresh}))
        with bergline.connect(server.uri) as reader:
            for _ in range(2):
                assert reader.load_table("db.orders").refresh().scan().to_arrow()["id"].to_pylist() == [1, 2]
        assert len(server.sent(f"{path}/credentials")) >= 1


def overwrite_what_was_read(lake: bergline.Lake, table: bergline.Table, read: TableScan, way: str) -> None:
    if way == "replaced table":
        with lake.stage_table(table.name, COLUMNS, replace=True, validate_from=read) as new:
            new.append(read.to_arrow())
    else:
        table.overwrite(read, None if way == "overwrite" else "id > 0")


@pytest.mark.parametrize("way", ["overwrite", "overwrite by filter", "replaced table"])
def test_rows_that_land_while_an_overwrite_is_sent_are_a_conflict(
    uri: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = f"read_{tmp_path.name}".replace("-", "_")
    with bergline.connect(uri, create=True) as lake, bergline.connect(uri, create=True) as other:
        lake.create_namespace(space)
        table = lake.create_table(f"{space}.orders", COLUMNS).append(pa.table({"id": [1]}, schema=COLUMNS))
        read, send = table.scan(), lake.catalog.commit
        theirs = [other.load_table(f"{space}.orders")]

        def overtaken(*changes: Any, **more: Any) -> Any:
            if theirs:  # after everything was validated, before the server has it
                theirs.pop().append(pa.table({"id": [2]}, schema=COLUMNS))
            return send(*changes, **more)

        monkeypatch.setattr(lake.catalog, "commit", overtaken)
        with pytest.raises(ConflictError, match="came first and added"):
            overwrite_what_was_read(lake, table, read, way)
        assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
