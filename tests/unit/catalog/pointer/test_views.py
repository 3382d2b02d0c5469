"""Views of a pointer catalog by name."""

from pathlib import Path

import pytest

from bergline.catalog.catalog import Catalog, ViewChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import AlreadyExistsError, ConflictError, NotFoundError, UnsupportedError
from bergline.format.metadata.updates import SetProperties
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.memory import MemoryFileIO

RECENT = TableName(("db",), "recent")


class WithoutViews(MemoryPointerStore):
    def __init__(self) -> None:
        super().__init__()
        self.views = None  # type: ignore[assignment]


def opened(path: Path, store: MemoryPointerStore) -> PointerCatalog:
    catalog = PointerCatalog(store, MemoryFileIO(), f"file://{path}")
    catalog.create_namespace(("db",), {})
    return catalog


@pytest.fixture
def catalog(tmp_path: Path) -> PointerCatalog:
    return opened(tmp_path, MemoryPointerStore())


def changed(catalog: Catalog, **properties: str) -> ViewChange:
    return ViewChange(catalog.load_view(RECENT), (), (SetProperties(properties),))


def test_view_is_created_changed_and_dropped(catalog: PointerCatalog, view: ViewMetadata) -> None:
    created = catalog.create_view(RECENT, view)
    assert catalog.load_view(RECENT) == created
    after = catalog.commit_view(changed(catalog, owner="me"))
    assert after.metadata.properties["owner"] == "me"
    assert after.metadata_location != created.metadata_location
    catalog.drop_view(RECENT)
    with pytest.raises(NotFoundError, match="no view"):
        catalog.load_view(RECENT)


def test_change_on_an_old_base_is_a_conflict(catalog: PointerCatalog, view: ViewMetadata) -> None:
    catalog.create_view(RECENT, view)
    first, second = changed(catalog, a="1"), changed(catalog, b="2")
    catalog.commit_view(first)
    with pytest.raises(ConflictError):
        catalog.commit_view(second)
    assert "b" not in catalog.load_view(RECENT).metadata.properties


def test_name_of_a_view_is_taken_and_can_be_changed(catalog: PointerCatalog, view: ViewMetadata) -> None:
    catalog.create_view(RECENT, view)
    with pytest.raises(AlreadyExistsError, match="view"):
        catalog.create_view(RECENT, view)
    catalog.rename_view(RECENT, TableName(("db",), "latest"))
    assert catalog.list_views(("db",)) == [TableName(("db",), "latest")]


def test_store_without_views_lists_none_and_refuses_the_rest(tmp_path: Path, view: ViewMetadata) -> None:
    catalog = opened(tmp_path, WithoutViews())
    assert catalog.list_views(("db",)) == []
    with pytest.raises(UnsupportedError):
        catalog.create_view(RECENT, view)
