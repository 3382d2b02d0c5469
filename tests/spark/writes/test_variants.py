"""Variants are Spark's VARIANT: every way to write them, and both readers."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake
from bergline.errors import InvalidInputError
from support.fixtures.chosen_readers import native_refusal

pytestmark = pytest.mark.spark

V3 = "TBLPROPERTIES ('format-version' = '3')"


def rows(spark: SparkSession, columns: str = "id, to_json(v)") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(f"SELECT {columns} FROM db.t ORDER BY id").collect()]


def test_variants_are_written_in_every_way_and_read_by_both_readers(spark: SparkSession, lake: Lake) -> None:
    spark.sql(f"CREATE TABLE db.t (id BIGINT, v VARIANT, l ARRAY<VARIANT>, s STRUCT<v: VARIANT>) {V3}")
    assert rows(spark) == []
    one = 'parse_json(\'{"a": 7, "b": [1, "x"]}\')'
    spark.sql(
        f"INSERT INTO db.t VALUES (1, {one}, array({one}, NULL), named_struct('v', {one})), (2, NULL, NULL, NULL)"
    )
    frame = spark.range(10, 14).selectExpr("id", "to_variant_object(named_struct('a', id)) AS v")
    frame.writeTo("db.t").append()
    spark.sql("UPDATE db.t SET v = parse_json('\"new\"') WHERE id = 11")
    spark.sql("UPDATE db.t SET id = id + 10 WHERE variant_get(v, '$.a', 'int') = 12")
    spark.sql("DELETE FROM db.t WHERE variant_get(v, '$.a', 'int') = 13")
    spark.sql(
        "MERGE INTO db.t USING (SELECT 10 AS id, parse_json('[1]') AS v UNION ALL SELECT 30, parse_json('null')) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    first = '{"a":7,"b":[1,"x"]}'
    expected = [(1, first), (2, None), (10, "[1]"), (11, '"new"'), (22, '{"a":12}'), (30, "null")]
    assert rows(spark) == expected
    table = lake.load_table("db.t")
    assert native_refusal(table.scan()) is None
    # row ids are not for Spark's own reader
    assert [row[1:] for row in rows(spark, "_row_id, id, to_json(v)")] == expected
    assert rows(spark, "v:a::string, v:b[1]::string, to_json(l[0]), to_json(s.v), id")[0] == ("7", "x", first, first, 1)
    spark.sql("INSERT OVERWRITE db.t SELECT * FROM db.t WHERE v:a::int = 12 OR v IS NULL")
    assert rows(spark) == [(2, None), (22, '{"a":12}')]
    table = table.refresh()
    found = table.scan("id = 22").to_arrow()
    engine = bergline.spark.row_engine(spark)
    assert table.upsert(found.select(["id", "v"]), ["id"], engine=engine).rows_updated == 0
    assert table.upsert(found.set_column(0, "id", [[2]]).select(["id", "v"]), ["id"], engine=engine).rows_updated == 1
    assert rows(spark) == [(2, '{"a":12}'), (22, '{"a":12}')]
    table.compact(sort_order="id", options={"rewrite-all": "true"}, engine=engine)
    assert rows(spark, "id, schema_of_variant(v)") == [(2, "OBJECT<a: BIGINT>"), (22, "OBJECT<a: BIGINT>")]


def test_variants_need_format_version_3_and_a_variant(spark: SparkSession, lake: Lake) -> None:
    for text in ("(id INT, v VARIANT) TBLPROPERTIES ('format-version' = '2')", "AS SELECT parse_json('1') AS v"):
        with pytest.raises(InvalidInputError, match="expected types of format version 2, found `variant`"):
            spark.sql(f"CREATE TABLE db.t {text}")
    spark.sql(f"CREATE TABLE db.t {V3} AS SELECT 1 AS id, parse_json('1') AS v")
    with pytest.raises(InvalidInputError, match="expected `variant`, found `string` for column `v`"):
        spark.sql("INSERT INTO db.t VALUES (2, '{}')")
    spark.sql("ALTER TABLE db.t ADD COLUMN w VARIANT")
    assert rows(spark, "id, to_json(v), w") == [(1, "1", None)]
    for change in ("ADD COLUMN x VARIANT DEFAULT 1", "ADD PARTITION FIELD v", "WRITE ORDERED BY v"):
        with pytest.raises(InvalidInputError, match="variant"):
            spark.sql(f"ALTER TABLE db.t {change}")
    assert lake.load_table("db.t").schema.fields[-1].name == "w"


def test_shredded_variants_go_to_the_arrow_reader(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    settings = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.forceShreddingSchemaForTest": "a int, b string",
    }
    texts = ['{"a":1,"b":"x","c":[1.5]}', '{"a":"no int"}', "[2]", None]
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        frame = spark.createDataFrame(list(enumerate(texts)), "id BIGINT, j STRING")
        frame.selectExpr("id", "parse_json(j) AS v").write.parquet(f"{tmp_path}/plain")
    finally:
        for key in settings:
            spark.conf.unset(key)
    spark.sql(f"CREATE TABLE db.t (id BIGINT, v VARIANT) {V3}")
    spark.sql(f"CALL system.add_files(table => 'db.t', source_table => '`parquet`.`{tmp_path}/plain`')")
    assert "whose type is `variant`" in (native_refusal(lake.load_table("db.t").scan()) or "")
    assert rows(spark) == list(enumerate(texts))
    assert [row.id for row in spark.sql("SELECT id FROM db.t WHERE v:a::string = '1'").collect()] == [0]
