"""What tables, scans, refs, differences and reports show in notebooks, and that they ask the reports for it."""

from xml.etree import ElementTree as ET

import pytest

from bergline import Table
from bergline.lake.ref_report import RefReport, TableRefChange
from bergline.notebook import DRAWINGS
from bergline.reports import html
from bergline.spark.pipeline.audits_run import AuditResult
from bergline.spark.pipeline.report import PipelineReport, StepResult
from support.fixtures.rows import order_rows

HOSTILE = "<img src=x onerror='alert(1)'>"


def parsed(markup: str) -> ET.Element:
    """What a browser makes of it; markup from values would be elements here, or no XML at all."""
    return ET.fromstring(f"<div>{markup}</div>")  # noqa: S314  (our own)


def text(markup: str) -> str:
    return " ".join(" ".join(parsed(markup).itertext()).split())


def test_table_scan_refs_and_difference_show_themselves(orders: Table) -> None:
    orders.append(order_rows(1, 2))
    orders.append(order_rows(3), branch="dev")
    assert "Table db.orders" in text(orders._repr_html_())
    assert len(list(parsed(orders._repr_html_()).iter("{http://www.w3.org/2000/svg}circle"))) == 2
    scan = orders.scan("id > 2", ref="dev", columns=["id"])
    assert text(scan._repr_html_()).startswith(f"Scan of snapshot {scan.snapshot_id}")
    assert "dev branch" in text(orders.refs._repr_html_())
    assert "dev against main" in text(orders.refs.diff("main", "dev")._repr_html_())


def test_names_and_comments_are_text(orders: Table) -> None:
    with orders.update_schema() as update:
        update.add_column(HOSTILE, "string", doc=HOSTILE)
    orders.append(order_rows(1), summary={"engine-name": HOSTILE})
    orders.append(order_rows(2), branch=HOSTILE)
    difference = orders.refs.diff("main", HOSTILE)
    for value in (orders, orders.refs, orders.scan(), difference):
        assert not list(parsed(value._repr_html_()).iter("img"))
        assert HOSTILE in text(value._repr_html_())


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_is_a_function_of_the_reports(name: str) -> None:
    assert callable(getattr(html, name))


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
    markup = report._repr_html_()
    assert not list(parsed(markup).iter("img"))
    assert text(markup).startswith(f"Pipeline {HOSTILE}, run 2026-03-31 not published, 1 of 1 audits failed")
    for words in (
        "load written db.orders +1,200",
        "none wrote nothing",
        "unique FAILED no two 2 the same",
        "db.orders",
    ):
        assert words in text(markup)
