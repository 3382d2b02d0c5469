"""Rules set and removed through `table.refs`."""

import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError, NotFoundError, ProtectedRefError
from bergline.table.references.rule_changes import remove_rule
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.long


def test_rule_is_a_property_of_the_table(orders: Table) -> None:
    orders.refs.protect("release/*", kind="branch", only_publish=True, writers=["etl", "ci"], bypass=["ann"])
    assert orders.properties["bergline.ref-rules.release/*"] == "kind=branch; only-publish; writers=etl,ci; bypass=ann"
    (rule,) = orders.refs.rules()
    assert (rule.pattern, rule.only_publish, rule.writers, rule.bypass) == ("release/*", True, ("etl", "ci"), ("ann",))


def test_rule_takes_the_place_of_its_patterns_earlier_one(orders: Table) -> None:
    orders.refs.protect("main", no_drop=True)
    orders.refs.protect("main", no_rollback=True)
    orders.refs.protect("v*", kind="tag", no_move=True)
    assert [(r.pattern, r.no_drop, r.no_rollback) for r in orders.refs.rules()] == [
        ("main", False, True),
        ("v*", False, False),
    ]


def test_missing_rule_is_not_found(orders: Table) -> None:
    orders.refs.protect("main", no_drop=True)
    with pytest.raises(NotFoundError, match="no rule `mian`") as caught:
        orders.refs.unprotect("mian")
    assert caught.value.near == ("main",)
    with pytest.raises(InvalidInputError):
        orders.refs.unprotect(3)  # type: ignore[arg-type]


def test_rule_that_somebody_else_changed_meanwhile_is_not_removed_unseen(lake: Lake, orders: Table) -> None:
    orders.refs.protect("main", no_drop=True)
    removal = remove_rule("main")
    removal.check_unchanged(orders.metadata)
    lake.load_table("db.orders").refs.protect("main", no_rollback=True)
    with pytest.raises(ConflictError):
        orders.commit(removal)


def test_wrong_rule_changes_nothing(orders: Table) -> None:
    before = orders.metadata_location
    with pytest.raises(InvalidInputError, match="expected a restriction"):
        orders.refs.protect("main")
    orders.refs.protect("main", writers=["etl"])
    with pytest.raises(InvalidInputError, match="nobody could write"):
        orders.refs.protect("*", writers=["ci"])
    assert orders.refresh().metadata.metadata_log[-1].metadata_file == before


def test_protected_tag_stays_where_it_is(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag("v1", at=orders.metadata.snapshots[0].snapshot_id)
    orders.refs.protect("v*", kind="tag", no_move=True)
    for change in (
        lambda: orders.refs.replace_tag("v1"),
        lambda: orders.refs.drop_tag("v1"),
        lambda: orders.refs.rename_tag("v1", to="old"),
        lambda: orders.refs.create_tag("v1", or_replace=True),
    ):
        with pytest.raises(ProtectedRefError, match="tag `v1`"):
            change()
    orders.refs.create_tag("v2")
    orders.refs.create_branch("v3")
    orders.append(order_rows(3), branch="v3")
