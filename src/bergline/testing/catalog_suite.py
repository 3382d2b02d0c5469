"""The contract of a Catalog as tests: subclass, return the catalog from `make_catalog`, and pytest runs them.

Each test has a namespace of its own, so one server will do for all of them.
"""

import contextlib
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest

from bergline.catalog.catalog import Catalog, Committed, Conflicted, LoadedTable, Outcome, TableChange, ViewChange
from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, ConflictError, NotEmptyError, NotFoundError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType
from bergline.format.metadata.requirements import AssertRefSnapshotId, same_table
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSchema, AddSnapshot, AssignUuid, SetLocation, SetProperties, set_ref
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion
from bergline.format.view.view_metadata import SqlRepresentation, ViewMetadata, ViewVersion

_SCHEMA = Schema((NestedField(1, "id", required=False, type=LONG),), 0)
_WRITERS = 4


def now_ms() -> int:
    """The current time, as in metadata."""
    return time.time_ns() // 1_000_000


def table_metadata(location: str, **properties: str) -> TableMetadata:
    """The metadata of an empty table with one column."""
    return new_metadata(
        schema=_SCHEMA,
        spec=PartitionSpec(spec_id=0, fields=()),
        location=location,
        properties=properties,
        table_uuid=str(uuid.uuid4()),
        now_ms=now_ms(),
    )


def new_snapshot(base: TableMetadata, branch: str = MAIN) -> Snapshot:
    """A snapshot without files for a branch; catalogs do not read files."""
    parent = base.refs.get(branch)
    return Snapshot(
        sequence_number=base.last_sequence_number + 1,
        snapshot_id=uuid.uuid4().int >> 65,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        timestamp_ms=max(now_ms(), base.last_updated_ms),
        summary={"operation": "append"},
        manifest_list=f"{base.location}/metadata/snap-{uuid.uuid4()}.avro",
        schema_id=base.current_schema_id,
    )


def append(base: LoadedTable, branch: str = MAIN) -> TableChange:
    """A change that adds a snapshot to a branch, provided that nobody else has."""
    snapshot, ref = new_snapshot(base.metadata, branch), base.metadata.refs.get(branch)
    moved = SnapshotRef(snapshot.snapshot_id, SnapshotRefType.BRANCH)
    required = AssertRefSnapshotId(branch, ref.snapshot_id if ref else None)
    return TableChange(base, (*same_table(base.metadata), required), (AddSnapshot(snapshot), set_ref(branch, moved)))


def added_id(change: TableChange) -> int:
    """The snapshot that a change adds."""
    (found,) = [u.snapshot.snapshot_id for u in change.updates if isinstance(u, AddSnapshot)]
    return found


def committed(outcome: Outcome) -> LoadedTable:
    """The first table of a successful commit."""
    assert isinstance(outcome, Committed), outcome
    return outcome.tables[0]


