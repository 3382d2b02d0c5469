"""Spark's store assignment: which types go into which, and where inside a column they do not."""

import pytest
from pyspark.sql import types as T  # noqa: N812

from bergline.spark.writes.store_assignment import AssignmentRules, Misfit, find_misfit, plain_type

ANSI, STRICT = AssignmentRules(), AssignmentRules("STRICT")


def type_of(text: str) -> T.DataType:
    """A type by a few words of DDL, without a session to parse it."""
    simple = {"int": T.IntegerType(), "long": T.LongType(), "text": T.StringType(), "date": T.DateType()}
    return {**simple, "null": T.NullType(), "time": T.TimestampType(), "binary": T.BinaryType()}[text]


def struct(**fields: str) -> T.StructType:
    return T.StructType([T.StructField(name, type_of(text)) for name, text in fields.items()])


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("long", "int", True),
        ("int", "text", True),
        ("null", "binary", True),
        ("date", "time", True),
        ("text", "int", False),
        ("text", "date", False),
        ("int", "date", False),
        ("binary", "text", True),
    ],
)
def test_values_fit_by_sparks_rule(source: str, target: str, fits: bool) -> None:
    assert (find_misfit(type_of(source), type_of(target), "c", ANSI, by_name=False) is None) == fits


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        (T.LongType(), T.IntegerType(), False),
        (T.IntegerType(), T.LongType(), True),
        (T.LongType(), T.FloatType(), True),
        (T.TimestampType(), T.DateType(), False),
        (T.DateType(), T.TimestampNTZType(), True),
        (T.NullType(), T.IntegerType(), False),
        (T.IntegerType(), T.DecimalType(9, 0), False),
        (T.IntegerType(), T.DecimalType(12, 2), True),
        (T.DecimalType(9, 0), T.IntegerType(), True),
        (T.DecimalType(4, 2), T.DecimalType(5, 2), True),
        (T.DecimalType(4, 2), T.DecimalType(5, 4), False),
        (T.DecimalType(4, 2), T.DoubleType(), False),
        (T.BinaryType(), T.StringType(), True),
        (T.StringType(), T.BinaryType(), False),
    ],
    ids=str,
)
def test_only_wider_types_fit_where_the_policy_is_strict(source: T.DataType, target: T.DataType, fits: bool) -> None:
    assert (find_misfit(source, target, "c", STRICT, by_name=False) is None) == fits
    assert (find_misfit(T.ArrayType(source), T.ArrayType(target), "c", STRICT, by_name=True) is None) == fits


def test_names_of_fields_differ_in_case_if_the_session_says_so() -> None:
    source, target = struct(B="text", a="int"), struct(a="int", b="text")
    exact = AssignmentRules(is_case_sensitive=True)
    assert find_misfit(source, target, "c", exact, by_name=True) == Misfit(
        "c", "fields `a`, `b`", "`B`", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"
    )


def test_misfit_is_named_by_its_path() -> None:
    source, target = struct(a="int", b="text"), struct(a="int", b="date")
    expected = Misfit("c.element.b", "`date`", "`string`")
    assert find_misfit(T.ArrayType(source), T.ArrayType(target), "c", ANSI, by_name=False) == expected
    pairs = T.MapType(T.StringType(), source), T.MapType(T.StringType(), target)
    assert find_misfit(*pairs, "c", ANSI, by_name=False) == expected._replace(path="c.value.b")


def test_structs_go_by_name_or_by_position() -> None:
    source, target = struct(B="text", a="int"), struct(a="int", b="text")
    assert find_misfit(source, target, "c", ANSI, by_name=True) is None
    assert find_misfit(source, target, "c", ANSI, by_name=False) == Misfit("c.a", "`int`", "`string`")
    assert find_misfit(struct(x="int"), target, "c", ANSI, by_name=True) == Misfit(
        "c", "fields `a`, `b`", "`x`", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"
    )
    assert find_misfit(struct(a="int"), target, "c", ANSI, by_name=True) is None
    assert find_misfit(struct(a="int"), target, "c", ANSI, by_name=False) == Misfit(
        "c", "2 fields (`a`, `b`)", "1 (`a`)", "INCOMPATIBLE_DATA_FOR_TABLE.STRUCT_MISSING_FIELDS"
    )
    twice = struct(b="text", B="text")
    assert find_misfit(twice, target, "c", ANSI, by_name=True) == Misfit(
        "c", "field `b` once", "it twice", "INCOMPATIBLE_DATA_FOR_TABLE.AMBIGUOUS_COLUMN_NAME"
    )


def test_plain_types_have_no_nullability_and_no_metadata() -> None:
    given = T.StructType([T.StructField("a", T.ArrayType(T.StringType(), False), False, {"field-id": 1})])
    assert plain_type(given) == T.StructType([T.StructField("a", T.ArrayType(T.StringType()))])
