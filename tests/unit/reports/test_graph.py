"""The graph as SVG."""

import time
import xml.etree.ElementTree as ET

import msgspec

from bergline import Table
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.graph import describe_entry, render_graph
from bergline.reports.history import table_history
from support.fixtures.rows import order_rows

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '"><script>alert(1)</script>&amp;\x00\u202e'


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314


def texts(element: ET.Element) -> list[str]:
    return ["".join(t.itertext()) for t in element.iter(f"{SVG}text")]


def long_history(base: TableMetadata, count: int) -> TableMetadata:
    snapshots = tuple(
        Snapshot(
            snapshot_id=i,
            parent_snapshot_id=i - 1 - (i % 7 == 0) if i > 8 else None if i == 1 else i - 1,
            sequence_number=i,
            timestamp_ms=i * 1000,
            summary={"operation": "append", "added-records": "5", "total-records": str(i * 5)},
        )
        for i in range(1, count + 1)
    )
    refs = {"main": SnapshotRef(count, SnapshotRefType.BRANCH)}
    return msgspec.structs.replace(base, snapshots=snapshots, refs=refs, current_snapshot_id=count)


def test_an_empty_table_has_no_graph(orders: Table) -> None:
    assert render_graph(table_history(orders.metadata)) == ""


def test_branches_are_on_lanes_and_refs_are_labels(orders: Table) -> None:
    orders.append(order_rows(1, 2))
    orders.refs.create_tag("v1")
    orders.refs.create_branch("dev")
    orders.append(order_rows(3), branch="dev")
    orders.append(order_rows(4))
    svg = parsed(render_graph(table_history(orders.metadata), label="History of db.orders"))
    assert svg.get("aria-label") == "History of db.orders"
    assert [g.get("class") for g in svg.iter(f"{SVG}g")] == ["snapshot lane-0", "snapshot lane-1", "snapshot lane-0"]
    labels = [t for t in texts(svg) if t in {"main", "dev", "v1"}]
    assert labels == ["main", "dev", "v1"]
    assert len([p for p in svg.iter(f"{SVG}path") if p.get("class", "").startswith("edge")]) == 2
    assert any("append +2 rows" in text for text in texts(svg))


def test_a_snapshot_is_a_link_with_a_sentence(orders: Table) -> None:
    orders.append(order_rows(1), summary={"author": "ann", "engine-name": "spark"})
    history = table_history(orders.metadata)
    (link,) = parsed(render_graph(history, link=lambda i: f"/table/snapshot?id={i}&x=1")).iter(f"{SVG}a")
    snapshot_id = history.entries[0].snapshot_id
    assert link.get("href") == f"/table/snapshot?id={snapshot_id}&x=1"
    title = link.find(f"{SVG}title")
    assert title is not None
    assert title.text == describe_entry(history.entries[0])
    assert f"snapshot {snapshot_id}, branch main, append, by ann, spark, 20" in str(title.text)
    assert str(title.text).endswith("1 row added")


def test_staged_and_expired_are_dashed_and_said(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2), wap_id="w")
    svg = render_graph(table_history(orders.metadata))
    (staged,) = [c for c in parsed(svg).iter(f"{SVG}circle") if c.get("class") == "node staged"]
    assert staged.get("stroke-dasharray")
    assert "staged" in texts(parsed(svg))[0]
    cut = msgspec.structs.replace(orders.metadata, snapshots=orders.metadata.snapshots[1:], refs={})
    assert "parent expired" in texts(parsed(render_graph(table_history(cut))))[0]


def test_every_value_is_escaped(orders: Table) -> None:
    orders.append(order_rows(1), summary={"author": HOSTILE, "engine-name": HOSTILE, "app-name": HOSTILE})
    metadata = orders.metadata
    metadata = msgspec.structs.replace(metadata, refs={**metadata.refs, HOSTILE: metadata.refs["main"]})
    svg = render_graph(table_history(metadata), link=lambda _: HOSTILE, label=HOSTILE)
    tags = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}
    assert tags == {"svg", "a", "title", "circle", "rect", "text", "tspan"}
    assert "\u202e" not in svg
    assert "\x00" not in svg
    assert "style=" not in svg


def test_a_compaction_rewrites_rows(orders: Table) -> None:
    for i in range(5):
        orders.append(order_rows(i))
    orders.compact()
    entry = table_history(orders.metadata).entries[0]
    assert texts(parsed(render_graph(table_history(orders.metadata))))[1].startswith("replace 5 rows rewritten")
    assert describe_entry(entry).endswith("5 rows rewritten")


def test_long_names_are_cut_short(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("b" * 255)
    svg = parsed(render_graph(table_history(orders.metadata)))
    assert max(len(text) for text in texts(svg)) < 150
    assert float(svg.get("width", "0")) < 2000


def test_two_thousand_snapshots_take_no_second(orders: Table) -> None:
    history = table_history(long_history(orders.metadata, 2000))
    started = time.perf_counter()
    svg = render_graph(history, link=lambda i: f"/s?id={i}")
    assert time.perf_counter() - started < 1
    assert len(list(parsed(svg).iter(f"{SVG}a"))) == 2000


def test_a_part_of_the_history_shows_the_lines_that_pass_it(orders: Table) -> None:
    history = table_history(long_history(orders.metadata, 100))
    part = history.part(10, 20)
    assert [e.row for e in part.entries] == list(range(10, 30))
    assert all(e.child_row < 30 and e.parent_row >= 10 for e in part.edges)
    svg = parsed(render_graph(part))
    assert len(list(svg.iter(f"{SVG}circle"))) == 20
    assert svg.get("height") == "600"
