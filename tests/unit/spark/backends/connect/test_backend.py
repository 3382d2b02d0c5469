"""What Spark Connect's own objects were told; no server is needed to tell."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect import functions as F  # noqa: N812
from pyspark.sql.connect.plan import Range
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.types import LongType

from bergline.errors import UnsupportedError
from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.runtime.backend import NO_SESSION, SaveRequest

SETTINGS = {"spark.sql.sources.default": "parquet"}
BACKEND = ConnectBackend(SimpleNamespace(session_id="one", client=None, conf=SimpleNamespace(get=SETTINGS.get)))


def writer() -> Any:
    return DataFrameWriter(Range(0, 1, 1), BACKEND.spark)


def test_reader_says_what_it_was_told() -> None:
    reader: Any = DataFrameReader(BACKEND.spark)
    assert BACKEND.load_request(reader) == (None, {}, False)
    reader.format("iceberg").option("Branch", "dev").option("none", None).schema("id long")
    assert BACKEND.load_request(reader) == ("iceberg", {"branch": "dev"}, True)


def test_writer_says_what_it_was_told() -> None:
    assert BACKEND.save_request(writer()) == SaveRequest("parquet", "errorifexists", {})
    told = writer().format("ICEBERG").mode("overwrite").option("branch", "dev").partitionBy("a", "b")
    assert BACKEND.save_request(told) == SaveRequest("iceberg", "overwrite", {"branch": "dev"}, ("a", "b"))
    assert BACKEND.save_request(writer().mode("default")).mode == "errorifexists"
    assert BACKEND.save_request(writer().bucketBy(4, "a")).buckets


def test_casts_fail_where_a_value_does_not_fit() -> None:
    cast: Any = BACKEND.ansi_cast(F.col("a"), LongType())  # type: ignore[arg-type]
    assert cast.to_plan(None).cast.eval_mode == 2  # EVAL_MODE_ANSI


def test_what_only_the_server_knows_is_not_guessed() -> None:
    frame: Any = None
    assert BACKEND.task_slots is None
    assert not BACKEND.has_local_executors
    assert BACKEND.count_files(frame) is None
    assert not BACKEND.is_at_hand(frame, 10)
    assert BACKEND.s3a_refusal() == NO_SESSION
    with pytest.raises(UnsupportedError, match=r"longer than spark\.sql\.maxPlanStringLength"):
        BACKEND.named_subqueries(frame)
