"""The worked examples of expiry: s1..s6 on main at days 0, 2, 4, 6, 8, 10; now is day 10; five days, at least one."""

import msgspec
import pytest

from bergline.catalog.protection.ref_rule import parse_rule
from bergline.catalog.protection.rule_scope import RuleLevel, scope_of
from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import UNPARTITIONED
from bergline.table.expiry.reasons import duration_text
from bergline.table.expiry.retention import ExpiryRequest, decide_expiry
from support.fixtures.rows import ORDERS

DAY = 86_400_000
NOW = 10 * DAY
MAIN_DAYS = {1: 0, 2: 2, 3: 4, 4: 6, 5: 8, 6: 10}


def branch(
    snapshot_id: int, *, keep: int | None = None, age: int | None = None, ref_age: int | None = None
) -> SnapshotRef:
    return SnapshotRef(snapshot_id, SnapshotRefType.BRANCH, keep, age and age * DAY, ref_age and ref_age * DAY)


def tag(snapshot_id: int, *, ref_age: int | None = None) -> SnapshotRef:
    return SnapshotRef(snapshot_id, SnapshotRefType.TAG, max_ref_age_ms=ref_age and ref_age * DAY)


def snapshot(snapshot_id: int, day: float, parent: int | None) -> Snapshot:
    return Snapshot(
        snapshot_id=snapshot_id,
        timestamp_ms=int(day * DAY),
        manifest_list=f"list-{snapshot_id}",
        summary={"operation": "append"},
        parent_snapshot_id=parent,
        sequence_number=1,
    )


MAIN = tuple(snapshot(i, day, i - 1 or None) for i, day in MAIN_DAYS.items())
BRANCHED = (snapshot(21, 3, 2), snapshot(22, 7, 21))


def table(
    refs: dict[str, SnapshotRef] | None = None,
    snapshots: tuple[Snapshot, ...] = MAIN,
    properties: dict[str, str] | None = None,
    main: int = 6,
) -> TableMetadata:
    empty = new_metadata(
        schema=schema_from_arrow(ORDERS),
        spec=UNPARTITIONED,
        location="memory://t",
        properties=properties or {},
        table_uuid="u",
        now_ms=NOW,
    )
    return msgspec.structs.replace(
        empty, snapshots=snapshots, refs={"main": branch(main), **(refs or {})}, current_snapshot_id=main
    )


def days(**wanted: int) -> ExpiryRequest:
    return ExpiryRequest(**{k: v * DAY if k == "older_than_ms" else v for k, v in wanted.items()})


def ruled(pattern: str, rule: str) -> dict[str, str]:
    return {f"bergline.ref-rules.{pattern}": rule}


