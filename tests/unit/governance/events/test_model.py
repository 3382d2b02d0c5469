"""Events, their filters and their form."""

import pytest

from bergline.errors import InvalidInputError
from bergline.governance.events.model import (
    CloudEvent,
    EventFilter,
    LoggedEvent,
    cloud_event,
    event_filter,
    logged_event,
)

EVENT = LoggedEvent(7, "table.commit", "table/db/orders", "ann", 1_800_000_000_123, {"snapshot-id": "5"}, "u-1")


def test_event_is_the_same_after_its_way_as_a_cloud_event() -> None:
    sent = cloud_event("a lake/b", EVENT)
    assert sent == CloudEvent(
        id="7",
        source="/catalogs/a%20lake%2Fb",
        type="org.bergline.table.commit",
        subject="table/db/orders",
        time="2027-01-15T08:00:00.123Z",
        sequence="00000000000000000007",
        data={"principal": "ann", "table-uuid": "u-1", "snapshot-id": "5"},
    )
    assert logged_event(sent) == EVENT


def test_patterns_are_whole_names_or_beginnings() -> None:
    wanted = event_filter(["org.bergline.table.commit", "ref.*"], ["table/db/*"])
    assert wanted == EventFilter(("table.commit", "ref.*"), ("table/db/*",))
    assert wanted.matches(EVENT)
    assert not event_filter(["table"]).matches(EVENT)
    assert not event_filter((), ["table/db/order"]).matches(EVENT)
    assert event_filter(["*"]).matches(EVENT)
    assert event_filter().matches(EVENT)


@pytest.mark.parametrize("pattern", ["", "*a", "a*b", "**a", "a\0", "a" * 1001])
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="with `\\*` at its end"):
        event_filter((), [pattern])
    with pytest.raises(InvalidInputError, match="up to 100 types"):
        event_filter(map(str, range(101)))
