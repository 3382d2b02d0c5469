"""Tables as a lake opens and creates them; what its methods do with them is in the tests of `lake`."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.io.memory import MemoryFileIO
from bergline.lake.handle import LakeHandle
from bergline.lake.tables import create_table, open_table, transaction
from bergline.table.commits.retry import Timing
from bergline.table.evolution.definition import define_table
from support.fixtures.rows import ORDERS

NAME = TableName(("db",), "orders")


def test_tables_are_created_and_opened_on_the_catalog_of_the_handle() -> None:
    lake = LakeHandle(PointerCatalog(MemoryPointerStore(), MemoryFileIO(), "memory://warehouse"), Timing())
    lake.catalog.create_namespace(NAME.namespace, {})
    created = create_table(lake, NAME, define_table(ORDERS))
    assert open_table(lake, lake.catalog.load_table(NAME)).metadata == created.metadata
    with transaction(lake) as tables:
        assert tables.load_table(NAME) is tables.load_table("db.orders")
