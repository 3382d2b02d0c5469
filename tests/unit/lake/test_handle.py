"""The catalog and the clock that all parts of a lake share."""

from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.io.memory import MemoryFileIO
from bergline.lake.handle import LakeHandle
from bergline.lake.views import NewView, create_view
from bergline.table.commits.retry import Timing
from support.fixtures.rows import ORDERS


def test_parts_work_on_the_catalog_and_the_clock_of_the_handle() -> None:
    catalog = PointerCatalog(MemoryPointerStore(), MemoryFileIO(), "memory://warehouse")
    handle = LakeHandle(catalog, Timing(clock_ms=lambda: 1_700_000_000_000))
    lake = Lake(catalog, "lake", timing=handle.timing)
    lake.create_namespace("db")
    view = create_view(handle, TableName(("db",), "v"), NewView("SELECT 1 AS id", ORDERS))
    assert lake.load_view("db.v").metadata == view.metadata
    assert view.metadata.current_version.timestamp_ms == 1_700_000_000_000
    assert lake.create_table("db.t", ORDERS).metadata.last_updated_ms == 1_700_000_000_000
