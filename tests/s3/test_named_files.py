"""Files of another table on a real S3 server: every way to name them, every way to read or delete them, caller."""

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.errors import UnsupportedError
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.purge_job import PurgeJob
from support.servers.asgi_client import SCHEMA, AsgiResponse
from support.servers.granted_server import GrantedServer
from support.servers.named_files import DATA, FUTURE, SET_MAIN, TABLES, WAYS, Stage
from support.servers.s3_server import REGION, S3Server

LOCAL = {"host": "localhost:8181"}
YEAR_MS = 365 * 86_400_000
CASES = [(way, caller) for way in WAYS for caller in ("hidden", "readable")]


class StageOnS3(Stage):
    """The same two tables in a bucket; `ann` has no keys, and asks for signatures."""

    def __init__(self, granted: GrantedServer, s3_server: S3Server) -> None:
        super().__init__(granted)
        self._endpoint, self._objects = s3_server.endpoint, s3_server.objects

    def files_of_theirs(self) -> dict[str, bytes]:
        """All objects in the directory of the other table, by bucket and key."""
        home = self._objects / self.theirs.location.removeprefix("s3://")
        return {str(p.relative_to(self._objects)): p.read_bytes() for p in home.rglob("*") if p.is_file()}

    def sign(self, method: str, key: str, tables: str) -> AsgiResponse:
        wish = {"region": REGION, "uri": f"{self._endpoint}/{key}", "method": method, "headers": {}}
        return self.granted("ann", "POST", f"{tables}/sign", wish)


@pytest.fixture
def stage(tmp_path: Path, bucket: str, s3_server: S3Server) -> Iterator[StageOnS3]:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        limits=ServerSettings(drop_retention_s=3600),
        remote_signing=True,
    )
    granted = GrantedServer(context, "ann")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    granted("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    yield StageOnS3(granted, s3_server)
    granted.client.application.close()


def statuses(stage: StageOnS3, key: str, tables: str) -> set[int]:
    return {stage.sign(method, key, tables).status for method in ("GET", "HEAD", "PUT", "DELETE")}


def check_reads(stage: StageOnS3, way: str, *, may_read: bool) -> None:
    """What `ann` reads of the other table by one of her own that names its files: nothing that she may not."""
    plan = stage.granted("ann", "POST", f"{TABLES}/t/plan", {"snapshot-id": 77, "stats-fields": ["id"]})
    assert plan.status == (200 if way in DATA else 403), plan
    if way == "data file":  # of a page that is made in a process of its own
        shown = stage.granted("ann", "GET", "/table/rows.json", query={"name": "mine.t"}, headers=LOCAL).json
        assert shown["rows"] == []
        assert "expected files in the table's own directories" in shown["problem"]["message"]
    for key in stage.files_of_theirs():
        assert statuses(stage, key, f"{TABLES}/t") == {403}, key
        of_theirs = "/v1/namespaces/db/tables/orders"
        assert stage.sign("GET", key, of_theirs).status == (200 if may_read else 404)
        assert {stage.sign(m, key, of_theirs).status for m in ("PUT", "DELETE")} == {403 if may_read else 404}


def delete_all(stage: StageOnS3, *, by_purge: bool) -> None:
    """Rows, snapshots, orphans, then the table: by a purge, or by the end of its time in the trash."""
    mine = stage.mine.refresh()
    mine.delete("true")
    mine.append(mine.scan().to_arrow())
    mine.expire(older_than=FUTURE, retain_last=1)
    mine.sweep_orphans(mine.plan_orphans(older_than=dt.datetime.now(dt.UTC), allow_recent=True))
    if by_purge:
        stage.lake.purge_table("mine.t")
        return
    assert stage.granted("ann", "DELETE", f"{TABLES}/t", query={"purgeRequested": "true"}).status == 204
    assert stage.granted("ann", "POST", "/bergline/v1/namespaces/mine/tables/t/undrop", {}).status == 200
    assert stage.granted("ann", "DELETE", f"{TABLES}/t", query={"purgeRequested": "true"}).status == 204
    job = PurgeJob(stage.granted.context, clock_ms=lambda: time.time_ns() // 1_000_000 + YEAR_MS)
    while job.run_once():
        pass


@pytest.mark.kinds(8)
@pytest.mark.parametrize(("way", "caller"), CASES)
def test_files_of_another_table_are_neither_read_nor_deleted(stage: StageOnS3, way: str, caller: str) -> None:
    before, may_read = stage.files_of_theirs(), caller == "readable"
    if may_read:
        stage.granted.grant("read", "table db.orders", "ann")
    updates = [*WAYS[way](stage), *([SET_MAIN] if way in DATA else [])]
    by_ann = stage.commit(*updates)
    assert by_ann.status == (200 if may_read and way in DATA else 403), by_ann
    made = by_ann.status == 200 or stage.commit(*updates, who="root").status == 200  # as before there were grants
    if made and "statistics" not in way:
        check_reads(stage, way, may_read=may_read)
    if made and way == "beside its own":
        with pytest.raises(UnsupportedError, match="nothing was changed or deleted"):
            delete_all(stage, by_purge=may_read)
    else:
        delete_all(stage, by_purge=may_read)
    assert stage.files_of_theirs() == before
    assert stage.theirs.refresh().scan().to_arrow().num_rows == 1
