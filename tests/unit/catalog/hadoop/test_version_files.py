"""Numbered metadata files in a table's directory."""

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import bergline
from bergline import Lake
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.identifiers import TableName
from bergline.errors import StorageError, UnavailableError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.directories import LocalDirectories
from bergline.io.local import LocalFileIO
from bergline.testing.pointer_store_suite import ORDERS
from support.fixtures.rows import ORDERS as SCHEMA
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.long


def open_store(directory: Path, io: LocalFileIO | None = None) -> HadoopPointerStore:
    return HadoopPointerStore(io or LocalFileIO(), LocalDirectories(), f"file://{directory}")


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
    lake.catalog._access.sleep = lambda _: None  # type: ignore[attr-defined]
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
