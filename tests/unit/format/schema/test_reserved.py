"""Reserved columns have the specification's ids."""

from bergline.format.schema.reserved import (
    DELETE_FILE_PATH,
    DELETE_POS,
    MAX_COLUMN_ID,
    METADATA_COLUMNS,
    RESERVED_IDS,
    partition_column,
)
from bergline.format.types.types import StructType


def test_metadata_columns_have_the_ids_of_the_specification() -> None:
    assert {name: f.id for name, f in METADATA_COLUMNS.items()} == {
        "_file": 2147483646,
        "_pos": 2147483645,
        "_deleted": 2147483644,
        "_spec_id": 2147483643,
        "_row_id": 2147483540,
        "_last_updated_sequence_number": 2147483539,
    }
    assert (DELETE_FILE_PATH.id, DELETE_POS.id) == (2147483546, 2147483545)
    assert partition_column(StructType(())).id == 2147483642


def test_reserved_ids_lie_above_those_of_columns() -> None:
    assert len(RESERVED_IDS) == 13
    assert min(RESERVED_IDS) > MAX_COLUMN_ID == 2**31 - 1 - 200
