"""Why expiry keeps or removes something, in words."""

import pytest

from bergline.format.metadata.refs import SnapshotRefType
from bergline.table.expiry.reasons import (
    AgeLimit,
    AmongNewest,
    Beyond,
    Head,
    KeptByRule,
    MainStays,
    NamedByCaller,
    OldRef,
    OldWithoutRef,
    ProtectedByRule,
    RefWithoutLimit,
    Young,
    YoungRef,
    YoungWithoutRef,
    duration_text,
)

FIVE_DAYS, NAMED = AgeLimit(0, 432_000_000), AgeLimit(1_700_000_000_000)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Head("v1", SnapshotRefType.TAG), "tag `v1`"),
        (Young("main", FIVE_DAYS), "not older than 5 d, on `main`"),
        (Young("main", NAMED), "not older than 2023-11-14 22:13:20.000+00:00, on `main`"),
        (AmongNewest("dev", 3), "among the newest 3 of `dev`"),
        (YoungWithoutRef(FIVE_DAYS), "not older than 5 d, on no branch or tag"),
        (Beyond("dev", FIVE_DAYS, 1, is_old=True), "older than 5 d, beyond the newest 1 of `dev`"),
        (Beyond("dev", FIVE_DAYS, 1, is_old=False), "before one older than 5 d, beyond the newest 1 of `dev`"),
        (OldWithoutRef(FIVE_DAYS), "older than 5 d, on no branch or tag"),
        (NamedByCaller(), "requested by its id"),
        (MainStays(), "`main` always stays"),
        (KeptByRule("main", "ma*"), "on `main`, whose history the rule `ma*` keeps"),
        (ProtectedByRule("v*"), "protected by the rule `v*`"),
        (RefWithoutLimit(), "no age limit"),
        (YoungRef(3_600_000), "its snapshot is not older than 1 h"),
        (OldRef(90_000), "its snapshot is older than 90 s"),
    ],
)
def test_reason_in_words(reason: object, text: str) -> None:
    assert str(reason) == text


@pytest.mark.parametrize(("ms", "text"), [(86_400_000, "1 d"), (90_000_000, "25 h"), (60_000, "1 min"), (1, "1 ms")])
def test_duration_has_the_largest_unit_that_is_exact(ms: int, text: str) -> None:
    assert duration_text(ms) == text
