"""Tables of a Hadoop catalog."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.io.directories import LocalDirectories
from bergline.io.local import LocalFileIO
from bergline.testing.pointer_store_suite import ITEMS, ORDERS
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ORDERS as SCHEMA
from support.fixtures.rows import ids, order_rows


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
