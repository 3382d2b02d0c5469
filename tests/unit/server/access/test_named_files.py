"""Every way to name a file that is another table's, by a caller who may read it and one who may not."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.table_locations import FORMER_DIRECTORIES
from bergline.errors import RefusedError, UnavailableError
from bergline.format.manifest.manifest import EntryStatus, ManifestFile
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.table_metadata import (
    MetadataLogEntry,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
)
from bergline.format.metadata.updates import AddSnapshot, SetProperties, Update
from bergline.server.access import named_files
from bergline.server.opening import open_server
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer
from support.servers.named_files import DATA, FUTURE, SET_MAIN, TABLES, WAYS, Body, Stage, file_of, manifests_of


@pytest.fixture
def stage(granted: GrantedServer) -> Stage:
    return Stage(granted)


class Asked:
    """The same stage, whose checks are called; `bob` may read `db.orders`, and who else is `ann`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.name = TableName(("mine",), "t")
        self.files = stage.granted.context.named_files
        self.base = stage.mine.refresh().metadata
        self.theirs = stage.theirs.current_snapshot.manifest_list
        stage.granted.grant("read", "table db.orders", "bob")

    def may_name(self, *bodies: Body, who: str = "ann", base: TableMetadata | None = None) -> bool:
        """Whether a commit may name what it names."""
        updates = msgspec.convert(bodies, list[Update])
        return self.passes(self.files.check_updates, (who, frozenset()), self.name, lambda: base, updates)

    def may_list(self, *manifests: ManifestFile, who: str = "ann", base: TableMetadata | None = None) -> bool:
        """Whether a commit may name some manifests."""
        return self.may_name(self.snapshot(*manifests), who=who, base=base or self.base)

    def snapshot(self, *manifests: ManifestFile, **more: Any) -> Body:
        return self.stage.snapshot(self.stage.listed(*manifests), **more)

    def manifest(self, *paths: str, status: EntryStatus = EntryStatus.ADDED) -> ManifestFile:
        """A new manifest in `mine.t` that names data files."""
        like = file_of(self.stage.mine)
        return self.stage.manifest(*(msgspec.structs.replace(like, file_path=p) for p in paths), status=status)

    def with_snapshot(self, body: Body) -> TableMetadata:
        """The table, as it is after a commit of somebody who may."""
        (added,) = msgspec.convert([body], list[AddSnapshot])
        return msgspec.structs.replace(self.base, snapshots=(*self.base.snapshots, added.snapshot))

    def passes(self, check: Callable[..., None], *given: Any) -> bool:
        try:
            check(*given)
        except RefusedError as error:
            refused = error
        else:
            return True
        assert "mine.t" in str(refused)
        assert refused.hints == ("an administrator of the catalog can commit it",)
        return False


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    context = open_server(f"sqlite:///{tmp_path_factory.mktemp('asked')}/lake/catalog.db")
    granted = GrantedServer(context, "ann", "bob")
    for name in ("orders", "others"):
        granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
        assert granted("root", "POST", "/v1/namespaces/db/tables", {"name": name, "schema": SCHEMA}).status == 200
    yield Asked(Stage(granted))
    granted.client.application.close()


@pytest.mark.parametrize("way", WAYS)
def test_what_commits_may_name(asked: Asked, way: str) -> None:
    bodies = WAYS[way](asked.stage)
    assert [asked.may_name(*bodies, who=who, base=asked.base) for who in ("ann", "bob", "root")] == [
        False,
        way in DATA,
        True,
    ]
    assert not asked.may_name(*bodies)
    if bodies[0]["action"] == "add-snapshot":
        after = asked.with_snapshot(bodies[0])
        assert asked.may_name(*bodies, base=after), "what was named before"
        for check in (asked.files.check_registered, asked.files.check_planned):
            given = [("ann", frozenset()), asked.name, after]
            is_planned = check == asked.files.check_planned
            passes = asked.passes(check, *given, *([after.snapshots[-1:]] if is_planned else []))
            assert passes is (is_planned and way in DATA)
            assert asked.passes(check, ("root", frozenset()), *given[1:], *([after.snapshots] if is_planned else []))