EXAMPLES = {
    "a rule keeps the history of main": (
        table({"eoy": tag(2, ref_age=3)}, properties=ruled("main", "no-expiry")),
        days(),
        {1, 2, 3, 4, 5, 6},
        set(),
    ),
    "a rule keeps a tag past its age": (
        table({"eoy": tag(2, ref_age=3)}, properties=ruled("e*", "kind=tag; no-move")),
        days(),
        {2, 4, 5, 6},
        {"eoy"},
    ),
    "rules of the catalog keep a tag and the history of main": (
        table({"eoy": tag(2, ref_age=3)}),
        ExpiryRequest(
            levels=(RuleLevel(scope_of(()), (parse_rule("main", "no-expiry"), parse_rule("e*", "kind=tag; no-move"))),)
        ),
        {1, 2, 3, 4, 5, 6},
        {"eoy"},
    ),
    "a rule about writers keeps nothing": (
        table({"eoy": tag(2, ref_age=3)}, properties=ruled("*", "writers=ann")),
        days(),
        {4, 5, 6},
        set(),
    ),
    "1 only main": (table(), days(), {4, 5, 6}, set()),
    "2 retain last 5": (table(), days(retain_last=5), {2, 3, 4, 5, 6}, set()),
    "3 a tag keeps its own snapshot": (table({"eoy": tag(2)}), days(), {2, 4, 5, 6}, {"eoy"}),
    "4 a tag past its age goes": (table({"eoy": tag(2, ref_age=3)}), days(), {4, 5, 6}, set()),
    "5 its snapshot stays on main": (table({"x": tag(4, ref_age=3)}), days(), {4, 5, 6}, set()),
    "6 a branch keeps its head": (table({"b": branch(22)}, MAIN + BRANCHED), days(), {4, 5, 6, 22}, {"b"}),
    "7 a branch keeps two": (table({"b": branch(22, keep=2)}, MAIN + BRANCHED), days(), {4, 5, 6, 21, 22}, {"b"}),
    "8 a branch keeps three": (
        table({"b": branch(22, keep=3)}, MAIN + BRANCHED),
        days(),
        {2, 4, 5, 6, 21, 22},
        {"b"},
    ),
    "9 the head stays whatever its age": (
        table({"b": branch(22, age=1)}, MAIN + BRANCHED),
        days(),
        {4, 5, 6, 22},
        {"b"},
    ),
    "10 a branch past its age goes, its young head stays": (
        table({"b": branch(22, ref_age=2)}, MAIN + BRANCHED),
        days(),
        {4, 5, 6, 22},
        set(),
    ),
    "11 unreferenced snapshots stay while young": (
        table(None, (*MAIN, snapshot(31, 9, 4), snapshot(32, 1, None))),
        days(),
        {4, 5, 6, 31},
        set(),
    ),
    "12 an id goes although within limits": (
        table(),
        ExpiryRequest(retain_last=6, snapshot_ids=frozenset({5})),
        {1, 2, 3, 4, 6},
        set(),
    ),
    "13 and strands what was before it": (
        table(None, tuple(s for s in MAIN if s.snapshot_id != 5)),
        days(retain_last=6),
        {4, 6},
        set(),
    ),
    "15 an id on a tag past its age goes": (
        table({"t": tag(3, ref_age=1)}),
        ExpiryRequest(snapshot_ids=frozenset({3})),
        {4, 5, 6},
        set(),
    ),
    "16 branches keep together": (table({"b": branch(6, keep=4)}), days(), {3, 4, 5, 6}, {"b"}),
    "17 older than the future keeps the head": (table(), days(older_than_ms=20), {6}, set()),
    "18 exactly as old as the limit stays": (table(), days(older_than_ms=6), {4, 5, 6}, set()),
}


