"""`CALL system.maintain`: one table, some, or a lake; a plan or a report as rows."""

from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.sql_statements import run_text

SOON = "policy => map('compaction.min-input-files', '2', 'manifests.min-count', '50')"


def run(lake: Lake, arguments: str, **others: Lake) -> list[dict[str, Any]]:
    found = run_text(lake, f"CALL system.maintain({arguments})", **others)
    assert found is not None
    assert found.column_names == ["table", "step", "branch", "status", "reason", "error", "details"]
    return found.to_pylist()


@pytest.fixture
def small(lake: Lake) -> Table:
    """Three small files, beside another table with as many."""
    for name in ("db.orders", "db.events"):
        table = lake.create_table(name, ORDERS)
        for i in range(3):
            table.append(order_rows(i))
    return lake.load_table("db.orders")


def test_plan_changes_nothing_and_the_call_does_what_it_says(lake: Lake, small: Table) -> None:
    before = small.metadata_location
    plan = run(lake, f"'db.orders', dry_run => true, {SOON}")
    assert small.refresh().metadata_location == before
    assert [(r["table"], r["step"], r["branch"], r["status"]) for r in plan] == [
        ("db.orders", "compaction", "main", "planned"),
        ("db.orders", "manifests", "main", "nothing to do"),
        ("db.orders", "expiry", None, "nothing to do"),
        ("db.orders", "orphans", None, "nothing to do"),
    ]
    done = run(lake, f"table => 'db.orders', steps => array('compaction'), {SOON}")
    assert [(r["table"], r["status"], dict(r["details"])["rewritten_data_files"]) for r in done] == [
        ("db.orders", "done", 3)
    ]
    assert ids(small.refresh().scan().to_arrow()) == [0, 1, 2]
    assert len(lake.load_table("db.events").scan().plan().files) == 3


def test_tables_are_selected_by_namespace_and_pattern(lake: Lake, small: Table) -> None:
    for arguments, tables in {
        "": {"db.events", "db.orders"},
        "namespace => 'db'": {"db.events", "db.orders"},
        "pattern => '*.ev*', budget_seconds => 600": {"db.events"},
    }.items():
        assert {r["table"] for r in run(lake, arguments)} == tables


def test_call_in_another_lake_is_about_its_tables(tmp_path: Path, lake: Lake, small: Table) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as other:
        other.create_namespace("db")
        other.create_table("db.clicks", ORDERS)
        found = run_text(lake, "CALL other.system.maintain()", other=other)
        assert found is not None
        assert set(found["table"].to_pylist()) == {"db.clicks"}
        assert {r["table"] for r in run(lake, "'other.db.clicks'", other=other)} == {"db.clicks"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'db.ordrs'", NotFoundError, "no table `db.ordrs`"),
        ("'db.orders.branch_main'", InvalidInputError, "expected a table, found"),
        ("steps => array('vacuum')", InvalidInputError, "expected steps of compaction, manifests, expiry, orphans"),
        ("policy => map('compaction', 'x')", InvalidInputError, "found `bergline.maintain.compaction`"),
        ("policy => map('enabled', 'x')", InvalidInputError, "for property `bergline.maintain.enabled`, found `x`"),
        ("policy => map('orphans.older-than-ms', '1')", InvalidInputError, "a whole number of 86400000 or more"),
        ("budget_seconds => 0", InvalidInputError, "expected seconds above 0"),
        ("pattern => 'x*'", NotFoundError, r"no table matches `x\*`"),
        ("table => 'db.orders', namespace => 'db'", InvalidInputError, "expected either tables or a namespace"),
        ("older_than => now()", NotFoundError, "no argument `older_than` of `maintain`"),
    ],
)
def test_bad_argument_is_one_error_and_nothing_is_changed(
    lake: Lake, small: Table, arguments: str, error: type[BerglineError], message: str
) -> None:
    before = small.metadata_location
    with pytest.raises(error, match=message):
        run(lake, arguments)
    assert small.refresh().metadata_location == before
