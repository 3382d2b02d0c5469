"""Names of tables of the session catalog, and which of them can be imported."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.sql.names.session_catalog import SessionTable, session_table_name


def test_names_are_those_of_the_session_catalog() -> None:
    assert session_table_name(("db", "t"), "db.t") == ("db", "t")
    assert session_table_name(("SPARK_catalog", "db", "t"), "x") == ("db", "t")


@pytest.mark.parametrize("name", [("t",), ("lake", "db", "t"), ("spark_catalog", "t"), ("a", "b", "c", "d")])
def test_other_names_are_refused(name: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a table of the session catalog like `spark_catalog\.db"):
        session_table_name(name, ".".join(name))


def test_tables_of_other_files_and_with_buckets_are_refused() -> None:
    schema = Schema(fields=())
    SessionTable(("db", "t"), "PARQUET", "/x", schema).check_importable()
    with pytest.raises(UnsupportedError, match="expected a table of Parquet files, found `orc` for `spark_catalog"):
        SessionTable(("db", "t"), "orc", "/x", schema).check_importable()
    with pytest.raises(UnsupportedError, match="without buckets"):
        SessionTable(("db", "t"), "parquet", "/x", schema, is_bucketed=True).check_importable()
