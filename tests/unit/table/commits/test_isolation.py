"""Isolation levels as callers and properties name them."""

import msgspec
import pytest

from bergline import Table
from bergline.errors import InvalidInputError
from bergline.table.commits.isolation import Isolation, given_isolation, isolation_level, property_isolation


def test_given_level_comes_before_the_property_and_that_before_the_default(orders: Table) -> None:
    metadata = orders.metadata
    snapshot = msgspec.structs.replace(metadata, properties={"write.delete.isolation-level": "Snapshot"})
    assert isolation_level(metadata, "delete") is Isolation.SERIALIZABLE
    assert isolation_level(snapshot, "delete") is Isolation.SNAPSHOT
    assert isolation_level(snapshot, "update") is Isolation.SERIALIZABLE
    assert isolation_level(snapshot, "delete", "SERIALIZABLE") is Isolation.SERIALIZABLE


def test_none_is_a_level_for_callers_only() -> None:
    assert given_isolation(None) is None
    assert given_isolation("none") is None
    assert given_isolation("snapshot") is Isolation.SNAPSHOT
    with pytest.raises(InvalidInputError, match="expected serializable or snapshot for property `p`, found 'none'"):
        property_isolation("none", "p")


@pytest.mark.parametrize("level", ["dirty", 1, ""])
def test_other_levels_are_refused(level: object) -> None:
    with pytest.raises(InvalidInputError, match="expected serializable, snapshot or none for the isolation level"):
        given_isolation(level)  # type: ignore[arg-type]
