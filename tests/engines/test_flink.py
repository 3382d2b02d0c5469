"""Flink on `bergline serve`, by the line that it prints, with bergline writing next to it; `make flink` runs it."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import bergline
from bergline import Lake
from bergline.cli.main import app
from support.servers.bergline_server import BerglineServer
from support.servers.flink_server import FlinkError, FlinkServer, needs_flink

pytestmark = needs_flink

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkServer]:
    with FlinkServer(tmp_path_factory.mktemp("flink") / "log.txt") as server:
        yield server


@pytest.fixture(scope="module")
def lake(flink: FlinkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A served lake that Flink has as its current catalog."""
    with BerglineServer(tmp_path_factory.mktemp("served")) as server, bergline.connect(server.uri) as opened:
        flink.sql(server.connection_examples["Flink"].removesuffix(";"))
        flink.sql("USE CATALOG lake")
        flink.sql("CREATE DATABASE db")
        yield opened


def test_values_that_flink_writes_arrive(flink: FlinkServer, lake: Lake) -> None:
    flink.sql(
        "CREATE TABLE db.types (id BIGINT, who STRING, n DECIMAL(10, 2), ts TIMESTAMP(6), tz TIMESTAMP_LTZ(6), d DATE, "
        "l ARRAY<BIGINT>, m MAP<STRING, BIGINT>, r ROW<a BIGINT, b STRING>) PARTITIONED BY (who)"
    )
    flink.sql(
        "INSERT INTO db.types VALUES (1, 'flink', 1.25, TIMESTAMP '2024-01-02 03:04:05.678901', "
        "CAST(TIMESTAMP '2024-01-02 03:04:05.678901' AS TIMESTAMP_LTZ(6)), DATE '2024-01-02', "
        "ARRAY[1, 2], MAP['a', 1], ROW(1, 'x'))"
    )
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
    (row,) = lake.load_table("db.types").scan("who = 'flink'").to_arrow().to_pylist()
    assert row == {
        "id": 1,
        "who": "flink",
        "n": Decimal("1.25"),
        "ts": at,
        "tz": at.replace(tzinfo=dt.UTC),
        "d": dt.date(2024, 1, 2),
        "l": [1, 2],
        "m": [("a", 1)],
        "r": {"a": 1, "b": "x"},
    }
    flink.sql("INSERT OVERWRITE db.types SELECT 2, who, n, ts, tz, d, l, m, r FROM db.types")
    assert lake.load_table("db.types").scan(columns=["id"]).to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("version", ["2", "3"])
def test_flink_and_bergline_take_turns(flink: FlinkServer, lake: Lake, version: str) -> None:
    name = f"db.turns{version}"
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    table = lake.create_table(name, COLUMNS, properties=properties)
    table.append(rows("bergline", 1, 2))
    table.delete("id = 2")
    flink.sql(f"INSERT INTO {name} VALUES (3, 'flink')")
    table.refresh().append(rows("bergline", 4), branch="dev")
    flink.sql(f"INSERT INTO {name} /*+ OPTIONS('branch'='dev') */ VALUES (5, 'flink')")
    assert of_flink(flink, name) == of_bergline(lake, name) == [(1, "bergline"), (3, "flink")]
    on_branch = [(1, "bergline"), (3, "flink"), (4, "bergline"), (5, "flink")]
    assert of_flink(flink, f"{name} /*+ OPTIONS('branch'='dev') */") == of_bergline(lake, name, "dev") == on_branch


def test_rows_that_flink_replaces_by_key_are_there_once(flink: FlinkServer, lake: Lake) -> None:
    flink.sql(
        "CREATE TABLE db.keyed (id BIGINT NOT NULL, who STRING, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('format-version'='2', 'write.upsert.enabled'='true')"
    )
    lake.load_table("db.keyed").append(rows("bergline", 1, 2, 3))
    flink.sql("INSERT INTO db.keyed VALUES (2, 'flink'), (4, 'flink')")
    expected = [(1, "bergline"), (2, "flink"), (3, "bergline"), (4, "flink")]
    assert of_flink(flink, "db.keyed") == of_bergline(lake, "db.keyed") == expected


def test_tables_that_flink_changes_are_ours_too(flink: FlinkServer, lake: Lake) -> None:
    flink.sql("CREATE TABLE db.plain (id BIGINT, who STRING)")
    flink.sql("ALTER TABLE db.plain SET ('owner' = 'ann')")
    flink.sql("ALTER TABLE db.plain ADD (extra BIGINT)")
    flink.sql("ALTER TABLE db.plain RENAME TO db.renamed")
    metadata = lake.load_table("db.renamed").metadata
    assert [f.name for f in metadata.schema.fields] == ["id", "who", "extra"]
    assert metadata.properties["owner"] == "ann"
    flink.sql("DROP TABLE db.renamed")
    assert "db.renamed" not in lake.list_tables("db")


def test_token_is_needed_and_taken(flink: FlinkServer, tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    bergline.connect(catalog, create=True).close()
    made = CliRunner().invoke(app, ["token", "create", "flink", "--catalog", catalog], catch_exceptions=False)
    with BerglineServer(tmp_path) as server:
        line = server.connection_examples["Flink"].removesuffix(";")
        flink.sql(line.replace("CATALOG lake", "CATALOG guarded").replace("'TOKEN'", f"'{made.stdout.strip()}'"))
        flink.sql("CREATE DATABASE guarded.db")
        assert flink.sql("SHOW DATABASES IN guarded") == [("db",)]
        with pytest.raises(FlinkError, match="NotAuthorizedException"):
            flink.sql(line.replace("CATALOG lake", "CATALOG refused"))


def rows(who: str, *ids: int) -> pa.Table:
    return pa.table({"id": ids, "who": [who] * len(ids)}, schema=COLUMNS)


def of_flink(flink: FlinkServer, name: str) -> list[tuple[Any, ...]]:
    return sorted(flink.sql(f"SELECT * FROM {name}"))


def of_bergline(lake: Lake, name: str, branch: str = "main") -> list[tuple[Any, ...]]:
    found = lake.load_table(name).scan(ref=branch).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())
