"""Pointers by version files on local disk."""

import errno
import gzip
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from concurrency import run_for_each
from rows import ORDERS as SCHEMA
from rows import ids, order_rows

import bergline
from bergline import Lake
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.directories import LocalDirectories
from bergline.io.local import LocalFileIO
from bergline.testing.pointer_store_suite import ITEMS, ORDERS, NestedNamespacesSuite, PointerStoreSuite


def open_store(directory: Path, io: LocalFileIO | None = None) -> HadoopPointerStore:
    return HadoopPointerStore(io or LocalFileIO(), LocalDirectories(), f"file://{directory}")


class OnDisk:
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._warehouse = tmp_path / "wh"

    def make_store(self) -> PointerStore:
        return open_store(self._warehouse)


class TestVersionHintStore(OnDisk, PointerStoreSuite):
    pass


class TestNamespacesOfAVersionHintStore(OnDisk, NestedNamespacesSuite):
    pass


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect(f"file://{tmp_path}/wh", create=True) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    return tmp_path / "wh" / "db" / "orders" / "metadata"


def versions(metadata: Path) -> list[str]:
    return sorted(path.name for path in metadata.iterdir() if path.name.endswith(".metadata.json"))


def loaded(lake: Lake) -> list[int]:
    return ids(lake.load_table("db.orders").scan().to_arrow())


def test_files_are_named_as_in_java(lake: Lake, metadata: Path) -> None:
    orders = lake.create_table("db.orders", SCHEMA)
    orders.append(order_rows(0))
    assert versions(metadata) == ["v1.metadata.json", "v2.metadata.json"]
    assert (metadata / "version-hint.text").read_bytes() == b"2"
    assert orders.metadata_location == f"file://{metadata}/v2.metadata.json"
    assert orders.metadata.location == f"file://{metadata.parent}"
    assert [entry.metadata_file for entry in orders.metadata.metadata_log] == [f"file://{metadata}/v1.metadata.json"]


@pytest.mark.parametrize("hint", [None, b"", b"1", b"2\n", b"99", b"-1", b"9" * 5000, b"\xff\xfe", b"two"])
def test_hint_is_only_a_hint(lake: Lake, metadata: Path, hint: bytes | None) -> None:
    orders = lake.create_table("db.orders", SCHEMA)
    for number in range(3):
        orders.append(order_rows(number))
    if hint is None:
        (metadata / "version-hint.text").unlink()
    else:
        (metadata / "version-hint.text").write_bytes(hint)
    assert loaded(lake) == [0, 1, 2]
    orders.append(order_rows(3))
    assert loaded(lake) == [0, 1, 2, 3]
    assert (metadata / "version-hint.text").read_bytes() == b"5"


def test_hint_at_a_version_that_is_gone_is_no_matter(lake: Lake, metadata: Path) -> None:
    orders = lake.create_table("db.orders", SCHEMA)
    for number in range(12):
        orders.append(order_rows(number))
    for old in range(1, 9):
        (metadata / f"v{old}.metadata.json").unlink()
    (metadata / "version-hint.text").write_text("3")
    assert loaded(lake) == list(range(12))


def test_writers_of_one_table_lose_nothing(tmp_path: Path, lake: Lake, metadata: Path) -> None:
    lake.create_table("db.orders", SCHEMA)

    def append(number: int) -> None:
        with bergline.connect(f"file://{tmp_path}/wh") as own:
            for step in range(3):
                own.load_table("db.orders").append(order_rows(10 * number + step))

    run_for_each(append, range(4))
    assert loaded(lake) == sorted(10 * n + step for n in range(4) for step in range(3))
    assert len(versions(metadata)) == 13


def test_compressed_tables_stay_compressed(lake: Lake, metadata: Path) -> None:
    lake.create_table("db.orders", SCHEMA)
    plain = metadata / "v1.metadata.json"
    (metadata / "v1.gz.metadata.json").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    lake.load_table("db.orders").append(order_rows(0))
    assert versions(metadata) == ["v1.gz.metadata.json", "v2.gz.metadata.json"]
    assert gzip.decompress((metadata / "v2.gz.metadata.json").read_bytes()).startswith(b"{")
    assert loaded(lake) == [0]


