"""Functions whose meaning the lakes know: partition transforms, and the current catalog and schema."""

import pytest

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.spark.query_text.lake_functions import (
    check_no_partition_functions,
    with_current_names,
    with_partition_functions,
)
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.text.tokens import SqlText

CATALOG, SCHEMA = "'lake' AS `current_catalog()`", "'db' AS `current_schema()`"


@pytest.mark.parametrize("call", ["system.bucket(4, id)", "lake.SYSTEM.days(ts)", "system . iceberg_version()"])
def test_function_of_a_lake_is_refused_with_what_to_write(lake: Lake, call: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot call `.*` here") as caught:
        check_no_partition_functions(SqlText(f"SELECT {call} FROM db.t"), Lakes({"lake": lake}, "lake"))
    assert any("date_trunc" in hint for hint in caught.value.hints)


@pytest.mark.parametrize(
    "text", ["other.system.bucket(4, id)", "system.f(id)", "bucket(4, id)", "system.bucket", "'system.days(x)'"]
)
def test_other_functions_are_the_engines(lake: Lake, text: str) -> None:
    check_no_partition_functions(SqlText(f"SELECT {text} FROM db.t"), Lakes({"lake": lake}, "lake"))


class _Engine(NoEngine):
    @property
    def has_partition_functions(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("SELECT system.Bucket(4, id)", "SELECT bergline_system_bucket(4, id)"),
        ("SELECT lake . `system`.days(ts), a.b(1)", "SELECT bergline_system_days(ts), a.b(1)"),
        ("SELECT other.system.days(ts), 'system.days(x)'", None),
    ],
)
def test_engine_that_has_them_gets_names_of_its_own(lake: Lake, text: str, known: str | None) -> None:
    lakes = Lakes({"lake": lake}, "lake", engine=_Engine())
    assert with_partition_functions(SqlText(text), lakes).text == (known or text)
    with pytest.raises(UnsupportedError, match="here"):
        with_partition_functions(SqlText("SELECT system.days(ts)"), Lakes({"lake": lake}, "lake"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT current_catalog(), CURRENT_DATABASE ( )", f"SELECT {CATALOG}, {SCHEMA}"),
        ("SELECT DISTINCT current_schema() FROM t", f"SELECT DISTINCT {SCHEMA} FROM t"),
        ("SELECT current_schema() s, current_schema() AS t", "SELECT 'db' s, 'db' AS t"),
        ("SELECT concat(a, current_schema()), b", "SELECT concat(a, 'db'), b"),
        ("SELECT (SELECT current_schema()) = 'db'", f"SELECT (SELECT {SCHEMA}) = 'db'"),
        ("SELECT * EXCEPT (a), current_schema() FROM t", f"SELECT * EXCEPT (a), {SCHEMA} FROM t"),
        (
            "SELECT a FROM t WHERE b IN (c, current_schema()) GROUP BY a, current_schema()",
            "SELECT a FROM t WHERE b IN (c, 'db') GROUP BY a, 'db'",
        ),
        ("SELECT 'current_schema()', x.current_schema(), current_schema FROM t -- current_schema()", None),
        ("VALUES (current_schema(), 1)", "VALUES ('db', 1)"),
    ],
)
def test_calls_are_replaced_and_columns_keep_their_names(lake: Lake, text: str, expected: str | None) -> None:
    used = Lakes({"lake": lake}, "lake", Current("lake", ("db",)))
    assert with_current_names(SqlText(text), used) == SqlText(expected or text)
    assert with_current_names(SqlText(text), Lakes({"lake": lake}, "lake")) == SqlText(text)


def test_names_are_written_as_text(lake: Lake) -> None:
    used = Lakes({"it's": lake}, "it's", Current("it's", ("a b", "c")))
    found = with_current_names(SqlText("SELECT current_catalog() AS c, current_schema() AS s"), used)
    assert found.text == "SELECT 'it\\'s' AS c, '`a b`.c' AS s"
