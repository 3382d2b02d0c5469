"""Namespaces as directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.errors import RefusedError
from bergline.io.directories import LocalDirectories
from bergline.io.local import LocalFileIO
from bergline.testing.pointer_store_suite import NestedNamespacesSuite
from support.fixtures.rows import ORDERS as SCHEMA


def open_store(directory: Path, io: LocalFileIO | None = None) -> HadoopPointerStore:
    return HadoopPointerStore(io or LocalFileIO(), LocalDirectories(), f"file://{directory}")


class OnDisk:
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._warehouse = tmp_path / "wh"

    def make_store(self) -> PointerStore:
        return open_store(self._warehouse)


class TestNamespacesOfAVersionHintStore(OnDisk, NestedNamespacesSuite):
    pass


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect(f"file://{tmp_path}/wh", create=True) as opened:
        opened.create_namespace("db")
        yield opened


def test_directory_of_a_table_is_no_namespace(lake: Lake) -> None:
    lake.create_table("db.t", SCHEMA)
    lake.create_table("db.gone", SCHEMA)
    lake.drop_table("db.gone")
    for name in ("db.t", "db.gone", "db.t.metadata", "db.t.below"):
        for properties in ({}, {"a": "b"}):
            with pytest.raises(RefusedError, match="a table, or what is left of one, is at"):
                lake.create_namespace(name, properties, if_not_exists=True)
    assert lake.list_namespaces() == ["db"]
