"""Reports: for people, as rows and as JSON values."""

import json

from bergline.errors import CommitUnknownError, RefusedError
from bergline.lake.maintenance.report import (
    MaintenanceReport,
    MaintenanceStep,
    StepReport,
    StepStatus,
    TableReport,
    failed_step,
)

DONE = StepReport(
    MaintenanceStep.COMPACTION,
    StepStatus.DONE,
    "2 small files",
    "main",
    {"rewritten_data_files": 2000, "rewritten_bytes": 2_500_000},
)
REFUSED = failed_step(MaintenanceStep.ORPHANS, RefusedError("cannot", hints=["do this"]))
REPORT = MaintenanceReport(False, (TableReport("db.a", (DONE, REFUSED)), TableReport("db.b", (DONE,))))


def test_text_has_counts_reasons_and_hints() -> None:
    assert str(REPORT).splitlines() == [
        "maintenance of 2 tables, 2 done, 1 failed",
        "db.a",
        "  compaction `main`: done: 2 small files: rewritten data files 2,000, rewritten bytes 2.38 MiB",
        "  orphans: failed: cannot",
        "    hint: do this",
        "db.b",
        "  compaction `main`: done: 2 small files: rewritten data files 2,000, rewritten bytes 2.38 MiB",
    ]
    assert str(MaintenanceReport(True)) == "maintenance plan of 0 tables"


def test_rows_have_one_for_each_step() -> None:
    rows = REPORT.to_arrow().to_pylist()
    assert [(r["table"], r["step"], r["status"], r["error"]) for r in rows] == [
        ("db.a", "compaction", "done", None),
        ("db.a", "orphans", "failed", "refused"),
        ("db.b", "compaction", "done", None),
    ]
    assert dict(rows[0]["details"]) == DONE.details


def test_json_values_are_plain() -> None:
    found = json.loads(json.dumps(REPORT.to_dict()))
    assert (found["ok"], found["planned"]) == (False, False)
    assert found["tables"][0]["steps"][1] == {
        "step": "orphans",
        "status": "failed",
        "reason": "cannot",
        "branch": None,
        "details": {},
        "error": "refused",
        "hints": ["do this"],
    }


def test_what_is_unknown_is_no_failure_and_is_not_well() -> None:
    error = CommitUnknownError("who knows", table="db.a", metadata_location=None)
    step = failed_step(MaintenanceStep.EXPIRY, error, unknown=True)
    assert (step.status, step.error) == (StepStatus.UNKNOWN, "commit-unknown")
    assert not TableReport("db.a", (step,)).ok


def test_error_of_another_library_is_named_by_its_class() -> None:
    assert (failed_step(None, OSError()).reason, failed_step(None, OSError()).error) == ("OSError()", "OSError")
