"""A plan says what expiry would do and why, in words and in rows, and expiry then does just that."""

import datetime as dt
import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from bergline import Lake, Table
from bergline.errors import FormatError, RefusedError
from bergline.table.expiry.plan import Amount
from bergline.table.expiry.reachable import FileKind
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def busy(orders: Table) -> Table:
    """`main` with four snapshots, a tag on the second, and a branch that keeps two of its three."""
    orders.append(order_rows(1)).overwrite(order_rows(2))
    orders.refs.create_tag("q1-final")
    orders.refs.create_branch("staging", min_snapshots_to_keep=2)
    for number in (10, 11, 12):
        orders.append(order_rows(number), branch="staging")
    return orders.overwrite(order_rows(3)).overwrite(order_rows(4))


def on_disk(table: Table) -> dict[str, int]:
    return {f: len(table.io.read(f)) for f in table.io.list(table.location) if not f.endswith(".metadata.json")}


def test_text_says_what_becomes_of_every_ref_and_snapshot(busy: Table) -> None:
    text = str(busy.plan_expiry(older_than=FUTURE))
    lines = text.splitlines()
    assert re.fullmatch(
        r"0 of 3 refs and 3 of 7 snapshots would be removed; 8 files of [\d.]+ KiB would be deleted", lines[0]
    )
    said = [re.sub(r"\d+  \d{4}-\S+ \S+|\d{4}-\S+ \S+(?=,)|[\d.]+ KiB", "…", line.strip()) for line in lines[1:]]
    assert said == [
        "",
        "refs",
        "branch `main`  kept: `main` always stays; alone holds 4 files of …",
        "tag `q1-final`  kept: no age limit; alone holds 2 files of …",
        "branch `staging`  kept: no age limit; alone holds 8 files of …",
        "",
        "snapshots",
        "…  kept: branch `main`",
        "…  removed: older than …, beyond the newest 1 of `main`",
        "…  kept: branch `staging`",
        "…  kept: among the newest 2 of `staging`",
        "…  removed: older than …, beyond the newest 2 of `staging`",
        "…  kept: tag `q1-final`",
        "…  removed: older than …, beyond the newest 1 of `main`; older than …, beyond the newest 2 of `staging`",
        "",
        "files to delete",
        "data files: 2 files of …",
        "manifests: 3 files of …",
        "manifest lists: 3 files of …",
    ]


def test_rows_have_one_for_each_thing(busy: Table) -> None:
    plan = busy.plan_expiry(older_than=FUTURE)
    rows = plan.to_arrow()
    assert rows.column_names == ["kind", "name", "snapshot_id", "timestamp", "kept", "reason", "files", "bytes"]
    kinds = rows["kind"].to_pylist()
    assert {kind: kinds.count(kind) for kind in kinds} == {"branch": 2, "tag": 1, "snapshot": 7, "files": 3}
    removed = rows.filter(pc.and_(pc.equal(rows["kind"], "snapshot"), pc.invert(rows["kept"])))
    assert tuple(removed["snapshot_id"].to_pylist()) == plan.removed_snapshots
    (tag,) = rows.filter(pc.equal(rows["kind"], "tag")).to_pylist()
    assert tag["reason"] == "no age limit"
    assert (tag["files"], tag["bytes"]) == (plan.held["q1-final"].files, plan.held["q1-final"].bytes)
    files = rows.filter(pc.equal(rows["kind"], "files")).to_pylist()
    assert {f["name"]: Amount(f["files"], f["bytes"]) for f in files} == plan.deleted_by_kind
    for row in rows.filter(pc.equal(rows["kind"], "snapshot")).to_pylist():
        snapshot = busy.metadata.snapshot(row["snapshot_id"])
        assert row["timestamp"].timestamp() * 1000 == pytest.approx(snapshot.timestamp_ms)