class CatalogSuite(ABC):
    """The tests for catalogs of every kind: tables and namespaces."""

    odd_names: tuple[str, ...] = ("with blank", "ünï%41", "plus+and&?#", "quote'd")
    """Names to test with; subclasses for stricter servers may use fewer."""

    @abstractmethod
    def make_catalog(self) -> Catalog:
        """The catalog under test; called again it must open the same one."""

    @pytest.fixture  # noqa: B027
    def place(self) -> None:
        """A fixture for what `make_catalog` needs; subclasses override it."""

    @pytest.fixture(autouse=True)
    def _own_namespace(self, place: None) -> Iterator[None]:
        self.catalog = self.make_catalog()
        self.namespace = (f"n{uuid.uuid4().hex[:12]}",)
        self.catalog.create_namespace(self.namespace, {"owner": "me"})
        yield
        self.catalog.close()

    def name(self, name: str) -> TableName:
        """A name in the test's own namespace."""
        return TableName(self.namespace, name)

    def create(self, name: str = "orders") -> LoadedTable:
        """A new table."""
        table = self.name(name)
        return self.catalog.create_table(table, table_metadata(self.catalog.default_location(table)))

    def test_table_is_as_it_was_created(self) -> None:
        name = self.name("orders")
        metadata = table_metadata(self.catalog.default_location(name), colour="red")
        created = self.catalog.create_table(name, metadata)
        loaded = self.make_catalog().load_table(name)
        assert loaded.metadata_location == created.metadata_location == self.catalog.pointer(name)
        assert loaded.metadata.table_uuid == metadata.table_uuid
        assert loaded.metadata.schema.fields == metadata.schema.fields
        assert loaded.metadata.properties["colour"] == "red"
        assert loaded.metadata.location.rstrip("/") == metadata.location.rstrip("/")
        assert self.catalog.list_tables(self.namespace) == [name]

    def test_table_is_created_with_its_first_snapshot(self) -> None:
        name = self.name("orders")
        metadata = table_metadata(self.catalog.default_location(name))
        snapshot = new_snapshot(metadata)
        filled = _with_snapshot(metadata, snapshot)
        self.catalog.create_table(name, filled)
        loaded = self.catalog.load_table(name).metadata
        assert loaded.refs[MAIN].snapshot_id == snapshot.snapshot_id
        assert loaded.last_sequence_number == 1

    def test_taken_name_is_refused(self) -> None:
        first = self.create()
        with pytest.raises(AlreadyExistsError):
            self.catalog.create_table(self.name("orders"), table_metadata(f"{first.metadata.location}-other"))
        assert self.catalog.load_table(self.name("orders")).metadata.table_uuid == first.metadata.table_uuid

    def test_missing_table_is_not_found(self) -> None:
        nope = self.name("nope")
        for ask in (self.catalog.load_table, self.catalog.pointer, self.catalog.drop_table):
            with pytest.raises(NotFoundError):
                ask(nope)
        with pytest.raises(NotFoundError):
            self.catalog.rename_table(nope, self.name("other"))

    def test_commit_moves_the_table(self) -> None:
        base = self.create()
        change = append(base)
        after = committed(self.catalog.commit((change,)))
        now = self.make_catalog().load_table(base.name)
        assert now.metadata_location == after.metadata_location != base.metadata_location
        assert now.metadata.refs[MAIN].snapshot_id == added_id(change)
        assert now.metadata.metadata_log[-1].metadata_file == base.metadata_location

    def test_second_commit_on_one_base_is_a_conflict(self) -> None:
        base = self.create()
        committed(self.catalog.commit((append(base),)))
        late = append(base)
        assert isinstance(self.catalog.commit((late,)), Conflicted)
        assert added_id(late) not in self.catalog.load_table(base.name).metadata.snapshots_by_id

    def test_commit_to_a_table_that_was_created_again_is_a_conflict_or_not_found(self) -> None:
        base = self.create()
        self.catalog.drop_table(base.name)
        self.catalog.create_table(base.name, table_metadata(f"{base.metadata.location}-again"))
        with contextlib.suppress(NotFoundError):
            assert isinstance(self.catalog.commit((append(base),)), Conflicted)
        assert not self.catalog.load_table(base.name).metadata.snapshots

    def test_properties_change(self) -> None:
        base = self.create()
        change = TableChange(base, same_table(base.metadata), (SetProperties({"colour": "blue"}),))
        assert committed(self.catalog.commit((change,))).metadata.properties["colour"] == "blue"

    def test_writers_at_once_lose_nothing(self) -> None:
        base = self.create()
        ids: list[int] = []

        def write() -> None:
            catalog = self.make_catalog()
            while True:
                change = append(catalog.load_table(base.name))
                if isinstance(catalog.commit((change,)), Committed):
                    ids.append(added_id(change))
                    break
            catalog.close()

        threads = [threading.Thread(target=write) for _ in range(_WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        now = self.catalog.load_table(base.name).metadata
        assert len(ids) == _WRITERS
        assert set(ids) == set(now.snapshots_by_id)

    def test_tables_move_together_or_not_at_all(self) -> None:
        one, other = self.create("one"), self.create("other")
        if not self.catalog.atomic_tables:
            return
        outcome = self.catalog.commit((append(one), append(other)))
        assert isinstance(outcome, Committed)
        newer = self.catalog.load_table(one.name)
        assert isinstance(self.catalog.commit((append(newer), append(other))), Conflicted)
        assert self.catalog.pointer(one.name) == newer.metadata_location

    def test_table_is_renamed(self) -> None:
        base, new = self.create(), self.name("moved")
        self.catalog.rename_table(base.name, new)
        assert self.catalog.load_table(new).metadata.table_uuid == base.metadata.table_uuid
        with pytest.raises(NotFoundError):
            self.catalog.load_table(base.name)
        self.create()
        with pytest.raises(AlreadyExistsError):
            self.catalog.rename_table(new, base.name)

    def test_table_is_dropped_and_registered_again(self) -> None:
        base = committed(self.catalog.commit((append(self.create()),)))
        location = self.catalog.unregister_table(base.name)
        assert location == base.metadata_location
        assert self.catalog.list_tables(self.namespace) == []
        registered = self.catalog.register_table(base.name, location)
        assert registered.metadata.table_uuid == base.metadata.table_uuid
        with pytest.raises(AlreadyExistsError):
            self.catalog.register_table(base.name, location)

    def test_drop_of_a_table_that_moved_on_is_a_conflict(self) -> None:
        base = self.create()
        committed(self.catalog.commit((append(base),)))
        with pytest.raises(ConflictError):
            self.catalog.drop_table(base.name, base.metadata_location)
        self.catalog.drop_table(base.name, self.catalog.pointer(base.name))
        assert self.catalog.list_tables(self.namespace) == []

    def test_namespaces_lie_in_each_other(self) -> None:
        inner = (*self.namespace, "raw")
        self.catalog.create_namespace(inner, {})
        assert self.catalog.list_namespaces(self.namespace) == [inner]
        assert {self.namespace, inner} <= set(self.catalog.list_namespaces())
        with pytest.raises(AlreadyExistsError):
            self.catalog.create_namespace(inner, {})
        self.catalog.create_table(
            TableName(inner, "t"), table_metadata(self.catalog.default_location(TableName(inner, "t")))
        )
        assert self.catalog.list_tables(self.namespace) == []
        with pytest.raises(NotEmptyError):
            self.catalog.drop_namespace(inner)
        self.catalog.drop_table(TableName(inner, "t"))
        self.catalog.drop_namespace(inner)
        assert not self.catalog.namespace_exists(inner)
        with pytest.raises(NotFoundError):
            self.catalog.drop_namespace(inner)

    def test_properties_of_a_namespace_change(self) -> None:
        self.catalog.update_namespace(self.namespace, {"a": "1", "b": "2"}, ())
        self.catalog.update_namespace(self.namespace, {"a": "3"}, ("b",))
        found = self.catalog.namespace_properties(self.namespace)
        assert (found["owner"], found["a"], found.get("b")) == ("me", "3", None)
        with pytest.raises(NotFoundError):
            self.catalog.namespace_properties((*self.namespace, "nope"))

    def test_names_may_have_any_character(self) -> None:
        for name in self.odd_names:
            self.create(name)
        assert self.catalog.list_tables(self.namespace) == sorted(map(self.name, self.odd_names))
        for name in self.odd_names:
            assert self.catalog.load_table(self.name(name)).name == self.name(name)


class CatalogViewsSuite(CatalogSuite):
    """The tests for catalogs with views."""

    def make_view(self, name: str = "v", sql: str = "SELECT 1 AS id") -> ViewMetadata:
        """A view of a query."""
        return apply_view_updates(
            None,
            (
                AssignUuid(str(uuid.uuid4())),
                SetLocation(self.catalog.default_location(self.name(name))),
                SetProperties({"colour": "red"}),
                AddSchema(_SCHEMA),
                AddViewVersion(self.version(1, sql)),
                SetCurrentViewVersion(-1),
            ),
            now_ms=now_ms(),
        )

    def version(self, number: int, sql: str) -> ViewVersion:
        """A version of a view."""
        return ViewVersion(
            version_id=number,
            timestamp_ms=now_ms(),
            schema_id=0,
            summary={"engine-name": "bergline"},
            default_namespace=self.namespace,
            representations=(SqlRepresentation(sql, "spark"),),
        )

    def test_view_is_created_listed_changed_renamed_and_dropped(self) -> None:
        name, new = self.name("v"), self.name("w")
        created = self.catalog.create_view(name, self.make_view())
        assert self.catalog.list_views(self.namespace) == [name]
        assert self.catalog.list_tables(self.namespace) == []
        change = ViewChange(created, (), (AddViewVersion(self.version(2, "SELECT 2 AS id")), SetCurrentViewVersion(-1)))
        changed = self.catalog.commit_view(change)
        (query,) = changed.metadata.current_version.representations
        assert query == SqlRepresentation("SELECT 2 AS id", "spark")
        with pytest.raises(ConflictError):
            self.catalog.commit_view(change)
        self.catalog.rename_view(name, new)
        assert self.catalog.load_view(new).metadata.view_uuid == created.metadata.view_uuid
        self.catalog.drop_view(new)
        assert self.catalog.list_views(self.namespace) == []

    def test_tables_and_views_share_their_names(self) -> None:
        view = self.make_view("orders")
        self.catalog.create_view(self.name("v"), self.make_view())
        with pytest.raises(AlreadyExistsError) as caught:
            self.catalog.create_table(self.name("v"), table_metadata(view.location))
        assert caught.value.kind == "view"
        self.create()
        with pytest.raises(AlreadyExistsError) as caught:
            self.catalog.create_view(self.name("orders"), view)
        assert caught.value.kind == "table"


def _with_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    change = (AddSnapshot(snapshot), set_ref(MAIN, SnapshotRef(snapshot.snapshot_id, SnapshotRefType.BRANCH)))
    return apply_updates(metadata, change, base_location=None, now_ms=now_ms())