def test_codec_changes_no_name(lake: Lake, metadata: Path) -> None:
    """Two names for one number would give two writers the same version."""
    orders = lake.create_table("db.orders", SCHEMA, properties={"write.metadata.compression-codec": "gzip"})
    orders.append(order_rows(0))
    assert versions(metadata) == ["v1.metadata.json", "v2.metadata.json"]


def test_dropped_table_leaves_its_files_and_frees_its_name(lake: Lake, metadata: Path) -> None:
    orders = lake.create_table("db.orders", SCHEMA)
    orders.append(order_rows(0))
    before = {path for path in metadata.parent.rglob("*") if path.suffix in {".avro", ".parquet"}}
    lake.drop_table("db.orders")
    assert lake.list_tables("db") == []
    assert lake.list_namespaces() == ["db"]
    assert versions(metadata) == [f"v{number}.metadata.json" for number in (1, 2, 3)]
    assert len(before) == 3
    assert before <= {*metadata.parent.rglob("*")}
    with pytest.raises(NotFoundError):
        lake.load_table("db.orders")
    assert json.loads((metadata / "v2.metadata.json").read_text())["table-uuid"] == orders.metadata.table_uuid
    assert "dropped" in json.loads((metadata / "v3.metadata.json").read_text())["format-version"]
    again = lake.create_table("db.orders", SCHEMA)
    assert versions(metadata) == [f"v{number}.metadata.json" for number in (1, 2, 3, 4)]
    assert ids(again.scan().to_arrow()) == []


def test_dropped_table_can_be_registered_again(lake: Lake) -> None:
    lake.create_table("db.orders", SCHEMA).append(order_rows(0, 1))
    place = lake.unregister_table("db.orders")
    assert ids(lake.register_table("db.orders", place).scan().to_arrow()) == [0, 1]
    lake.load_table("db.orders").append(order_rows(2))
    assert loaded(lake) == [0, 1, 2]


def test_writer_does_not_bring_back_what_was_dropped_and_made_again(tmp_path: Path, lake: Lake) -> None:
    old = lake.create_table("db.orders", SCHEMA)
    lake.drop_table("db.orders")
    with pytest.raises(NotFoundError):
        old.append(order_rows(0))
    lake.create_table("db.orders", SCHEMA).append(order_rows(7))
    with pytest.raises(ConflictError, match="dropped and re-created"):
        old.append(order_rows(0))
    assert loaded(lake) == [7]


def test_table_that_java_made_again_under_the_same_number_is_another(lake: Lake, metadata: Path) -> None:
    old = lake.create_table("db.orders", SCHEMA)
    other = lake.create_table("db.other", SCHEMA)
    text = (metadata.parent.parent / "other" / "metadata" / "v1.metadata.json").read_text()
    (metadata / "v1.metadata.json").write_text(text.replace("/other", "/orders"))
    assert lake.load_table("db.orders").metadata.table_uuid == other.metadata.table_uuid
    with pytest.raises(ConflictError, match="dropped and re-created"):
        old.append(order_rows(0))


class Interrupted(LocalFileIO):
    """Calls back before a file is created."""

    def __init__(self) -> None:
        self.before_create: list[str] = []
        self.meanwhile = lambda: None

    def create(self, location: str, data: bytes) -> None:
        name = location.rpartition("/")[2]
        if name in self.before_create:
            self.before_create.remove(name)
            self.meanwhile()
        super().create(location, data)


