"""Branches of the lake in a catalog's database."""

import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

import bergline
from bergline import Lake, Table
from bergline.catalog.protection.caller import acting_as
from bergline.catalog.sql.migrations import LAYOUT
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.governance.governance import governance_of
from bergline.governance.lake_branches.model import LakeBranch, LakeBranches, NewLakeBranch
from support.fixtures.rows import order_rows


@pytest.fixture
def kept(lake: Lake) -> LakeBranches:
    return kept_of(lake)


def kept_of(lake: Lake) -> LakeBranches:
    found = governance_of(lake.catalog).lake_branches
    assert found is not None
    return found


@pytest.fixture
def postgres_lake(postgres: str) -> Iterator[Lake]:
    with bergline.connect(postgres, warehouse="memory://warehouse", name="of_branches", create=True) as opened:
        yield opened


def check_create_find_and_remove(lake: Lake) -> None:
    kept = kept_of(lake)
    assert (kept.all(), kept.find("staging")) == ([], None)
    soon = time.time_ns() // 1_000_000 + 60_000
    with acting_as("ann"):
        made = kept.create(NewLakeBranch("staging", ("sales.*", "db.orders"), soon))
    with acting_as("bob"):
        kept.create(NewLakeBranch("Ann's ärger/%2F@"))
    assert made == LakeBranch("staging", made.created_ms, "ann", ("sales.*", "db.orders"), soon)
    assert kept_of(lake).find("staging") == made
    assert [(b.name, b.owner, b.tables, b.expires_ms) for b in kept.all()] == [
        ("Ann's ärger/%2F@", "bob", (), None),
        ("staging", "ann", ("sales.*", "db.orders"), soon),
    ]
    with pytest.raises(AlreadyExistsError, match="a branch `staging` already"):
        kept.create(NewLakeBranch("staging"))
    kept.remove("staging")
    with pytest.raises(NotFoundError, match="no branch `staging` of the lake"):
        kept.remove("staging")
    kept.remove("Ann's ärger/%2F@")
    assert kept.all() == []


def test_branches_are_created_found_and_removed_in_sqlite(lake: Lake) -> None:
    check_create_find_and_remove(lake)


@pytest.mark.server
def test_branches_are_created_found_and_removed_in_postgresql(postgres_lake: Lake) -> None:
    check_create_find_and_remove(postgres_lake)


def test_change_leaves_a_row_in_the_audit_log(lake: Lake, kept: LakeBranches) -> None:
    kept.create(NewLakeBranch("staging"))
    kept.remove("staging")
    rows = [(entry.operation, entry.resource) for entry in records_of(lake.catalog).audit()]
    assert rows == [
        ("create_lake_branch", "lake-branch/staging"),
        ("drop_lake_branch", "lake-branch/staging"),
    ]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (NewLakeBranch("main"), "another name for a branch of the lake, found `main`"),
        (NewLakeBranch("lake_main"), "another name for a branch of the lake, found `lake_main`"),
        (NewLakeBranch("2026-11-01T00:00:00Z"), "found the time `2026-11-01T00:00:00Z`"),
        (NewLakeBranch("2026-13-01T00:00:00Z"), "expected a time such as"),
        (NewLakeBranch(""), "1 to 255 characters"),
        (NewLakeBranch("a\0b"), "no null character"),
        (NewLakeBranch("staging", ("sales",)), "a pattern of tables such as `sales.*`, found `sales`"),
        (NewLakeBranch("staging", ("*",) * 1001), "up to 1000 patterns"),
        (NewLakeBranch("staging", (), 1), "a time of expiry that is still to come, found 1"),
    ],
    ids=lambda value: value.name[:12] if isinstance(value, NewLakeBranch) else "",
)
def test_what_cannot_be_a_branch_of_the_lake_is_refused(kept: LakeBranches, new: NewLakeBranch, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        kept.create(new)
    assert kept.all() == []


def test_name_of_a_tag_is_refused_unless_its_table_is_not_taken(kept: LakeBranches, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.refs.create_branch("dev")
    with pytest.raises(AlreadyExistsError, match=r"cannot create branch `v1` of the lake: it is a tag of `db\.orders`"):
        kept.create(NewLakeBranch("v1"))
    kept.create(NewLakeBranch("v1", ("sales.*",)))
    kept.create(NewLakeBranch("dev"))
    assert [branch.name for branch in kept.all()] == ["dev", "v1"]


def test_older_layout_has_none_and_gets_its_table_with_the_first(lake: Lake) -> None:
    store = sql_store_of(lake.catalog)
    with store.database.changing() as connection:
        connection.execute(sa.delete(LAYOUT).where(LAYOUT.c.version >= 9))
        connection.exec_driver_sql("DROP TABLE bergline_lake_branches")
    with bergline.connect(f"sqlite:///{store.database.name}") as older:
        kept = kept_of(older)
        assert (kept.all(), kept.find("staging")) == ([], None)
        kept.create(NewLakeBranch("staging"))
        assert [branch.name for branch in kept.all()] == ["staging"]
