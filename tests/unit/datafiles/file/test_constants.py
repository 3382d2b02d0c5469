"""Plain values as Arrow arrays."""

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import constant_array, plain_to_arrow
from bergline.format.types.types import LONG, StructType
from support.fixtures.every_type import COLUMNS


@pytest.mark.parametrize("name", COLUMNS)
def test_constant_of_every_type_stands_in_every_row(name: str) -> None:
    type_, values = COLUMNS[name]
    for value in values:
        found = constant_array(type_, value, 3)
        assert found.type == arrow_type(type_)
        assert found.equals(pa.concat_arrays([plain_to_arrow(type_, [value])] * 3)) or "nan" in repr(found.to_pylist())
        assert len(found) == 3


def test_nothing_is_null_of_its_type() -> None:
    assert constant_array(LONG, None, 2).equals(pa.nulls(2, pa.int64()))
    assert constant_array(LONG, 5, 0).equals(pa.array([], pa.int64()))
    assert constant_array(StructType(()), None, 1).to_pylist() == [None]