def test_one_of_many_drops_wins(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create(ORDERS, store.stage(ORDERS, None, b"1"))
    winners = []

    def race(own: HadoopPointerStore) -> None:
        if own.drop(ORDERS):
            winners.append(own)

    run_for_each(race, [open_store(tmp_path) for _ in range(8)])
    assert len(winners) == 1
    assert store.read(ORDERS) is None


def test_version_that_comes_after_its_number_was_cleared_away_is_in_doubt(tmp_path: Path) -> None:
    """The writer looked, others went on and deleted old metadata files, and only then the writer creates its file."""
    io = Interrupted()
    slow, other = open_store(tmp_path, io), open_store(tmp_path)
    slow.create(ORDERS, first := slow.stage(ORDERS, None, b"1"))

    def go_on() -> None:
        pointer = first
        for number in range(2, 6):
            new = other.stage(ORDERS, pointer, b"%d" % number)
            assert other.swap(ORDERS, pointer, new)
            pointer = new
        for old in range(1, 4):
            (tmp_path / f"db/orders/metadata/v{old}.metadata.json").unlink()

    io.before_create, io.meanwhile = ["v2.metadata.json"], go_on
    with pytest.raises(StorageError, match="cannot find out whether"):
        slow.swap(ORDERS, first, slow.stage(ORDERS, first, b"late"))
    assert slow.read(ORDERS) == f"file://{tmp_path}/db/orders/metadata/v5.metadata.json"


def test_full_or_read_only_disk_changes_nothing_and_says_so(tmp_path: Path) -> None:
    class Full(LocalFileIO):
        def create(self, location: str, data: bytes) -> None:
            raise StorageError(f"cannot write {location}: No space left on device") from OSError(errno.ENOSPC, "full")

    store = open_store(tmp_path)
    store.create(ORDERS, first := store.stage(ORDERS, None, b"1"))
    full = open_store(tmp_path, Full())
    with pytest.raises(UnavailableError, match="No space left"):
        full.swap(ORDERS, first, full.stage(ORDERS, first, b"2"))
    assert store.read(ORDERS) == first


def test_error_after_the_file_was_created_is_settled_by_the_bytes(tmp_path: Path) -> None:
    class Shaky(LocalFileIO):
        def create(self, location: str, data: bytes) -> None:
            super().create(location, data)
            raise StorageError(f"cannot write {location}: Input/output error")

    store, shaky = open_store(tmp_path), open_store(tmp_path, Shaky())
    assert shaky.create(ORDERS, first := shaky.stage(ORDERS, None, b"1"))
    assert shaky.swap(ORDERS, first, second := shaky.stage(ORDERS, first, b"2"))
    assert store.read(ORDERS) == second


class Links:
    """os.link of a file server whose answers get lost: the next ones to these names raise, landed or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._link = os.link
        self._fails: dict[str, tuple[int, bool]] = {}
        monkeypatch.setattr(os, "link", self)

    def fail(self, name: str, number: int, *, lands: bool) -> None:
        self._fails[name] = number, lands

    def all_met(self) -> bool:
        return not self._fails

    def __call__(self, source: str, target: str) -> None:
        number, lands = self._fails.pop(Path(target).name, (0, True))
        if lands:
            self._link(source, target)
        if number:
            raise OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "lands"),
    [(errno.EEXIST, True), *itertools.product((errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.ENOSPC), (True, False))],
)
def test_link_that_reports_an_error_is_settled_by_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, lands: bool
) -> None:
    links = Links(monkeypatch)
    lake = bergline.connect(f"version-hint:file://{tmp_path}/wh", create=True)
    lake.catalog._sleep = lambda _: None  # type: ignore[attr-defined]
    links.fail(".namespace-1.json", errno.EIO if number == errno.ENOSPC else number, lands=lands)
    lake.create_namespace("db", {"owner": "us"})
    links.fail("v1.metadata.json", number, lands=lands)
    if number == errno.ENOSPC and not lands:  # certain
        with pytest.raises(UnavailableError):
            lake.catalog.create_table(*new_table(lake))
    orders = lake.create_table("db.orders", SCHEMA)
    for version, rows in ((2, 1), (3, 2)):
        links.fail(f"v{version}.metadata.json", number, lands=lands)
        orders.append(order_rows(rows))
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1, 2]
    links.fail("v4.metadata.json", number, lands=lands)
    if number == errno.ENOSPC and not lands:
        with pytest.raises(UnavailableError):
            lake.purge_table("db.orders")
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1, 2]
    else:
        lake.purge_table("db.orders")
        assert lake.list_tables("db") == []
    assert links.all_met()
    lake.close()


def new_table(lake: Lake) -> tuple[TableName, TableMetadata]:
    """A table as its creator would hand it to the catalog."""
    with bergline.connect("version-hint:" + str(lake.catalog.warehouse) + "-other", create=True) as other:  # type: ignore[attr-defined]
        other.create_namespace("db")
        metadata = other.create_table("db.orders", SCHEMA).metadata
    name = TableName(("db",), "orders")
    return name, msgspec.structs.replace(metadata, location=lake.catalog.default_location(name))


def test_several_tables_are_refused_before_anything_is_written(lake: Lake, tmp_path: Path) -> None:
    for name in ("orders", "items"):
        lake.create_table(f"db.{name}", SCHEMA)
    before = sorted(tmp_path.rglob("*"))
    store = open_store(tmp_path / "wh")
    with pytest.raises(UnsupportedError):
        store.swap_all([PointerSwap(t, "a", "b") for t in (ORDERS, ITEMS)])
    with lake.transaction() as both:
        both.load_table("db.orders")
        with pytest.raises(UnsupportedError, match="one pointer at a time"):
            both.load_table("db.items")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_the_layout_does_not_have_is_refused(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("db.orders", SCHEMA)
    with pytest.raises(UnsupportedError, match="cannot rename"):
        lake.rename_table("db.orders", "db.new")
    with pytest.raises(UnsupportedError, match=f"expected table `db.new` at file://{tmp_path}/wh/db/new"):
        lake.create_table("db.new", SCHEMA, location=f"{tmp_path}/elsewhere")
    with pytest.raises(UnsupportedError, match=r"write.metadata.path"):
        lake.create_table("db.new", SCHEMA, properties={"write.metadata.path": f"{tmp_path}/elsewhere"})
    with pytest.raises(UnsupportedError, match=r"write.metadata.path"):
        lake.load_table("db.orders").set_properties({"write.metadata.path": f"{tmp_path}/elsewhere"})
    with pytest.raises(InvalidInputError, match="expected no warehouse"):
        bergline.connect(f"file://{tmp_path}", warehouse=tmp_path, create=True)
    assert lake.list_tables("db") == ["db.orders"]


@pytest.mark.parametrize("uri", ["file:wh", "file:", "version-hint:wh", "version-hint:", "version-hint:memory://x"])
def test_uri_that_names_no_directory_is_refused(uri: str) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError), match="expected"):
        bergline.connect(uri, create=True)


@pytest.mark.parametrize("name", ["a/b", ".", "..", ".hidden", "x" * 256, "a\nb", "\ud800"])
def test_name_that_no_directory_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a name"):
        open_store(tmp_path).create_namespace((name,), {})


def test_directory_of_another_catalog_is_left_alone(tmp_path: Path, lake: Lake) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path / "wh", create=True) as other:
        other.create_namespace("db")
        other.create_table("db.orders", SCHEMA).append(order_rows(0))
        assert lake.list_tables("db") == []
        assert lake.list_namespaces() == ["db"]
        with pytest.raises(RefusedError, match="another catalog"):
            lake.create_table("db.orders", SCHEMA)
        assert ids(other.load_table("db.orders").scan().to_arrow()) == [0]


def test_name_that_is_taken_is_refused(lake: Lake) -> None:
    lake.create_table("db.orders", SCHEMA)
    with pytest.raises(AlreadyExistsError):
        lake.create_table("db.orders", SCHEMA)


def test_purged_table_leaves_no_data(lake: Lake, metadata: Path) -> None:
    lake.create_table("db.orders", SCHEMA).append(order_rows(0))
    lake.purge_table("db.orders")
    assert [path for path in metadata.parent.rglob("*") if path.suffix in {".avro", ".parquet"}] == []
    assert versions(metadata) == [f"v{number}.metadata.json" for number in (1, 2, 3)]
    assert lake.list_tables("db") == []


def test_tables_are_found_in_a_copied_directory_and_through_other_spellings(tmp_path: Path, lake: Lake) -> None:
    lake.create_table("db.orders", SCHEMA)
    shutil.copytree(tmp_path / "wh", tmp_path / "copy")
    for uri in (
        f"file:{tmp_path}/copy",
        f"file://{tmp_path}/copy/",
        f"version-hint:file://{tmp_path}/copy",
        f"version-hint:{tmp_path}/copy",
    ):
        with bergline.connect(uri, create=True) as opened:
            assert opened.list_tables("db") == ["db.orders"]


def test_directory_of_a_table_is_no_namespace(lake: Lake) -> None:
    lake.create_table("db.t", SCHEMA)
    lake.create_table("db.gone", SCHEMA)
    lake.drop_table("db.gone")
    for name in ("db.t", "db.gone", "db.t.metadata", "db.t.below"):
        for properties in ({}, {"a": "b"}):
            with pytest.raises(RefusedError, match="a table, or what is left of one, is at"):
                lake.create_namespace(name, properties, if_not_exists=True)
    assert lake.list_namespaces() == ["db"]
