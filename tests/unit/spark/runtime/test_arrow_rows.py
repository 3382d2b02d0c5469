import uuid

import pyarrow as pa
import pytest

from bergline.spark.runtime.arrow_rows import in_spark

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
UUIDS = pa.array([ID.bytes, None], pa.uuid())


def test_uuids_become_text_and_fixed_becomes_binary() -> None:
    assert in_spark(UUIDS).to_pylist() == [str(ID), None]
    assert in_spark(pa.array([b"ab", None], pa.binary(2))).type == pa.binary()


def test_what_spark_has_stays_the_same_array() -> None:
    for array in (pa.array([1, 2]), pa.array([[1], None]), pa.array([{"a": 1}])):
        assert in_spark(array) is array


@pytest.mark.parametrize("taken", [slice(0, 4), slice(1, 3)], ids=["whole", "slice"])
def test_nested_values_are_converted_with_their_nulls(taken: slice) -> None:
    fixed = pa.binary(2)
    rows = pa.table(
        {
            "s": pa.array([{"f": b"ab"}, None, {"f": None}, {"f": b"cd"}], pa.struct([("f", fixed)])),
            "l": pa.array([[b"ab"], None, [], [None, b"cd"]], pa.list_(fixed)),
            "m": pa.array([[(b"ab", b"cd")], None, [], [(b"ef", None)]], pa.map_(fixed, fixed)),
        }
    )
    for column in rows.columns:
        array = column.combine_chunks()[taken]
        converted = in_spark(array)
        converted.validate(full=True)
        assert converted.to_pylist() == array.to_pylist()
        assert "fixed" not in str(converted.type)
