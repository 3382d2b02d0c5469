"""CREATE, ALTER and DROP VIEW, and what SHOW and DESCRIBE say about views."""

import pytest

from bergline import Lake
from bergline.catalog.catalog import DroppedView
from bergline.catalog.sql.records import sql_store_of
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField
from bergline.sql.statements.views import (
    AlterViewAs,
    CreateView,
    DropView,
    RenameView,
    SetViewProperties,
    UndropView,
)
from bergline.table.view import View
from support.fixtures.sql_statements import Session, check_unreadable, meaning

V = ("db", "v")
COLUMNS = Schema(fields=(NestedField(1, "id", False, LONG, "the id"), NestedField(2, "a b", True, STRING)))


@pytest.fixture
def view(lake: Lake) -> View:
    properties = {
        "comment": "it's",
        "k": "v",
        "create_engine_version": "Spark 4.1.4",
        "spark.query-column-names": "x,y",
    }
    return lake.create_view(
        "db.v", {"spark": "SELECT x, y FROM db.t", "trino": "TABLE t"}, COLUMNS, properties=properties
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER VIEW db.v SET TBLPROPERTIES ('a' = 1)", SetViewProperties(V, {"a": "1"})),
        (
            "ALTER VIEW db.v UNSET TBLPROPERTIES IF EXISTS ('a', b)",
            SetViewProperties(V, removals=("a", "b"), if_exists=True),
        ),
        ("ALTER VIEW db.v RENAME TO lake.db.w;", RenameView(V, ("lake", "db", "w"))),
        ("DROP VIEW IF EXISTS db.v", DropView(V, if_exists=True)),
        ("UNDROP VIEW db.v", UndropView(V)),
        ("UNDROP VIEW db.v TO db.w", UndropView(V, ("db", "w"))),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


def test_definition_keeps_the_query_as_it_was_written() -> None:
    created = meaning(
        "CREATE OR REPLACE VIEW db.v (a COMMENT 'one', `b c`) TBLPROPERTIES (k = 'v') COMMENT 'words'\n"
        "AS SELECT x  AS a, -- first\n y FROM t ;"
    )
    assert isinstance(created, CreateView)
    assert created.query.text.strip() == "SELECT x  AS a, -- first\n y FROM t"
    assert (created.view, created.columns) == (V, (("a", "one"), ("b c", None)))
    assert created.properties == {"k": "v", "comment": "words"}
    assert created.replaces
    assert not created.if_not_exists
    altered = meaning("ALTER VIEW v AS (SELECT 1)")
    assert isinstance(altered, AlterViewAs)
    assert altered.query.text == "(SELECT 1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE VIEW db.v", "expected `COMMENT`, `TBLPROPERTIES`, `AS`, found the end of the statement"),
        ("CREATE VIEW db.v AS", "expected a query, found the end of the statement"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS db.v AS SELECT 1", "expected OR REPLACE or IF NOT EXISTS, found both"),
        ("CREATE VIEW db.v PARTITIONED ON (x) AS SELECT 1", "found `PARTITIONED`"),
        ("CREATE VIEW db.v WITH SCHEMA EVOLUTION AS SELECT 1", "expected `WITH SCHEMA BINDING`, found `EVOLUTION`"),
        (
            "CREATE VIEW db.v TBLPROPERTIES ('engine_version' = 'x') AS SELECT 1",
            "expected no property `engine_version`",
        ),
        ("ALTER VIEW db.v SET TBLPROPERTIES ('location' = 'x')", "expected no property `location`"),
        ("ALTER VIEW db.v", "expected `AS`, `SET TBLPROPERTIES`"),
        ("DROP VIEW db.v CASCADE", "expected the end of the statement, found `CASCADE`"),
        ("UNDROP VIEW db.v AS db.w", "expected `TO`, the end of the statement, found `AS`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {V, ("db",)})


@pytest.mark.usefixtures("view")
def test_view_is_described_with_the_rows_of_the_official_runtime(run: Session, view: View) -> None:
    assert (run("DESCRIBE db.v") or []) == [("id", "bigint", "the id"), ("a b", "string", "")]
    assert (run("DESC db.v id") or [])[1:] == [("data_type", "bigint"), ("comment", "the id")]
    assert (run("SHOW COLUMNS IN db.v") or []) == [("id",), ("a b",)]
    shown = f"'format-version' = '1', 'k' = 'v', 'location' = '{view.metadata.location}', 'provider' = 'iceberg'"
    assert (run("DESCRIBE EXTENDED db.v") or [])[3:] == [
        ("# Detailed View Information", "", ""),
        ("Comment", "it's", ""),
        ("View Catalog and Namespace", "lake.db", ""),
        ("View Query Output Columns", "[x, y]", ""),
        ("View Properties", f"[{shown}]", ""),
        ("Created By", "Spark 4.1.4", ""),
    ]
    ((text,),) = run("SHOW CREATE TABLE db.v") or []
    assert str(text).startswith(
        "CREATE VIEW lake.db.v (\n  id COMMENT 'the id',\n  `a b`)\nCOMMENT 'it\\'s'\nTBLPROPERTIES ("
    )
    assert str(text).endswith(")\nAS\nSELECT x, y FROM db.t\n")
    assert [row[0] for row in (run("SHOW TBLPROPERTIES db.v") or [])] == [
        "format-version",
        "k",
        "location",
        "provider",
    ]
    assert (run("SHOW TBLPROPERTIES db.v (nope)") or []) == [("nope", "View lake.db.v does not have property: nope")]


@pytest.mark.usefixtures("view")
def test_properties_are_set_and_removed(run: Session, lake: Lake) -> None:
    run("ALTER VIEW db.v SET TBLPROPERTIES (k = 'w', 'n' = 'm')")
    run("ALTER VIEW db.v UNSET TBLPROPERTIES IF EXISTS (k, gone)")
    assert lake.load_view("db.v").properties.keys() & {"k", "n"} == {"n"}
    for key in ("k", "spark.query-column-names"):
        with pytest.raises(NotFoundError, match=f"no property `{key}` of view"):
            run(f"ALTER VIEW db.v UNSET TBLPROPERTIES ('{key}')")


@pytest.mark.usefixtures("view", "orders")
def test_view_is_renamed_and_dropped(run: Session, lake: Lake) -> None:
    run("ALTER VIEW db.v RENAME TO w")
    assert lake.list_views("db") == ["db.w"]
    with pytest.raises(NotFoundError, match=r"no view `db\.orders`: it is a table"):
        run("DROP VIEW db.orders")
    with pytest.raises(NotFoundError, match=r"no table `db\.w`: it is a view"):
        run("DROP TABLE db.w")
    run("DROP VIEW db.w")
    run("DROP VIEW IF EXISTS db.w")
    with pytest.raises(NotFoundError, match=r"no view `db\.w`"):
        run("DROP VIEW db.w")


def test_other_dialects_are_named_where_the_query_is_needed(run: Session, lake: Lake) -> None:
    lake.create_view("db.theirs", {"trino": "TABLE t", "flink": "TABLE t"}, COLUMNS)
    assert run("DESCRIBE db.theirs") == [("id", "bigint", "the id"), ("a b", "string", "")]
    with pytest.raises(UnsupportedError, match=r"dialect `spark` for view `lake\.db\.theirs`, found `flink`, `trino`"):
        run("SHOW CREATE TABLE db.theirs")


def test_query_of_a_view_needs_an_engine(run: Session) -> None:
    with pytest.raises(UnsupportedError, match="without Spark"):
        run("CREATE VIEW db.v AS SELECT 1")


def test_name_without_a_namespace_needs_one_in_use(run: Session) -> None:
    run("USE lake")
    with pytest.raises(InvalidInputError, match="expected a namespace before `v`"):
        run("CREATE VIEW v AS SELECT 1")


def test_undrop_brings_a_view_back(run: Session, view: View, lake: Lake) -> None:
    store = sql_store_of(lake.catalog)
    run("DROP VIEW db.v")
    with store.database.changing() as connection:
        for number in (1, 2):
            store.view_trash.add(connection, DroppedView(view.name, view.metadata_location, number, 9, "ann"))
    run("UNDROP VIEW db.v")
    run("UNDROP VIEW db.v TO old")
    assert lake.list_views() == ["db.old", "db.v"]
    with pytest.raises(NotFoundError, match=r"no dropped view `db\.v`"):
        run("UNDROP VIEW db.v")
