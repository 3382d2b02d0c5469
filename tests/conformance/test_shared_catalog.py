"""Java's JDBC catalog, PyIceberg's SQL catalog and bergline on one catalog at once, on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError, NotFoundError, RefusedError
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows
from support.proxies.postgres_proxy import postgres_proxy
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])


class Shared(NamedTuple):
    """One catalog, opened by all three."""

    ours: Lake
    java: Callable[[str], list[tuple[Any, ...]]]
    python: SqlCatalog

    def namespaces(self) -> list[list[str]]:
        """What each of them lists."""
        return [
            self.ours.list_namespaces(),
            sorted(row[0] for row in self.java("SHOW NAMESPACES")),
            sorted(".".join(n) for n in self.python.list_namespaces()),
        ]

    def tables(self, namespace: str) -> list[list[str]]:
        """What each of them lists."""
        return [
            [name.partition(".")[2] for name in self.ours.list_tables(namespace)],
            sorted(row[1] for row in self.java(f"SHOW TABLES IN {namespace}")),
            sorted(name for _, name in self.python.list_tables(namespace)),
        ]

    def team(self, namespace: str) -> set[str]:
        """The property `team` of a namespace, as each of them reads it."""
        described = dict(row[:2] for row in self.java(f"DESCRIBE NAMESPACE EXTENDED {namespace}"))
        (theirs,) = [p for p in described["Properties"].strip("()").split("), (") if p.startswith("team,")]
        return {
            self.ours.namespace_properties(namespace)["team"],
            theirs.partition(",")[2],
            self.python.load_namespace_properties(namespace)["team"],
        }

    def ids(self, table: str) -> list[list[int]]:
        """The ids in a table, as each of them reads them."""
        return [
            ids(self.ours.load_table(table).scan().to_arrow()),
            [row[0] for row in self.java(f"SELECT id FROM {table} ORDER BY id")],
            ids(self.python.load_table(table).scan().to_arrow()),
        ]


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, official_runtime: OfficialRuntime, tmp_path: Path) -> Iterator[Shared]:
    name, warehouse = f"c{uuid4().hex[:8]}", tmp_path / "warehouse"
    if request.param == "sqlite":
        database = tmp_path / "catalog.db"
        with bergline.connect(f"sqlite:///{database}", warehouse=warehouse, name=name, create=True) as ours:
            official_runtime.use_catalog(database, warehouse, name)
            yield from opened(ours, official_runtime, f"sqlite:///{database}", warehouse)
        return
    with (
        postgres_proxy(request.getfixturevalue("postgres")) as (proxy, uri),
        bergline.connect(uri, warehouse=warehouse, name=name, create=True) as ours,
    ):
        official_runtime.use_catalog(
            f"jdbc:postgresql://127.0.0.1:{proxy.port}/postgres?user=postgres", warehouse, name
        )
        theirs = sa.make_url(uri).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
        yield from opened(ours, official_runtime, theirs, warehouse)


def opened(ours: Lake, runtime: OfficialRuntime, uri: str, warehouse: Path) -> Iterator[Shared]:
    python = SqlCatalog(ours.name, uri=uri, warehouse=f"file://{warehouse}")
    yield Shared(ours, runtime.sql, python)
    python.close()


def test_each_sees_what_the_others_create_change_rename_and_drop(shared: Shared) -> None:
    ours, java, python = shared
    ours.create_namespace("ours", {"team": "a"})
    java("CREATE NAMESPACE java WITH DBPROPERTIES ('team' = 'b')")
    python.create_namespace("python", {"team": "c"})
    assert shared.namespaces() == [["java", "ours", "python"]] * 3
    assert [shared.team(n) for n in ("ours", "java", "python")] == [{"a"}, {"b"}, {"c"}]
    java("ALTER NAMESPACE ours SET DBPROPERTIES ('team' = 'b2')")
    python.update_namespace_properties("java", updates={"team": "c2"})
    ours.update_namespace("python", {"team": "a2"})
    assert [shared.team(n) for n in ("ours", "java", "python")] == [{"b2"}, {"c2"}, {"a2"}]
    with pytest.raises(AlreadyExistsError):
        ours.create_namespace("java")
    with pytest.raises(NamespaceAlreadyExistsError):
        python.create_namespace("ours")

    ours.create_table("ours.a", COLUMNS)
    java("CREATE TABLE ours.b (id BIGINT NOT NULL) USING iceberg")
    python.create_table("ours.c", COLUMNS)
    assert shared.tables("ours") == [["a", "b", "c"]] * 3
    ours.rename_table("ours.b", "ours.b2")
    java("ALTER TABLE ours.c RENAME TO ours.c2")
    python.rename_table("ours.a", "ours.a2")
    assert shared.tables("ours") == [["a2", "b2", "c2"]] * 3
    with pytest.raises(RefusedError, match="not empty"):
        ours.drop_namespace("ours")
    ours.drop_table("ours.c2")
    java("DROP TABLE ours.a2")
    python.drop_table("ours.b2")
    assert shared.tables("ours") == [[]] * 3
    ours.update_namespace("python", remove=["team"])
    python.drop_namespace("java")
    java("DROP NAMESPACE ours")
    assert shared.namespaces() == [["python"]] * 3
    ours.drop_namespace("python")
    assert shared.namespaces() == [[]] * 3


def test_nothing_is_lost_when_all_commit_in_turn_and_at_once(shared: Shared) -> None:
    ours, java, python = shared
    ours.create_namespace("db")
    retries = {"commit.retry.num-retries": "100", "commit.retry.max-wait-ms": "500"}  # Java gives up after 4
    table = ours.create_table("db.t", ORDERS, properties=retries)

    def we(number: int) -> None:
        ours.load_table("db.t").append(order_rows(number))

    def they(number: int) -> None:
        java(f"INSERT INTO db.t (id) VALUES ({number})")

    def those(number: int) -> None:
        while True:
            loaded = python.load_table("db.t")
            try:
                loaded.append(order_rows(number).cast(loaded.schema().as_arrow()))
            except CommitFailedException:
                continue
            return

    for number, append in enumerate((we, they, those, we, those, they)):
        append(number)
    assert shared.ids("db.t") == [list(range(6))] * 3

    def work(append: Callable[[int], None], first: int, count: int) -> None:
        for number in range(first, first + count):
            append(number)

    wanted = [(we, 100, 5), (we, 200, 5), (they, 300, 3), (those, 400, 3)]
    run_at_once(*(partial(work, *arguments) for arguments in wanted))
    expected = sorted([*range(6), *(first + n for _, first, count in wanted for n in range(count))])
    assert shared.ids("db.t") == [expected] * 3
    assert len(table.refresh().metadata.snapshots) == len(expected)


def test_views_of_each_are_views_to_the_other_and_never_tables(shared: Shared) -> None:
    ours, java, _ = shared
    ours.create_namespace("db")
    ours.create_table("db.t", ORDERS).append(order_rows(1, 2))
    java("CREATE VIEW db.theirs AS SELECT id FROM db.t WHERE id > 1")
    ours.create_view("db.mine", "SELECT id FROM t WHERE id < 2", COLUMNS)
    assert ours.list_views("db") == ["db.mine", "db.theirs"]
    assert sorted(row[1] for row in java("SHOW VIEWS IN db")) == ["mine", "theirs"]
    assert shared.tables("db") == [["t"]] * 3
    assert java("SELECT id FROM db.mine") == [(1,)]
    assert ours.load_view("db.theirs").sql() == "SELECT id FROM db.t WHERE id > 1"
    assert [f.name for f in ours.load_view("db.theirs").schema.fields] == ["id"]

    for attempt in (
        lambda: ours.drop_table("db.theirs"),
        lambda: ours.load_table("db.theirs"),
        lambda: ours.rename_table("db.theirs", "db.x"),
        lambda: ours.purge_table("db.theirs"),
    ):
        with pytest.raises(NotFoundError, match=r"no table `db\.theirs`"):
            attempt()
    with pytest.raises(AlreadyExistsError, match=r"view `db\.theirs` exists already"):
        ours.create_table("db.theirs", ORDERS)

    ours.load_view("db.theirs").replace("SELECT id FROM db.t", COLUMNS)
    java("CREATE OR REPLACE VIEW db.mine AS SELECT id + 1 AS id FROM db.t")
    assert sorted(java("SELECT id FROM db.theirs")) == [(1,), (2,)]
    assert ours.load_view("db.mine").sql() == "SELECT id + 1 AS id FROM db.t"
    ours.rename_view("db.theirs", "db.moved")
    java("DROP VIEW db.mine")
    assert [row[1] for row in java("SHOW VIEWS IN db")] == ["moved"]
    assert ours.list_views("db") == ["db.moved"]
    ours.drop_view("db.moved")
    assert java("SHOW VIEWS IN db") == []
