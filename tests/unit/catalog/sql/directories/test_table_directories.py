"""Which tables share directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.directories.reserved_directories import Claim, DirectoryKind, overlap
from bergline.catalog.sql.directories.table_directories import TableDirectories, outermost
from bergline.catalog.sql.records import records_of
from bergline.errors import NotFoundError, RefusedError, StorageError
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri

NEW = TableName(("db",), "new")


class Tables:
    """Tables of which only their directories and metadata files are known."""

    def __init__(self, catalog: PointerCatalog) -> None:
        self._catalog = catalog
        self._directories: dict[TableName, list[str]] = {}
        self.places = TableDirectories(records_of(catalog), self._find)
        catalog.store.create_namespace(("db",), {})

    def add(self, name: str, *directories: str, metadata: str | None = None) -> None:
        """A table whose metadata is in its location, or elsewhere."""
        table = TableName(("db",), name)
        self._directories[table] = list(directories)
        location = f"{metadata or directories[0] + '/metadata'}/1.metadata.json"
        assert self._catalog.store.create(table, location)

    def drop(self, name: str) -> None:
        """A table that is gone: what was kept of its directories may still be there."""
        table = TableName(("db",), name)
        del self._directories[table]
        assert self._catalog.store.drop(table)

    def check(self, *directories: str) -> None:
        """A new table with these directories."""
        self.places.check_apart(Claim(DirectoryKind.TABLE, NEW), directories)

    def keep(self, name: str, *directories: str) -> None:
        """What a server learns of a table when it hands out credentials for it."""
        self.places.check_apart(Claim(DirectoryKind.TABLE, TableName(("db",), name)), directories)

    def _find(self, kind: DirectoryKind, name: TableName) -> list[str]:
        assert kind is DirectoryKind.TABLE
        if name not in self._directories:
            raise NotFoundError("no table", kind="table", name=str(name))
        found = self._directories[name]
        if found[0].endswith("unreadable"):
            raise StorageError("cannot read it")
        return found


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    catalog = open_catalog(
        CatalogConfig(new_catalog_uri(tmp_path / "catalog.db"), str(tmp_path), "lake", {}, 5.0, create=True)
    )
    assert isinstance(catalog, PointerCatalog)
    yield Tables(catalog)
    catalog.close()


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("s3://b/t", "s3://b/t", True),
        ("s3://b/t", "s3://b/t/x", True),
        ("s3://b/t/x", "s3://b/t", True),
        ("s3://b/t", "s3://b/t2", False),
        ("s3://b", "s3://b2/t", False),
    ],
)
def test_directories_overlap_where_one_lies_in_the_other(one: str, other: str, shared: bool) -> None:
    assert overlap(one, other) is shared


def test_directories_that_lie_in_another_are_left_out() -> None:
    assert outermost(["s3://b/t", "s3://b/t/data", "s3://b/t2", "s3://b/t"]) == ["s3://b/t", "s3://b/t2"]


@pytest.mark.parametrize(
    "place", ["s3://b/w/t", "s3n://b/w/t/", "s3://b/w", "s3://b/w/t/in/side", "s3://b/w/t/data", "s3://b/data/t/x"]
)
def test_directories_of_another_table_are_refused(tables: Tables, place: str) -> None:
    tables.add("t", "s3a://b/w/t", "s3://b/data/t")
    tables.keep("t", "s3a://b/w/t", "s3://b/data/t")
    with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t`"):
        tables.check(place)
    with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t`"):
        tables.check("s3://b/elsewhere", place)


@pytest.mark.parametrize("place", ["s3://b/w/t2", "s3://b/w/T", "s3://b/w2", "s3://c/w/t", "file:///w/t", "s3://b/w/%"])
def test_directories_of_its_own_are_taken(tables: Tables, place: str) -> None:
    tables.add("t", "s3://b/w/t", "s3://b/data/t")
    tables.check(place)
    tables.keep("t", "s3://b/w/t", "s3://b/data/t")


@pytest.mark.parametrize("place", ["gs://b/w/t", "gcs://b/w/t/x", "gs://b/w", "gs://b/data/t/x"])
def test_directories_on_google_are_kept_apart_too(tables: Tables, place: str) -> None:
    tables.add("t", "gcs://b/w/t", "gs://b/data/t")
    tables.keep("t", "gcs://b/w/t", "gs://b/data/t")
    with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t`"):
        tables.check(place)
    tables.check("gs://b/w/t2", "s3://b/w/t")


def test_metadata_in_the_directory_of_another_table_counts(tables: Tables) -> None:
    tables.add("t", "s3://b/w/t", "s3://b/metadata", metadata="s3://b/metadata/t")
    with pytest.raises(RefusedError):
        tables.check("s3://b/metadata")


def test_table_that_cannot_be_read_is_in_the_way_of_its_directory_alone(tables: Tables) -> None:
    tables.add("t", "s3://b/w/unreadable")
    with pytest.raises(RefusedError):
        tables.check("s3://b/w/unreadable/x")
    tables.check("s3://b/w/t")


def test_former_directories_are_kept_apart_until_the_table_is_gone(tables: Tables) -> None:
    tables.add("t", "s3://b/w/t", "s3://b/data/t")
    tables.keep("t", "s3://b/w/t", "s3://b/data/t")
    tables.keep("t", "s3://b/w/t", "s3://b/other/t")
    for place in ("s3://b/data/t", "s3://b/other"):
        with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t`"):
            tables.check("s3://b/new", place)
    tables.drop("t")
    tables.check("s3://b/other/t")


@pytest.mark.parametrize(
    ("written", "place", "shared"),
    [
        ("file:///w/t", "/w/t/x", True),
        ("/w/t", "file:/w/../w/t", True),
        ("file:/w/t", "file:///w", True),
        ("/w/t", "/w/t2", False),
        ("wasbs://c@a.blob.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t/x", True),
        ("abfs://c@a.dfs.core.windows.net/t", "abfss://c@b.dfs.core.windows.net/t", False),
        ("hdfs://n/w/t", "hdfs://n/w", True),
    ],
)
def test_every_store_and_spelling_counts(tables: Tables, written: str, place: str, shared: bool) -> None:
    tables.add("t", written)
    for _ in ("found by its metadata", "reserved"):
        if shared:
            with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t`"):
                tables.check(place)
        else:
            tables.check(place)
        tables.keep("t", written)


def test_links_on_a_disk_are_followed(tables: Tables, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    tables.add("t", f"{tmp_path}/real/t")
    tables.keep("t", f"{tmp_path}/real/t")
    with pytest.raises(RefusedError):
        tables.check(f"file://{tmp_path}/link/t")
