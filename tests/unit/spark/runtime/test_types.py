import pytest
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.spark.runtime.types import iceberg_schema, read_schema, spark_schema, spark_type, unreadable

INSIDE = StructType((NestedField(3, "x", True, LONG),))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (UUID, T.StringType()),
        (FixedType(4), T.BinaryType()),
        (DecimalType(9, 2), T.DecimalType(9, 2)),
        (TIMESTAMP, T.TimestampNTZType()),
        (TIMESTAMPTZ, T.TimestampType()),
        (TIMESTAMP_NS, T.TimestampNTZType()),
        (TIMESTAMPTZ_NS, T.TimestampType()),
        (TIME, T.StringType()),
        (VARIANT, T.VariantType()),
        (ListType(2, INT, True), T.ArrayType(T.IntegerType(), False)),
        (MapType(2, STRING, 3, LONG, False), T.MapType(T.StringType(), T.LongType(), True)),
        (INSIDE, T.StructType([T.StructField("x", T.LongType(), False)])),
    ],
)
def test_iceberg_types_have_types_in_spark(ours: IcebergType, theirs: T.DataType) -> None:
    assert spark_type(ours, "c") == theirs


def test_type_that_spark_lacks_names_its_column() -> None:
    nested = Schema(fields=(NestedField(1, "a", False, StructType((NestedField(2, "at", False, UNKNOWN),))),))
    with pytest.raises(UnsupportedError, match=r"expected a type that Spark has, found `unknown` in column `a\.at`"):
        spark_schema(nested)


def test_columns_that_spark_lacks_are_void_in_reads() -> None:
    schema = Schema(fields=(NestedField(1, "id", True, LONG), NestedField(2, "at", False, ListType(3, UNKNOWN, False))))
    assert [f.dataType for f in read_schema(schema)] == [T.LongType(), T.NullType()]
    assert unreadable(schema) == {"at": "expected a type that Spark has, found `unknown` in column `at.element`"}
    assert unreadable(Schema(fields=(NestedField(1, "nothing", False, UNKNOWN),))) == {}


def test_columns_of_a_frame_have_ids_of_their_own_and_may_be_null() -> None:
    struct = T.StructType(
        [
            T.StructField("id", T.ShortType(), False, {"comment": "key"}),
            T.StructField("tags", T.ArrayType(T.VarcharType(3))),
            T.StructField("data", T.BinaryType()),
        ]
    )
    assert iceberg_schema(struct).fields == (
        NestedField(1, "id", False, INT, "key"),
        NestedField(2, "tags", False, ListType(3, STRING, False)),
        NestedField(4, "data", False, BINARY),
    )
    with pytest.raises(UnsupportedError, match=r"expected a type that Iceberg has, found `interval .*` in column `i`"):
        iceberg_schema(T.StructType([T.StructField("i", T.DayTimeIntervalType())]))
