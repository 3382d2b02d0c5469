"""The report of a pipeline's run: whether it was published, and the text that people read."""

import pytest

from bergline.errors import RefusedError
from bergline.spark.pipeline.audits_run import AuditResult
from bergline.spark.pipeline.report import PipelineReport, Status, StepResult

PASSED = AuditResult("row_count(db.orders)", "db.orders", True, "at least 1 rows", "3 rows")
FAILED = AuditResult("unique(db.orders, id)", "db.orders", False, "no two rows", "1 value", ({"id": 1, "n": 2},))


def report(status: Status, **parts: object) -> PipelineReport:
    return PipelineReport("daily", "7", "daily-7", status, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "parts", "headline"),
    [
        ("published", {}, "published"),
        ("published", {"tag": "v1"}, "published and tagged `v1`"),
        ("published before", {}, "published before, nothing to do"),
        ("audited", {}, "not published yet; branch `daily-7` is ready"),
        (
            "audits failed",
            {"audits": (PASSED, FAILED)},
            "not published, 1 of 2 audits failed; main is as it was, branch `daily-7` stays",
        ),
    ],
)
def test_first_line_says_what_became_of_the_run(status: Status, parts: dict[str, object], headline: str) -> None:
    assert str(report(status, **parts)).splitlines()[0] == f"pipeline daily, run 7: {headline}"


def test_steps_and_audits_stand_below_with_rows_that_fail() -> None:
    steps = (StepResult("load", "written", {"db.orders": 1200, "db.items": -3}), StepResult("none", "wrote nothing"))
    text = str(report("audits failed", steps=steps, audits=(PASSED, FAILED), rebased=("db.orders",)))
    assert text.splitlines()[1:] == [
        "  steps",
        "    load: written, db.orders +1,200 rows, db.items -3 rows",
        "    none: wrote nothing",
        "  brought on top of main",
        "    db.orders",
        "  audits",
        "    ok      row_count(db.orders): 3 rows",
        "    FAILED  unique(db.orders, id): expected no two rows, found 1 value",
        "              id=1, n=2",
    ]


def test_only_what_was_published_passes_the_check() -> None:
    for status in ("published", "published before"):
        done = report(status)
        assert done.is_published
        assert done.check_published() is done
    failed = report("audits failed", audits=(PASSED, FAILED))
    assert failed.failures == (FAILED,)
    for refused in (failed, report("audited")):
        with pytest.raises(RefusedError, match="pipeline daily, run 7: not published") as caught:
            refused.check_published()
        assert caught.value.hints == ("branch `daily-7` has what was written",)