def test_what_registered_metadata_may_name(asked: Asked) -> None:
    def registers(**more: Any) -> bool:
        metadata = msgspec.structs.replace(asked.base, **more)
        return asked.passes(asked.files.check_registered, ("ann", frozenset()), asked.name, metadata)

    assert registers()
    theirs, mine = f"{asked.stage.theirs.location}/x", f"{asked.base.location}/x"
    for path, passes in ((theirs, False), (mine, True)):
        assert registers(statistics=(StatisticsFile(77, path, 1, 1, ()),)) is passes
        assert registers(partition_statistics=(PartitionStatisticsFile(77, path, 1),)) is passes
        assert registers(metadata_log=(MetadataLogEntry(1, path),)) is passes


def test_what_the_table_named_before_is_named_again(asked: Asked) -> None:
    theirs = manifests_of(asked.stage.theirs)
    of_list = asked.with_snapshot(asked.stage.snapshot(asked.theirs))
    other = asked.stage.snapshot(asked.theirs, **{"snapshot-id": 78})
    assert asked.may_name(other, base=of_list)
    assert asked.may_list(*theirs, base=of_list)
    assert asked.may_list(asked.manifest(file_of(asked.stage.theirs).file_path), base=of_list)
    assert not asked.may_list(asked.manifest(f"{asked.stage.theirs.location}/data/x"), base=of_list)
    assert not asked.may_name(asked.stage.snapshot(asked.theirs), base=asked.with_snapshot(asked.snapshot()))
    path = f"{asked.stage.theirs.location}/x"
    body = WAYS["statistics of partitions"](asked.stage)[0]
    body["partition-statistics"]["statistics-path"] = path
    known = msgspec.structs.replace(asked.base, partition_statistics=(PartitionStatisticsFile(1, path, 1),))
    assert asked.may_name(body, base=known)
    old = asked.stage.snapshot(None, manifests=[f"{asked.base.location}/metadata/none.avro"])
    assert asked.may_name(old, base=asked.with_snapshot(old))
    older = asked.with_snapshot({**old, "snapshot": {**old["snapshot"], "manifests": []}})
    assert not asked.may_name(old, base=older), "others under its id"


def test_data_files_that_are_named(asked: Asked) -> None:
    place = asked.base.location.rpartition("/mine/")[0]
    theirs = file_of(asked.stage.theirs).file_path
    assert asked.may_list(asked.manifest(f"{asked.base.location}/data/x"))
    assert asked.may_list(asked.manifest(f"{asked.base.location}/data/x"), who="bob"), "also who does not read them"
    assert asked.may_list(asked.manifest("file:///elsewhere/x"))
    assert not asked.may_list(asked.manifest(f"{place}/nobody/x"))
    assert not asked.may_list(asked.manifest(theirs, status=EntryStatus.DELETED)), "read with what went"
    assert not asked.may_list(asked.manifest("file:///elsewhere/x", theirs))
    assert not asked.may_list(asked.manifest("file:///elsewhere/x"), asked.manifest(theirs))
    assert not asked.may_list(asked.manifest(f"{place}/db/x"), who="bob"), "beside `db.others`"
    assert asked.may_list(asked.manifest(f"{asked.stage.theirs.location}/x"), who="bob")
    (old,) = manifests_of(asked.stage.mine)
    assert asked.may_list(old)


def test_manifests_of_others_are_not_even_read(asked: Asked) -> None:
    for location in (f"{asked.stage.theirs.location}/none.avro", ""):
        named = msgspec.convert([asked.stage.snapshot(None, manifests=[location])], list[Update])
        with pytest.raises(RefusedError, match=r"expected files in the directories of table `mine\.t`"):
            asked.files.check_updates(("ann", frozenset()), asked.name, lambda: asked.base, named)
    assert asked.may_name(asked.stage.snapshot(None), base=asked.base), "it names nothing"


def test_new_tables_name_files_where_they_come_to_lie(asked: Asked) -> None:
    located = {"action": "set-location", "location": asked.base.location}
    elsewhere = {"action": "set-location", "location": f"{asked.base.location}2"}
    by_property = {"action": "set-properties", "updates": {"write.metadata.path": f"{asked.base.location}/metadata"}}
    named = asked.snapshot()
    assert asked.may_name(located, named)
    assert asked.may_name(by_property, named)
    assert not asked.may_name(elsewhere, named)
    assert not asked.may_name(named)


