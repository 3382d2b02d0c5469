"""Partition transforms as functions in queries."""

import pytest

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.spark.query_text.partition_functions import check_no_partition_functions, with_partition_functions
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import SqlText


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
