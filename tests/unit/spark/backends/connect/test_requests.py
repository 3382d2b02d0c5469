"""What Spark Connect's own readers and writers were told; no server is needed to tell."""

from types import SimpleNamespace
from typing import Any

from pyspark.sql.connect.plan import Range
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter

from bergline.spark.backends.connect.requests import ConnectRequests
from bergline.spark.runtime.requests import SaveRequest

SETTINGS = {"spark.sql.sources.default": "parquet"}
REQUESTS = ConnectRequests(SimpleNamespace(conf=SimpleNamespace(get=SETTINGS.get)))


def writer() -> Any:
    return DataFrameWriter(Range(0, 1, 1), REQUESTS.spark)


def test_reader_says_what_it_was_told() -> None:
    reader: Any = DataFrameReader(REQUESTS.spark)
    assert REQUESTS.load(reader) == (None, {}, False)
    reader.format("iceberg").option("Branch", "dev").option("none", None).schema("id long")
    assert REQUESTS.load(reader) == ("iceberg", {"branch": "dev"}, True)


def test_writer_says_what_it_was_told() -> None:
    assert REQUESTS.save(writer()) == SaveRequest("parquet", "errorifexists", {})
    told = writer().format("ICEBERG").mode("overwrite").option("branch", "dev").partitionBy("a", "b")
    assert REQUESTS.save(told) == SaveRequest("iceberg", "overwrite", {"branch": "dev"}, ("a", "b"))
    assert REQUESTS.save(writer().mode("default")).mode == "errorifexists"
    assert REQUESTS.save(writer().bucketBy(4, "a")).buckets