def test_what_names_no_file_is_not_looked_at(asked: Asked) -> None:
    def unasked() -> TableMetadata:
        raise AssertionError

    updates = [SetProperties({"a": "b"})]
    asked.files.check_updates(("ann", frozenset()), asked.name, unasked, updates)


def test_manifests_of_parents_are_not_read_again(asked: Asked) -> None:
    """So that a commit costs what it adds."""
    gone = msgspec.structs.replace(asked.manifest(f"{asked.base.location}/x"), manifest_path=f"{asked.base.location}/a")
    base = asked.with_snapshot(asked.snapshot(gone))
    child = asked.snapshot(gone, **{"snapshot-id": 78, "parent-snapshot-id": 77})
    assert asked.may_name(child, base=base)
    assert not asked.may_name(child, base=asked.base)


@pytest.mark.parametrize("way", WAYS)
def test_files_of_a_hidden_table_are_not_named(stage: Stage, way: str) -> None:
    before = stage.mine.refresh().metadata_location
    refused = stage.commit(*WAYS[way](stage))
    assert refused.error == (403, "ForbiddenException")
    assert "db.orders" not in refused.message
    assert "expected files in the directories of table `mine.t`" in refused.message
    assert stage.mine.refresh().metadata_location == before


@pytest.mark.parametrize("way", WAYS)
def test_files_of_a_readable_table_are_named_as_data_alone_and_never_deleted(stage: Stage, way: str) -> None:
    stage.granted.grant("read", "table db.orders", "ann")
    answer = stage.commit(*WAYS[way](stage), *([SET_MAIN] if way in DATA else []))
    assert answer.status == (200 if way in DATA else 403), answer.message
    mine = stage.mine.refresh()
    mine.delete("true")
    mine.append(mine.scan().to_arrow())
    mine.expire(older_than=FUTURE, retain_last=1)
    stage.lake.purge_table("mine.t")
    assert stage.theirs.refresh().scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_metadata_file_that_names_them_is_not_registered(stage: Stage, way: str) -> None:
    made = stage.commit(*WAYS[way](stage), who="root")
    if made.status != 200:
        assert way == "manifest of v1"  # which nobody commits to a table of version 2
        return
    metadata = stage.mine.refresh().metadata
    assert stage.granted("root", "DELETE", f"{TABLES}/t").status == 204
    location = f"{metadata.location}/metadata/00009-forged.metadata.json"
    stage.lake.catalog.io.create(location, render_metadata(metadata))
    body = {"name": "t", "metadata-location": location}
    assert stage.granted("ann", "POST", "/v1/namespaces/mine/register", body).error == (403, "ForbiddenException")
    assert stage.granted("root", "POST", "/v1/namespaces/mine/register", body).status == 200


def test_log_of_a_registered_file_names_files_of_its_own(stage: Stage) -> None:
    metadata = stage.mine.refresh().metadata
    log = [msgspec.structs.replace(e, metadata_file=stage.theirs.metadata_location) for e in metadata.metadata_log[:1]]
    forged = msgspec.structs.replace(metadata, metadata_log=tuple(log))
    assert stage.granted("root", "DELETE", f"{TABLES}/t").status == 204
    location = f"{metadata.location}/metadata/00009-forged.metadata.json"
    stage.lake.catalog.io.create(location, render_metadata(forged))
    body = {"name": "t", "metadata-location": location}
    assert stage.granted("ann", "POST", "/v1/namespaces/mine/register", body).error == (403, "ForbiddenException")


@pytest.mark.parametrize("way", ["manifest list", "manifest"])
def test_bounds_of_a_hidden_table_are_not_planned(stage: Stage, way: str) -> None:
    assert stage.commit(*WAYS[way](stage), who="root").status == 200
    plan = {"snapshot-id": 77, "stats-fields": ["id"]}
    refused = stage.granted("ann", "POST", f"{TABLES}/t/plan", plan)
    assert refused.error == (403, "ForbiddenException")
    assert stage.granted("ann", "POST", f"{TABLES}/t/plan", {}).status == 200


