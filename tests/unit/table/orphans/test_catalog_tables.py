"""All tables of a catalog, while others drop some."""

from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import NotFoundError
from bergline.table.orphans.catalog_tables import every_table, load_listed
from support.fixtures.rows import ORDERS


def test_tables_of_a_namespace_and_those_below_it_are_listed(lake: Lake) -> None:
    lake.create_namespace("db.raw")
    lake.create_namespace("other")
    for name in ("db.a", "db.raw.b", "other.c"):
        lake.create_table(name, ORDERS)
    assert {str(t) for t in every_table(lake.catalog)} == {"db.a", "db.raw.b", "other.c"}
    assert {str(t) for t in every_table(lake.catalog, ("db",))} == {"db.a", "db.raw.b"}


def test_namespace_that_is_dropped_meanwhile_has_no_tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create_table("db.a", ORDERS)
    listed = lake.catalog.list_namespaces

    def with_dropped(parent: Namespace = ()) -> list[Namespace]:
        return [("gone",), *listed(parent)]

    monkeypatch.setattr(lake.catalog, "list_namespaces", with_dropped)
    assert [str(t) for t in every_table(lake.catalog)] == ["db.a"]


def test_dropped_table_is_none_and_a_missing_metadata_file_an_error(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS)
        assert load_listed(lake.catalog, TableName(("db",), "none")) is None
        loaded = load_listed(lake.catalog, table.name)
        assert loaded is not None
        assert loaded.metadata_location == table.metadata_location
    Path(table.metadata_location.removeprefix("file://")).unlink()
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as again, pytest.raises(NotFoundError) as error:
        load_listed(again.catalog, table.name)
    assert error.value.kind == "file"
