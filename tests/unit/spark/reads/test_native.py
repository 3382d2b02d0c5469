"""Paths as Spark's own reader spells them."""

from bergline.spark.reads.native import spark_path


def test_paths_are_spelt_as_java_does() -> None:
    assert spark_path("/a b/c%20{x}#?/ü☃'=1.parquet") == "file:/a%20b/c%2520%7Bx%7D%23%3F/ü☃'=1.parquet"