@pytest.mark.parametrize(("metadata", "wanted", "left", "refs"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_worked_example(metadata: TableMetadata, wanted: ExpiryRequest, left: set[int], refs: set[str]) -> None:
    plan = decide_expiry(metadata, wanted, NOW)
    assert set(metadata.snapshots_by_id) - set(plan.removed_snapshots) == left
    assert set(metadata.refs) - set(plan.removed_refs) == {"main", *refs}


def test_worked_example_14_an_id_that_a_tag_names_is_refused() -> None:
    with pytest.raises(RefusedError, match="cannot expire snapshot 3: `t` still names it"):
        decide_expiry(table({"t": tag(3)}), ExpiryRequest(snapshot_ids=frozenset({3})), NOW)


def test_several_refs_that_name_an_id_are_listed() -> None:
    with pytest.raises(RefusedError, match="cannot expire snapshot 3: `t`, `u` still name it") as caught:
        decide_expiry(table({"u": tag(3), "t": tag(3)}), ExpiryRequest(snapshot_ids=frozenset({3})), NOW)
    assert caught.value.hints == ("drop the refs first",)


def test_table_settings_are_the_defaults() -> None:
    settings = {"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "2"}
    assert decide_expiry(table(properties=settings), ExpiryRequest(), NOW).removed_snapshots == (1, 2, 3, 4)


def test_table_setting_for_refs_expires_them() -> None:
    metadata = table({"t": tag(2)}, properties={"history.expire.max-ref-age-ms": str(DAY)})
    assert decide_expiry(metadata, ExpiryRequest(), NOW).removed_refs == ("t",)


def test_main_never_expires_by_age() -> None:
    metadata = table(main=1)
    metadata = msgspec.structs.replace(metadata, refs={"main": branch(1, ref_age=1)})
    plan = decide_expiry(metadata, days(older_than_ms=20), NOW)
    assert plan.removed_refs == ()
    assert 1 not in plan.removed_snapshots


def test_walk_stops_at_the_first_snapshot_that_fails() -> None:
    odd = tuple(msgspec.structs.replace(s, timestamp_ms=9 * DAY) if s.snapshot_id == 2 else s for s in MAIN)
    assert decide_expiry(table(None, odd), ExpiryRequest(), NOW).removed_snapshots == (1, 2, 3)


def test_cyclic_parents_end_the_walk() -> None:
    cycle = (snapshot(1, 0, 2), snapshot(2, 2, 1))
    assert decide_expiry(table(None, cycle, main=2), days(retain_last=9), NOW).removed_snapshots == ()


@pytest.mark.parametrize("retain_last", [0, -1])
def test_retaining_less_than_one_is_refused(retain_last: int) -> None:
    with pytest.raises(InvalidInputError, match=f"at least 1, found {retain_last}"):
        decide_expiry(table(), ExpiryRequest(retain_last=retain_last), NOW)


def test_gc_disabled_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"`gc\.enabled` is false"):
        decide_expiry(table(properties={"gc.enabled": "false"}), ExpiryRequest(), NOW)


def reasons(metadata: TableMetadata, wanted: ExpiryRequest | None = None) -> dict[int, str]:
    decided = decide_expiry(metadata, wanted or ExpiryRequest(), NOW).snapshots
    return {
        d.snapshot.snapshot_id: f"{'kept' if d.kept else 'removed'}: {'; '.join(map(str, d.reasons))}" for d in decided
    }


def test_each_snapshot_says_by_which_rule_it_stays_or_goes() -> None:
    refs = {"staging": branch(22, keep=2, age=1), "q1-final": tag(2)}
    assert reasons(table(refs, (*MAIN, *BRANCHED, snapshot(31, 9, 4), snapshot(32, 1, None)))) == {
        1: "removed: older than 5 d, beyond the newest 1 of `main`; older than 1 d, beyond the newest 2 of `staging`",
        2: "kept: tag `q1-final`",
        3: "removed: older than 5 d, beyond the newest 1 of `main`",
        4: "kept: not older than 5 d, on `main`",
        5: "kept: not older than 5 d, on `main`",
        6: "kept: branch `main`",
        21: "kept: among the newest 2 of `staging`",
        22: "kept: branch `staging`",
        31: "kept: not older than 5 d, on no branch or tag",
        32: "removed: older than 5 d, on no branch or tag",
    }


def test_a_snapshot_says_that_it_was_asked_for() -> None:
    said = reasons(table(), ExpiryRequest(snapshot_ids=frozenset({3, 5})))
    assert said[5] == "removed: requested by its id"
    assert said[3] == "removed: requested by its id; older than 5 d, beyond the newest 1 of `main`"


def test_a_young_snapshot_before_an_old_one_says_so() -> None:
    odd = tuple(msgspec.structs.replace(s, timestamp_ms=9 * DAY) if s.snapshot_id == 2 else s for s in MAIN)
    assert reasons(table(None, odd))[2] == "removed: before one older than 5 d, beyond the newest 1 of `main`"


def test_a_moment_that_was_given_is_said() -> None:
    assert reasons(table(), days(older_than_ms=1))[1] == (
        "removed: older than 1970-01-02 00:00:00.000+00:00, beyond the newest 1 of `main`"
    )


def test_refs_say_why_they_stay_or_go() -> None:
    refs = {"young": tag(4, ref_age=4), "old": tag(4, ref_age=3), "free": branch(5)}
    decided = decide_expiry(table(refs), ExpiryRequest(), NOW).refs
    assert {d.name: (d.kept, str(d.reason)) for d in decided} == {
        "main": (True, "`main` always stays"),
        "young": (True, "its snapshot is not older than 4 d"),
        "old": (False, "its snapshot is older than 3 d"),
        "free": (True, "no age limit"),
    }


def test_kept_by_names_the_refs_that_protect_a_snapshot() -> None:
    decided = decide_expiry(table({"b": branch(6, keep=4), "t": tag(3)}), ExpiryRequest(), NOW).snapshots
    kept_by = {d.snapshot.snapshot_id: d.kept_by for d in decided if d.kept}
    assert kept_by == {3: {"b", "t"}, 4: {"main", "b"}, 5: {"main", "b"}, 6: {"main", "b"}}


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(1, "1 ms"), (1500, "1500 ms"), (90_000, "90 s"), (10_800_000, "3 h"), (7 * DAY, "7 d")],
)
def test_durations_are_in_the_largest_unit_that_is_exact(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text
