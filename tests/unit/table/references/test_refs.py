"""Branches and tags as a user works with them."""

from collections.abc import Callable

import pytest

from bergline import Table
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.table.references.ref_changes import Retention
from bergline.table.references.refs import Refs
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.long


@pytest.fixture
def table(orders: Table) -> Table:
    """Three orders on main, one more on dev, and a tag on the first snapshot."""
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_branch("dev")
    orders.append(order_rows(3), branch="dev")
    orders.refs.create_tag("v1", at=orders.metadata.snapshots[0].snapshot_id)
    return orders


def rows(table: Table, ref: str) -> list[int]:
    return ids(table.scan(ref=ref).to_arrow())


def test_refs_name_what_they_were_created_at(table: Table) -> None:
    table.refs.create_branch("from-tag", at="v1")
    table.refs.create_tag("at-dev", at="dev")
    assert {name: rows(table, name) for name in table.refs} == {
        "main": [1, 2],
        "dev": [1, 2, 3],
        "v1": [1],
        "from-tag": [1],
        "at-dev": [1, 2, 3],
    }


def test_refs_can_be_listed_by_type_and_snapshot(table: Table) -> None:
    lines = [
        f"{ref_name}: type={ref.snapshot_ref_type}, snapshot={ref.snapshot_id}"
        for ref_name, ref in table.metadata.refs.items()
    ]
    assert lines[2] == f"v1: type=tag, snapshot={table.metadata.snapshots[0].snapshot_id}"


def test_fast_forward_moves_the_branch_to_its_descendant(table: Table) -> None:
    table.refs.set_retention("main", min_snapshots_to_keep=7)
    table.refs.fast_forward("main", to="dev")
    assert rows(table, "main") == [1, 2, 3]
    assert table.refs["main"].min_snapshots_to_keep == 7
    assert table.metadata.snapshot_log[-1].snapshot_id == table.refs["dev"].snapshot_id


def test_fast_forward_again_changes_nothing(table: Table) -> None:
    table.refs.fast_forward("main", to="dev")
    before = table.metadata_location
    table.refs.fast_forward("main", to="dev")
    assert table.refresh().metadata_location == before


def test_fast_forward_of_diverged_branches_is_refused(table: Table) -> None:
    table.append(order_rows(4))
    with pytest.raises(RefusedError, match="`main` is not an ancestor of `dev`"):
        table.refs.fast_forward("main", to="dev")


def test_fast_forward_creates_an_absent_branch(table: Table) -> None:
    table.refs.fast_forward("fresh", to="v1")
    assert rows(table, "fresh") == [1]


def test_main_cannot_be_dropped(table: Table) -> None:
    with pytest.raises(RefusedError, match="cannot drop branch `main`"):
        table.refs.drop_branch("main", if_exists=True)


def test_main_of_an_empty_table_cannot_be_dropped(orders: Table) -> None:
    with pytest.raises(RefusedError, match="cannot drop branch `main`"):
        orders.refs.drop_branch("main", if_exists=True)


def test_drop_forgets_the_name_only(table: Table) -> None:
    table.refs.drop_branch("dev")
    table.refs.drop_tag("v1")
    assert set(table.refs) == {"main"}
    assert len(table.metadata.snapshots) == 3


def test_if_exists_and_if_not_exists_change_nothing(table: Table) -> None:
    before = table.metadata_location
    table.refs.drop_branch("nope", if_exists=True)
    table.refs.drop_tag("nope", if_exists=True)
    table.refs.create_branch("dev", if_not_exists=True, min_snapshots_to_keep=9)
    table.refs.create_branch("dev", at="nope", if_not_exists=True)
    table.refs.create_tag("v1", at=99, if_not_exists=True)
    assert table.refresh().metadata_location == before


def test_replace_moves_a_tag_and_keeps_retention(table: Table) -> None:
    table.refs.set_retention("v1", max_ref_age_ms=5)
    table.refs.replace_tag("v1", at="dev")
    assert rows(table, "v1") == [1, 2, 3]
    assert table.refs["v1"].max_ref_age_ms == 5


def test_or_replace_creates_or_moves(table: Table) -> None:
    table.refs.create_branch("dev", or_replace=True, min_snapshots_to_keep=2)
    table.refs.create_tag("new", or_replace=True)
    assert rows(table, "dev") == rows(table, "new") == [1, 2]
    assert table.refs["dev"].min_snapshots_to_keep == 2


def test_branch_on_an_empty_table_starts_with_an_empty_snapshot(orders: Table) -> None:
    orders.refs.create_branch("dev", min_snapshots_to_keep=3)
    assert set(orders.refs) == {"dev"}
    assert orders.refs["dev"].min_snapshots_to_keep == 3
    assert rows(orders, "dev") == []
    orders.append(order_rows(1), branch="dev")
    assert orders.current_snapshot is None
    orders.refs.fast_forward("main", to="dev")
    assert rows(orders, "main") == [1]


