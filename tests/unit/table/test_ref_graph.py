"""The graph of branches and tags in notebooks, and what else tables, scans, refs and reports show there."""

from xml.etree import ElementTree as ET

from rows import order_rows

from bergline import Table
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lake.ref_report import RefReport, TableRefChange
from bergline.spark.pipeline.audits_run import AuditResult
from bergline.spark.pipeline.report import PipelineReport, StepResult
from bergline.table.ref_graph import MOST_SNAPSHOTS, ref_graph

HOSTILE = "<img src=x onerror='alert(1)'>"


def parsed(html: str) -> ET.Element:
    """What a browser makes of it; markup from values would be elements here, or no XML at all."""
    return ET.fromstring(f"<div>{html}</div>")  # noqa: S314  (our own)


def text(html: str) -> str:
    return " ".join(" ".join(parsed(html).itertext()).split())


def circles(metadata: TableMetadata) -> dict[str, int]:
    """The horizontal place of each snapshot, by its id."""
    root = parsed(ref_graph(metadata))
    dots, labels = (list(root.iter(kind)) for kind in ("circle", "text"))
    return {
        "".join(label.itertext()).split()[-1]: int(dot.get("cx", "")) for dot, label in zip(dots, labels, strict=True)
    }


def test_a_branch_with_snapshots_of_its_own_has_a_line_beside_main(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    orders.append(order_rows(2), branch="dev")
    orders.append(order_rows(3))
    orders.refs.create_tag("v1")
    places = circles(orders.metadata)
    dev = places.pop(str(orders.refs["dev"].snapshot_id))
    assert len(set(places.values())) == 1
    assert dev > places[str(orders.refs["main"].snapshot_id)]
    assert len(list(parsed(ref_graph(orders.metadata)).iter("path"))) == 2
    assert "main, tag v1" in text(ref_graph(orders.metadata))


def test_a_table_without_snapshots_has_no_graph(orders: Table) -> None:
    assert ref_graph(orders.metadata) == ""
    assert "0 snapshots" in text(orders._repr_html_())


def test_of_a_long_history_the_newest_part_is_drawn(orders: Table) -> None:
    for number in range(MOST_SNAPSHOTS + 3):
        orders.append(order_rows(number))
    graph = ref_graph(orders.metadata)
    assert len(list(parsed(graph).iter("circle"))) == MOST_SNAPSHOTS
    assert "and 3 older snapshots" in text(graph)


def test_a_history_whose_beginning_has_expired_is_drawn(orders: Table) -> None:
    for number in range(3):
        orders.append(order_rows(number))
    orders.expire(older_than=None, retain_last=1, snapshot_ids=[orders.metadata.snapshots[0].snapshot_id])
    assert len(circles(orders.metadata)) == len(orders.metadata.snapshots) == 2


def test_table_scan_refs_and_difference_show_themselves(orders: Table) -> None:
    orders.append(order_rows(1, 2))
    orders.append(order_rows(3), branch="dev")
    shown = text(orders._repr_html_())
    assert "Table db.orders" in shown
    assert "2 rows in main" in shown
    assert "partitioned by" in shown
    scan = orders.scan("id > 1", ref="dev", columns=["id"])
    assert text(scan._repr_html_()).startswith(f"Scan snapshot {scan.snapshot_id} of branch `dev`, where Comparison(")
    assert "dev branch" in text(orders.refs._repr_html_())
    difference = orders.refs.diff("main", "dev")
    assert "`dev` against `main`" in text(difference._repr_html_())
    assert "added rows" in text(difference._repr_html_())


def test_names_and_comments_are_text(orders: Table) -> None:
    with orders.update_schema() as update:
        update.add_column(HOSTILE, "string", doc=HOSTILE)
    orders.append(order_rows(1), summary={"engine-name": HOSTILE})
    orders.append(order_rows(2), branch=HOSTILE)
    for html in (
        orders._repr_html_(),
        orders.refs._repr_html_(),
        orders.scan()._repr_html_(),
        orders.refs.diff("main", HOSTILE)._repr_html_(),
    ):
        assert not list(parsed(html).iter("img"))
    assert HOSTILE in text(orders._repr_html_())
    assert HOSTILE in text(orders.refs._repr_html_())


def test_report_of_a_pipeline_shows_itself() -> None:
    moved = TableRefChange("db.orders", "fast-forwarded", 1, 2)
    report = PipelineReport(
        HOSTILE,
        "2026-03-31",
        "b",
        "audits failed",
        (StepResult("load", "written", {"db.orders": 1200}), StepResult("none", "wrote nothing")),
        (AuditResult("unique", "db.orders", False, "no two", "2 the same", ({"id": HOSTILE},)),),
        published=RefReport("published `b` into `main`", "main", (moved,)),
    )
    html = report._repr_html_()
    assert not list(parsed(html).iter("img"))
    assert text(html).startswith(f"Pipeline {HOSTILE}, run 2026-03-31 not published, 1 of 1 audits failed")
    for words in (
        "load written db.orders +1,200",
        "none wrote nothing",
        "unique FAILED no two 2 the same",
        "db.orders",
    ):
        assert words in text(html)
