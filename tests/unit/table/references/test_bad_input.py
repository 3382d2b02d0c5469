"""Calls that cannot be right: one clear error each, which names what is wrong; nothing changes, nothing is deleted."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from bergline.scan.manifests import load_manifest_list
from support.fixtures.rows import ORDERS, ids, order_rows

SOON = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
Call = Callable[[Table], object]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table for all calls: none of them changes it."""
    with bergline.connect(f"sqlite:///{tmp_path_factory.mktemp('lake')}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        yield with_refs(lake.create_table("db.orders", ORDERS))


def with_refs(orders: Table) -> Table:
    """`main` and `dev` have parted at the second snapshot; `v1` is a tag, and `lost` has holes in its history."""
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_branch("dev")
    orders.refs.create_tag("v1")
    for number in (10, 11, 12):
        orders.append(order_rows(number), branch="lost")
    orders.append(order_rows(3), branch="dev").append(order_rows(4)).overwrite(order_rows(5))
    middle = list(orders.metadata.ancestors(orders.refs["lost"].snapshot_id))[1]
    orders.expire(older_than=LONG_AGO, snapshot_ids=[middle.snapshot_id])
    return orders


def state(table: Table) -> tuple[str, dict[str, bytes]]:
    """Where the pointer is, and every file with its bytes."""
    root = Path(table.location.removeprefix("file://"))
    files = {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    return table.refresh().metadata_location, files


UNKNOWN: list[tuple[Call, str]] = [
    (lambda t: t.refs["nope"], "no branch or tag `nope`"),
    (lambda t: t.scan(ref="nope").to_arrow(), "no branch or tag `nope`"),
    (lambda t: t.changes("nope"), "no branch or tag `nope`"),
    (lambda t: t.refs.create_branch("new", at="nope"), "no branch or tag `nope`"),
    (lambda t: t.refs.create_tag("new", at=99), "no snapshot with id 99"),
    (lambda t: t.refs.replace_branch("nope", at="main"), "no branch `nope`"),
    (lambda t: t.refs.replace_tag("nope", at="main"), "no tag `nope`"),
    (lambda t: t.refs.replace_tag("v1", at=99), "no snapshot with id 99"),
    (lambda t: t.refs.rename_branch("nope", to="new"), "no branch `nope`"),
    (lambda t: t.refs.drop_branch("nope"), "no branch `nope`"),
    (lambda t: t.refs.drop_tag("nope"), "no tag `nope`"),
    (lambda t: t.refs.set_retention("nope", max_ref_age_ms=1), "no branch or tag `nope`"),
    (lambda t: t.refs.fast_forward("main", to="nope"), "no branch or tag `nope`"),
    (lambda t: t.refs.rollback("nope", to="v1"), "no branch `nope`"),
    (lambda t: t.refs.rollback(to=99), "no snapshot with id 99"),
    (lambda t: t.refs.rollback(to=LONG_AGO), "no snapshot of `main` before 2000-01-01"),
    (lambda t: t.refs.set_current(to=99), "no snapshot with id 99"),
    (lambda t: t.refs.cherry_pick(99), "no snapshot with id 99"),
    (lambda t: t.refs.publish("nope"), "no snapshot staged under WAP id `nope`"),
    (lambda t: t.refs.merge("nope", into="main"), "no branch or tag `nope`"),
    (lambda t: t.refs.rebase("dev", onto="nope"), "no branch or tag `nope`"),
    (lambda t: t.refs.diff("main", "nope"), "no branch or tag `nope`"),
    (lambda t: t.compact(branch="nope"), "no branch `nope`"),
]
TAKEN: list[tuple[Call, str]] = [
    (lambda t: t.refs.create_branch("dev"), "branch `dev` exists already"),
    (lambda t: t.refs.create_branch("v1"), "tag `v1` exists already"),
    (lambda t: t.refs.create_tag("dev"), "branch `dev` exists already"),
    (lambda t: t.refs.create_tag("v1"), "tag `v1` exists already"),
    (lambda t: t.refs.rename_branch("dev", to="v1"), "tag `v1` exists already"),
]
INVALID: list[tuple[Call, str]] = [
    (
        lambda t: t.refs.create_tag("new", at=dt.date(2020, 1, 1)),
        "expected a snapshot id, a branch or tag, or a datetime",
    ),
    (lambda t: t.refs.rollback(to=1.5), "expected a snapshot id, a branch or tag, or a datetime"),
    (lambda t: t.refs.set_retention("dev"), "found no setting"),
    (lambda t: t.refs.replace_branch("v1", at="dev"), "expected a branch, found the tag `v1`"),
    (lambda t: t.refs.replace_tag("dev", at="v1"), "expected a tag, found the branch `dev`"),
    (lambda t: t.refs.create_tag("dev", or_replace=True), "expected a tag, found the branch `dev`"),
    (lambda t: t.refs.rename_tag("dev", to="new"), "expected a tag, found the branch `dev`"),
    (lambda t: t.refs.drop_branch("v1"), "expected a branch, found the tag `v1`"),
    (lambda t: t.refs.drop_tag("dev"), "expected a tag, found the branch `dev`"),
    (lambda t: t.refs.fast_forward("v1", to="dev"), "expected a branch, found the tag `v1`"),
    (lambda t: t.refs.rollback("v1", to="v1"), "expected a branch, found the tag `v1`"),
    (lambda t: t.refs.merge("dev", into="dev"), "expected two branches, found `dev` twice"),
    (lambda t: t.refs.create_branch(""), "expected a ref name of 1 to 255 characters, found 0"),
    (lambda t: t.refs.create_tag("x" * 256), "expected a ref name of 1 to 255 characters, found 256"),
    (lambda t: t.append(order_rows(9), branch="x" * 256), "expected a ref name of 1 to 255 characters, found 256"),
    (lambda t: t.refs.create_branch("new", min_snapshots_to_keep=0), "expected min-snapshots-to-keep above 0, found 0"),
    (lambda t: t.refs.create_branch("new", max_snapshot_age_ms=-1), "expected max-snapshot-age-ms above 0, found -1"),
    (lambda t: t.refs.create_tag("new", max_ref_age_ms=0), "expected max-ref-age-ms above 0, found 0"),
    (lambda t: t.refs.set_retention("dev", max_ref_age_ms=-5), "expected max-ref-age-ms above 0, found -5"),
    (lambda t: t.refs.set_retention("v1", min_snapshots_to_keep=2), "expected only max-ref-age-ms on a tag"),
    (lambda t: t.refs.set_retention("dev", max_ref_age_ms=2**63), "expected a whole number up to"),
    (lambda t: t.expire(retain_last=0), "expected retain_last of at least 1, found 0"),
    (lambda t: t.expire(older_than=dt.datetime(2020, 1, 1)), "expected a time with a time zone"),  # noqa: DTZ001
]
REFUSED: list[tuple[Call, tuple[str, ...]]] = [
    (lambda t: t.refs.drop_branch("main"), ("cannot drop branch `main`",)),
    (lambda t: t.refs.rename_branch("main", to="new"), ("cannot rename branch `main`",)),
    (lambda t: t.append(order_rows(9), branch="v1"), ("`v1`", "it is a tag, and tags do not move")),
    (lambda t: t.refs.merge("dev", into="v1"), ("`v1`", "it is a tag, and tags do not move")),
    (lambda t: t.refs.fast_forward("main", to="dev"), ("`main`", "`dev`", "{ancestor}", "merge")),
    (lambda t: t.refs.fast_forward("dev", to="main"), ("`dev`", "`main`", "{ancestor}", "merge")),
    (lambda t: t.refs.rollback("dev", to="main"), ("`dev`", "{main}", "set_current")),
    (lambda t: t.refs.cherry_pick("main", onto="dev"), ("{main}", "`dev`", '`refs.merge("pick", into="dev")`')),
    (lambda t: t.refs.rebase("lost", onto="main"), ("`lost`", "`main`", "expired", "{missing}", "squash=True")),
    (lambda t: t.refs.merge("lost", into="main"), ("`lost`", "`main`", "expired", "{missing}", "squash=True")),
    (lambda t: t.expire(snapshot_ids=[t.refs["v1"].snapshot_id]), ("{ancestor}", "`v1`")),
    (lambda t: t.expire(snapshot_ids=[t.refs["main"].snapshot_id]), ("{main}", "`main`")),
]
CASES: list[tuple[Call, type[BerglineError], tuple[str, ...]]] = [
    *((call, NotFoundError, (text,)) for call, text in UNKNOWN),
    *((call, AlreadyExistsError, (text,)) for call, text in TAKEN),
    *((call, InvalidInputError, (text,)) for call, text in INVALID),
    *((call, RefusedError, texts) for call, texts in REFUSED),
]


@pytest.mark.parametrize(("call", "kind", "texts"), CASES)
def test_one_clear_error_and_nothing_changes(
    table: Table, call: Call, kind: type[BerglineError], texts: tuple[str, ...]
) -> None:
    names: dict[str, Any] = {
        "ancestor": table.refs["v1"].snapshot_id,
        "main": table.refs["main"].snapshot_id,
        "missing": table.metadata.snapshot(table.refs["lost"].snapshot_id).parent_snapshot_id,
    }
    before = state(table)
    with pytest.raises(BerglineError) as caught:
        call(table)
    assert type(caught.value) is kind
    said = " ".join([str(caught.value), *caught.value.hints])
    for text in texts:
        assert text.format(**names) in said
    assert state(table) == before


def test_a_snapshot_id_as_text_is_told_from_a_name(table: Table) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    for call in (lambda: table.refs.create_tag("new", at=str(first)), lambda: table.scan(ref=str(first)).to_arrow()):
        with pytest.raises(NotFoundError, match=f"no branch or tag `{first}`") as caught:
            call()
        assert caught.value.hints == (f"{first} is the id of a snapshot: give it as a number, not as text",)
    for text in ("9" * 5000, "9" * 19, "٣"):
        with pytest.raises(NotFoundError) as caught:
            table.refs[text]
        assert caught.value.hints == ()


def test_main_of_a_table_without_it_is_told_from_a_wrong_name(lake: Lake, orders: Table) -> None:
    for call in (
        lambda: orders.refs["main"],
        lambda: orders.refs.rollback(to=1),
        lambda: orders.refs.diff("main", "x"),
    ):
        with pytest.raises(NotFoundError, match="`main`: the table is empty"):
            call()
    orders.append(order_rows(1), branch="dev")
    with pytest.raises(NotFoundError, match="`main`: nothing was written to it yet"):
        orders.refs.diff("main", "dev")


@pytest.mark.parametrize("damage", [b"not avro", b"", None])
def test_a_manifest_that_cannot_be_read_stops_expiry(orders: Table, damage: bytes | None) -> None:
    table = with_refs(orders)
    first = table.metadata.snapshots[0]
    (manifest,) = load_manifest_list(table.io, first)
    path = Path(manifest.manifest_path.removeprefix("file://"))
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    before = state(table)
    with pytest.raises(NotFoundError if damage is None else FormatError, match=path.name):
        table.expire(older_than=SOON)
    assert state(table) == before


def test_several_tables_are_refused_together_with_the_reason_of_each(lake: Lake, orders: Table) -> None:
    table = with_refs(orders)
    other = lake.create_table("db.other", table.schema).append(order_rows(1))
    other.refs.create_tag("dev")
    before = state(table), state(other)
    with pytest.raises(BerglineError) as caught:
        lake.publish("dev")
    said = str(caught.value)
    assert "`db.orders`: cannot fast-forward `main` to `dev`" in said
    assert "`db.other`: expected a branch, found the tag `dev`" in said
    assert (state(table), state(other)) == before
    assert ids(table.scan().to_arrow()) == [5]