def test_names_are_exact_code_points(table: Table) -> None:
    for name in ("DEV", "a/b c.d", "ü", "u\u0308", "12345"):
        table.refs.create_tag(name)
    assert {"dev", "DEV", "a/b c.d", "ü", "u\u0308", "12345"} <= set(table.refresh().refs)


def test_retention_survives_fast_forward_and_replace(table: Table) -> None:
    table.refs.set_retention("dev", min_snapshots_to_keep=4, max_snapshot_age_ms=5, max_ref_age_ms=6)
    table.refs.replace_branch("dev", at="v1", retention=Retention(max_ref_age_ms=7))
    ref = table.refs["dev"]
    assert (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms) == (4, 5, 7)


def test_settings_that_are_cleared_are_the_tables_again(table: Table) -> None:
    table.refs.set_retention("dev", min_snapshots_to_keep=4, max_snapshot_age_ms=5, max_ref_age_ms=6)
    table.refs.set_retention("dev", max_snapshot_age_ms=7, clear=["min_snapshots_to_keep", "max_ref_age_ms"])
    ref = table.refs["dev"]
    assert (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms) == (None, 7, None)
    before = table.metadata_location
    table.refs.set_retention("dev", clear=["max_ref_age_ms"])
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda r: r.create_branch("dev"), AlreadyExistsError, "branch `dev` exists already"),
        (lambda r: r.create_tag("dev"), AlreadyExistsError, "branch `dev` exists already"),
        (lambda r: r.create_branch("main"), AlreadyExistsError, "branch `main` exists already"),
        (lambda r: r.create_tag("t", at=12345), NotFoundError, "no snapshot with id 12345"),
        (lambda r: r.create_tag("t", at="nope"), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.create_tag(""), InvalidInputError, "1 to 255 characters, found 0"),
        (lambda r: r.create_branch("x" * 256), InvalidInputError, "1 to 255 characters, found 256"),
        (lambda r: r.create_branch("b", min_snapshots_to_keep=0), InvalidInputError, "above 0, found 0"),
        (lambda r: r.create_branch("b", max_ref_age_ms=-1), InvalidInputError, "above 0, found -1"),
        (lambda r: r.create_tag("dev", or_replace=True), InvalidInputError, "expected a tag, found the branch `dev`"),
        (lambda r: r.create_tag("x", or_replace=True, if_not_exists=True), InvalidInputError, "found both"),
        (lambda r: r.drop_branch("v1"), InvalidInputError, "expected a branch, found the tag `v1`"),
        (lambda r: r.drop_tag("dev"), InvalidInputError, "expected a tag, found the branch `dev`"),
        (lambda r: r.drop_tag("main"), InvalidInputError, "expected a tag, found the branch `main`"),
        (lambda r: r.drop_branch("dve"), NotFoundError, "no branch `dve`"),
        (lambda r: r.replace_tag("nope"), NotFoundError, "no tag `nope`"),
        (lambda r: r.replace_branch("dev", retention={}), InvalidInputError, "expected a Retention, found"),
        (lambda r: r.replace_tag("v1", retention=0), InvalidInputError, "expected a Retention, found 0"),
        (lambda r: r.fast_forward("v1", to="dev"), InvalidInputError, "expected a branch, found the tag `v1`"),
        (lambda r: r.fast_forward("main", to="nope"), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.create_tag("dev", if_not_exists=True), InvalidInputError, "a tag, found the branch `dev`"),
        (lambda r: r.create_branch("v1", if_not_exists=True), InvalidInputError, "a branch, found the tag `v1`"),
        (lambda r: r.set_retention("dev"), InvalidInputError, "or `clear`, found no setting"),
        (lambda r: r.set_retention("dev", clear=["age"]), InvalidInputError, "to clear, found 'age'"),
        (lambda r: r.set_retention("dev", clear="max_ref_age_ms"), InvalidInputError, "a list of settings"),
        (
            lambda r: r.set_retention("dev", max_ref_age_ms=5, clear=["max_ref_age_ms"]),
            InvalidInputError,
            "max_ref_age_ms to be set or cleared, found both",
        ),
        (lambda r: r.set_retention("v1", min_snapshots_to_keep=2), InvalidInputError, "only max-ref-age-ms on a tag"),
    ],
)
def test_wrong_ref_changes_are_one_error_and_change_nothing(
    table: Table, wrong: Callable[[Refs], None], error: type[Exception], message: str
) -> None:
    before = table.metadata_location
    with pytest.raises(error, match=message):
        wrong(table.refs)
    assert table.refresh().metadata_location == before


def test_tag_on_an_empty_table_is_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="found an empty table"):
        orders.refs.create_tag("v1")
