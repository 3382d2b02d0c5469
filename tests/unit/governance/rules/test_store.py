"""Changes to the rules of a catalog and its namespaces."""

import pytest

from bergline import Lake
from bergline.catalog.protection.caller import acting_as
from bergline.catalog.sql.records import records_of
from bergline.errors import InvalidInputError, NotFoundError, ProtectedRefError


def test_rules_are_listed_by_scope(lake: Lake) -> None:
    lake.create_namespace("db.raw")
    with acting_as("ann"):
        lake.rules.protect("main", namespace="db.raw", only_publish=True)
        lake.rules.protect("v*", kind="tag", no_move=True)
        lake.rules.protect("main", namespace="db", no_rollback=True)
        lake.rules.protect("main", namespace="db", no_expiry=True)
    found = [(kept.namespace, kept.rule.pattern, kept.principal) for kept in lake.rules.list()]
    assert found == [((), "v*", "ann"), (("db",), "main", "ann"), (("db", "raw"), "main", "ann")]
    assert [kept.namespace for kept in lake.rules.list("db")] == [(), ("db",)]
    (latest,) = (kept.rule for kept in lake.rules.list() if kept.namespace == ("db",))
    assert getattr(latest, "no_expiry", False)
    assert not getattr(latest, "no_rollback", True)


def test_change_leaves_a_row_in_the_audit_log(lake: Lake) -> None:
    with acting_as("ann"):
        lake.rules.protect("main", no_drop=True)
        lake.rules.protect("main", namespace="db", no_drop=True)
        lake.rules.unprotect("main")
    rows = [(e.principal, e.operation, e.resource) for e in records_of(lake.catalog).audit()]
    assert rows == [
        ("ann", "change_ref_rule:main", "catalog"),
        ("ann", "change_ref_rule:main", "namespace/db"),
        ("ann", "change_ref_rule:main", "catalog"),
    ]


def test_rule_with_bypass_is_changed_by_those_and_by_who_administers(lake: Lake) -> None:
    lake.rules.protect("main", no_drop=True, bypass=["group:admins"])
    with acting_as("zoe"):
        for change in (
            lambda: lake.rules.unprotect("main"),
            lambda: lake.rules.protect("main", no_drop=True, bypass=["zoe"]),
        ):
            with pytest.raises(ProtectedRefError, match=r"of the catalog is changed only by those .*`group:admins`"):
                change()
    with acting_as("zoe") as zoe:
        zoe.administers = True
        lake.rules.protect("main", no_drop=True, bypass=["group:admins"])
    with acting_as("ann", {"admins"}):
        lake.rules.unprotect("main")
    assert lake.rules.list() == ()


@pytest.mark.parametrize("namespaces", [(None, "db"), ("db", None), ("db.raw", "db"), ("db", "db.raw")])
def test_rules_that_leave_nobody_are_refused_with_both_named(
    lake: Lake, namespaces: tuple[str | None, str | None]
) -> None:
    first, second = namespaces
    lake.create_namespace("db.raw")
    lake.rules.protect("main", namespace=first, writers=["ann"], only_publish=True)
    with pytest.raises(InvalidInputError, match="in common, found none"):
        lake.rules.protect("ma*", namespace=second, writers=["zoe"])
    with pytest.raises(InvalidInputError, match=r"either `no_move` in the rule `ma.`.* or `only_publish` in the rule"):
        lake.rules.protect("ma*", namespace=second, no_move=True)
    lake.rules.protect("ma*", namespace=second, no_move=True, bypass=["zoe"])
    lake.rules.protect("m*", namespace=second, writers=["group:ops"])
    lake.create_namespace("other")
    if first is not None:
        lake.rules.protect("main", namespace="other", writers=["zoe"])


def test_missing_scopes_and_rules_are_named(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="no namespace `bd`"):
        lake.rules.protect("main", namespace="bd", no_drop=True)
    with pytest.raises(NotFoundError, match="no rule `main` of namespace `db`"):
        lake.rules.unprotect("main", namespace="db")
    with pytest.raises(InvalidInputError, match="1 to 255 characters"):
        lake.rules.protect("m" * 300, no_drop=True)