def test_files_that_are_there_already_are_named_again(stage: Stage) -> None:
    assert stage.commit(*WAYS["data file"](stage), who="root").status == 200
    again = stage.snapshot(stage.listed(stage.manifest(file_of(stage.theirs), status=EntryStatus.EXISTING)))
    again["snapshot"]["snapshot-id"] = 78
    assert stage.commit(again).status == 200


def test_files_where_the_server_reads_nothing_are_named(stage: Stage, tmp_path: Path) -> None:
    file = msgspec.structs.replace(file_of(stage.mine), file_path=f"file://{tmp_path}/elsewhere/x.parquet")
    assert stage.commit(stage.snapshot(stage.listed(stage.manifest(file)))).status == 200


def test_files_of_no_table_in_the_warehouse_are_not_named(stage: Stage) -> None:
    place = stage.mine.location.rpartition("/")[0]
    file = msgspec.structs.replace(file_of(stage.mine), file_path=f"{place}/nobody/x.parquet")
    assert stage.commit(stage.snapshot(stage.listed(stage.manifest(file)))).error == (403, "ForbiddenException")


@pytest.mark.parametrize("name", ["write.data.path", FORMER_DIRECTORIES])
def test_directory_set_in_the_same_commit_is_not_enough(stage: Stage, name: str) -> None:
    place = json.dumps([stage.theirs.location]) if name == FORMER_DIRECTORIES else stage.theirs.location
    taken = {"action": "set-properties", "updates": {name: place}}
    assert stage.commit(taken, *WAYS["data file"](stage)).error == (403, "ForbiddenException")


@pytest.mark.parametrize("how", ["location", "property"])
def test_directory_of_one_update_alone_is_not_enough_for_a_new_table(stage: Stage, how: str) -> None:
    home = f"{stage.mine.location.rpartition('/')[0]}/new"
    theirs = stage.theirs.current_snapshot
    assert theirs is not None
    listed = stage.snapshot(theirs.manifest_list, **{"parent-snapshot-id": None, "sequence-number": 1})
    visit: list[Body] = [{"action": "set-location", "location": stage.theirs.location}]
    if how == "property":
        paths = (stage.theirs.location, f"{home}/data")
        visit = [{"action": "set-properties", "updates": {"write.data.path": path}} for path in paths]
    updates = [
        {"action": "assign-uuid", "uuid": str(uuid4())},
        *visit,
        {"action": "set-location", "location": home},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        listed,
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    refused = stage.granted("ann", "POST", f"{TABLES}/new", body)
    assert refused.error == (403, "ForbiddenException")
    assert "expected a directory below that of namespace `mine`" in refused.message


def test_files_in_a_free_directory_set_in_the_same_commit_are_its_own(stage: Stage) -> None:
    place = f"{stage.mine.location}-more"
    file = msgspec.structs.replace(file_of(stage.mine), file_path=f"{place}/x.parquet")
    moved = {"action": "set-properties", "updates": {"write.data.path": place}}
    named = stage.snapshot(stage.listed(stage.manifest(file)))
    assert stage.commit(named).error == (403, "ForbiddenException")
    assert stage.commit(moved, named).status == 200


def test_list_that_cannot_be_read_is_refused(stage: Stage) -> None:
    refused = stage.commit(stage.snapshot(f"{stage.mine.location}/metadata/none.avro"))
    assert refused.error == (403, "ForbiddenException")
    assert "cannot look at the files that a commit to table `mine.t` names" in refused.message


def test_without_grants_nothing_is_looked_at(client: Any) -> None:
    client("POST", "/v1/namespaces", {"namespace": ["db"]})
    assert client("POST", "/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA}).status == 200
    snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1_900_000_000_000}
    snapshot |= {"manifest-list": "file:///nowhere/1.avro", "summary": {"operation": "append"}, "schema-id": 0}
    body = {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}
    assert client("POST", "/v1/namespaces/db/tables/t", body).status == 200


def test_files_that_cannot_be_looked_at_now_are_no_refusal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = stage.snapshot(stage.listed())

    def away(*_: object) -> None:
        raise UnavailableError("the store does not respond")

    monkeypatch.setattr(named_files, "load_manifest_lists", away)
    assert stage.commit(listed).error[0] == 503
    monkeypatch.undo()
    assert stage.commit(listed).status == 200
