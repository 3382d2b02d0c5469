"""What a server says when it starts; tests/conformance and tests/engines type it in each engine."""

import shlex
import time

import msgspec
import pytest

from bergline.server.access.authenticator import Authenticator
from bergline.server.connection_examples import connection_examples
from bergline.server.context.context import ServerContext
from bergline.server.credentials.vending import StaticVending

TOKEN = "bl_" + "t" * 43
ENGINES = ("bergline", "PyIceberg", "DuckDB", "Spark", "Flink", "Trino")


def test_every_engine_has_its_lines(context: ServerContext) -> None:
    text = connection_examples(context, "http://h:1")
    assert text.startswith(f"serving `lake` ({context.settings.warehouse}) at http://h:1\n")
    for engine in ENGINES:
        assert text.count(f"\n  {engine} ") == 1
    assert "\n  browser    http://h:1/\n" in text
    assert text.count("http://h:1") == len(ENGINES) + 2
    assert "TOKEN" not in text
    assert "fs.hadoop.enabled=true" in text


def test_token_is_named_where_one_is_needed(context: ServerContext) -> None:
    context.records.tokens.create("ann", TOKEN, time.time_ns() // 1_000_000, None)
    context.authenticator = Authenticator(context.records)
    text = connection_examples(context, "http://h:1")
    assert text.count("TOKEN") >= len(ENGINES)
    assert TOKEN not in text


def test_names_are_quoted_where_they_need_it(context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, name="my 'own' lake")
    text = connection_examples(context, "http://h:1")
    assert """ATTACH 'my ''own'' lake' AS "my 'own' lake" (""" in text
    assert "CREATE CATALOG `my 'own' lake` WITH" in text
    spark = text[text.index("--conf") : text.index("  Flink")]
    assert "spark.sql.catalog.my 'own' lake.type=rest" in shlex.split(spark)


@pytest.mark.parametrize(
    ("warehouse", "storage", "expected"),
    [
        ("s3://b/w", {"s3.region": "eu"}, {"fs.native-s3.enabled=true", "s3.region=eu"}),
        (
            "s3a://b/w",
            {"s3.endpoint": "http://s", "client.region": "us"},
            {"fs.native-s3.enabled=true", "s3.endpoint=http://s", "s3.region=us", "s3.path-style-access=true"},
        ),
        ("gs://b/w", {"gcs.project-id": "p"}, {"fs.native-gcs.enabled=true"}),
        ("abfss://c@a/w", {}, {"fs.native-azure.enabled=true"}),
        (None, {}, {"fs.hadoop.enabled=true"}),
    ],
)
def test_trino_is_told_how_to_reach_the_files(
    context: ServerContext, warehouse: str | None, storage: dict[str, str], expected: set[str]
) -> None:
    context.settings = msgspec.structs.replace(context.settings, warehouse=warehouse, storage=storage)
    lines = [line.strip() for line in connection_examples(context, "http://h:1").splitlines()]
    files = {line for line in lines if line.startswith(("fs.", "s3.")) and "aws" not in line}
    assert files == expected
    assert ("s3.aws-access-key=KEY" in lines) == ("fs.native-s3.enabled=true" in lines)


def test_engines_that_do_not_ask_for_credentials_by_themselves_are_told_to(context: ServerContext) -> None:
    assert "vended-credentials" not in connection_examples(context, "http://h:1")
    context.credentials.vending = StaticVending({"s3.access-key-id": "k", "s3.secret-access-key": "s"})
    text = connection_examples(context, "http://h:1")
    assert "spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation=vended-credentials" in text
    assert "'header.X-Iceberg-Access-Delegation'='vended-credentials'" in text
