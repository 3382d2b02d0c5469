"""Which column of a query goes to which column of a table."""

import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=str)


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def test_structs_go_by_name_in_frames_and_by_position_in_insert(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.n (id BIGINT, who STRUCT<name: STRING, age: BIGINT>, list ARRAY<STRUCT<a: INT, b: INT>>, "
        "m MAP<STRING, STRUCT<a: INT, b: INT>>) USING iceberg"
    )
    spark.sql(
        "SELECT map('k', named_struct('b', 1, 'a', 2)) AS m, array(named_struct('b', 3, 'a', 4)) AS list, "
        "named_struct('AGE', 5, 'name', 'x') AS who, 1 AS id"
    ).writeTo("db.n").append()
    spark.sql("SELECT named_struct('age', 6) AS who, 2 AS id").writeTo("db.n").append()
    spark.sql("INSERT INTO db.n (id, who) VALUES (3, struct('y', 7))")
    rows = {row.id: row.asDict(recursive=True) for row in spark.table("db.n").collect()}
    assert rows[1] == {
        "id": 1,
        "who": {"name": "x", "age": 5},
        "list": [{"a": 4, "b": 3}],
        "m": {"k": {"a": 2, "b": 1}},
    }
    assert rows[2]["who"] == {"name": None, "age": 6}
    assert rows[3]["who"] == {"name": "y", "age": 7}
    with pytest.raises(InvalidInputError, match=r"expected `bigint`, found `string` for column `who\.age`"):
        spark.sql("INSERT INTO db.n (who) SELECT struct('y', 'old')")
    with pytest.raises(InvalidInputError, match=r"expected fields `name`, `age`, found `nmae` for column `who`"):
        spark.sql("SELECT named_struct('nmae', 'x') AS who").writeTo("db.n").append()
    with pytest.raises(InvalidInputError, match=r"expected 2 fields .* for column `list.element`"):
        spark.sql("INSERT INTO db.n (list) SELECT array(struct(1))")


def test_columns_that_are_not_given_have_their_default(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.d", ORDERS, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("state", "string", default="new")
    spark.sql("INSERT INTO db.d (id) VALUES (1)")
    spark.createDataFrame([(2,)], "id long").writeTo("db.d").append()
    spark.sql("INSERT INTO db.d VALUES (3, DEFAULT, 'eu', DEFAULT)")
    assert query(spark, "SELECT id, amount, state FROM db.d") == [(1, None, "new"), (2, None, "new"), (3, None, "new")]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("INSERT INTO db.parts BY NAME SELECT 1 AS id, 'x' AS regoin", NotFoundError, "no column `regoin`"),
        ("INSERT INTO db.parts BY NAME SELECT 1 AS id, 2 AS ID", InvalidInputError, "column `id` once"),
        ("INSERT INTO db.parts PARTITION (id = 1) VALUES (1.0, 'x')", InvalidInputError, r"as they are \(`region`\)"),
        ("INSERT INTO db.parts PARTITION (nope = 1) VALUES (1)", NotFoundError, "no column `nope`"),
        ("INSERT INTO db.parts PARTITION (region = 'x') VALUES (1)", InvalidInputError, "expected 2 columns"),
        ("INSERT INTO db.parts PARTITION (region = 'x', region) VALUES (1)", InvalidInputError, "found it twice"),
        ("INSERT INTO db.parts PARTITION (region = 'x') (id, region) VALUES (1, 'y')", InvalidInputError, "PARTITION"),
        ("INSERT INTO db.parts (id, ID) VALUES (1, 2)", InvalidInputError, "each column once"),
        ("INSERT OVERWRITE db.parts PARTITION (region = 'x') IF NOT EXISTS VALUES (1, 2)", UnsupportedError, "IF NOT"),
        ("INSERT INTO db.parts WITH (brnch = 'x') VALUES (1, 1, 'x')", UnsupportedError, "found `brnch`"),
        ("INSERT INTO db.parts WITH (`snapshot-property.wap.id` = 'x') VALUES (1, 1, '')", InvalidInputError, "wap.id"),
        ("INSERT INTO db.parts WITH (`distribution-mode` = 'x') VALUES (1, 1, 'x')", InvalidInputError, "none or hash"),
        (
            "INSERT INTO db.parts REPLACE WHERE id > rand() VALUES (1, 1, 'x')",
            InvalidInputError,
            "a deterministic condition",
        ),
        ("INSERT INTO db.parts VALUES (null, 1, 'x')", InvalidInputError, "required column `id`, found 1 null$"),
        ("INSERT INTO db.parts VALUES (true, 1, 'x')", InvalidInputError, "expected `bigint`, found `boolean`"),
    ],
)
def test_inserts_that_do_not_fit_say_which_column_and_write_nothing(
    spark: SparkSession, parts: Table, statement: str, error: type[Exception], message: str
) -> None:
    before, files = parts.metadata_location, parts.io.list(parts.location)
    with pytest.raises(error, match=message):
        spark.sql(statement)
    assert parts.refresh().metadata_location == before
    assert parts.io.list(parts.location) == files


def test_near_names_are_offered(spark: SparkSession, parts: Table) -> None:
    with pytest.raises(NotFoundError) as caught:
        spark.sql("SELECT 1 AS id, 'x' AS regoin").writeTo("db.parts").append()
    assert caught.value.near == ("region",)