def test_expiry_does_what_the_plan_says(busy: Table) -> None:
    before = on_disk(busy)
    plan = busy.plan_expiry(older_than=FUTURE)
    assert on_disk(busy) == before
    result = busy.expire(older_than=FUTURE)
    assert (result.removed_snapshots, result.removed_refs) == (plan.removed_snapshots, plan.removed_refs)
    gone = {f: size for f, size in before.items() if f not in on_disk(busy)}
    assert {f.location: f.size for f in plan.files} == gone
    assert plan.deleted == Amount(len(gone), sum(gone.values()))


@pytest.mark.parametrize("name", ["q1-final", "staging"])
def test_what_a_ref_alone_holds_goes_when_it_is_dropped(busy: Table, name: str) -> None:
    held = busy.plan_expiry(older_than=FUTURE).held[name]
    busy.expire(older_than=FUTURE)
    before = on_disk(busy)
    (busy.refs.drop_tag if name == "q1-final" else busy.refs.drop_branch)(name)
    busy.expire(older_than=FUTURE)
    gone = [size for f, size in before.items() if f not in on_disk(busy)]
    assert held == Amount(len(gone), sum(gone))


def test_a_ref_past_its_age_holds_nothing_and_says_why_it_goes(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("old", max_ref_age_ms=1)
    head = orders.metadata.snapshots[0]
    while dt.datetime.now(dt.UTC).timestamp() * 1000 <= head.timestamp_ms + 2:
        pass
    plan = orders.plan_expiry()
    assert "tag `old`  removed: its snapshot is older than 1 ms\n" in str(plan)
    assert plan.removed_refs == ("old",)
    assert set(plan.held) == {"main"}
    assert plan.held["main"].files == 3


def test_young_snapshots_without_ref_are_held_by_nobody(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev")
    orders.refs.drop_branch("dev")
    plan = orders.plan_expiry()
    assert plan.deleted == Amount()
    assert plan.held["main"].files == 1, "its list; manifest and data file are needed by the other snapshot too"
    assert "kept: not older than 5 d, on no branch or tag" in str(plan)


def test_levels_say_what_would_stay(busy: Table) -> None:
    kinds = set(busy.plan_expiry(older_than=FUTURE, level="metadata").deleted_by_kind)
    assert kinds == {FileKind.MANIFEST, FileKind.MANIFEST_LIST}
    plan = busy.plan_expiry(older_than=FUTURE, level="none")
    assert (plan.deleted, plan.held) == (Amount(), {})
    assert "alone" not in str(plan)


def test_unused_specs_and_schemas_are_told(lake: Lake) -> None:
    table = lake.create_table("db.evolved", ORDERS)
    with table.update_spec() as spec:
        spec.add_field("region")
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    plan = table.plan_expiry(clean_metadata=True)
    assert (plan.removed_specs, plan.removed_schemas) == ((0,), (0,))
    assert str(plan).endswith("partition specs to remove\n  0\n\nschemas to remove\n  0")
    assert plan.to_arrow().select(["kind", "name", "kept"]).to_pylist() == [
        {"kind": "partition spec", "name": "0", "kept": False},
        {"kind": "schema", "name": "0", "kept": False},
    ]


def test_empty_table_has_nothing_to_say(orders: Table) -> None:
    assert str(orders.plan_expiry()) == (
        "0 of 0 refs and 0 of 0 snapshots would be removed; 0 files of 0 B would be deleted"
    )


def test_plan_in_a_transaction_has_its_changes(orders: Table) -> None:
    orders.append(order_rows(1))
    with orders.transaction() as tx:
        tx.overwrite(order_rows(2))
        assert len(tx.plan_expiry(older_than=FUTURE).removed_snapshots) == 1
    assert ids(orders.scan().to_arrow()) == [2]
    assert len(orders.metadata.snapshots) == 2


def test_what_expiry_refuses_the_plan_refuses(busy: Table) -> None:
    with pytest.raises(RefusedError, match="`q1-final` still names it"):
        busy.plan_expiry(snapshot_ids=[busy.refs["q1-final"].snapshot_id])
    for manifest in Path(busy.location.removeprefix("file://")).rglob("*-m0.avro"):
        manifest.write_bytes(b"")
    with pytest.raises(FormatError, match="nothing was changed or deleted"):
        busy.plan_expiry(older_than=FUTURE)
