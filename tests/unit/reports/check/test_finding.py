"""Reports as text and as JSON values."""

import json

from bergline.reports.check.finding import CheckReport, Finding, Severity, TableCheck

ERROR = Finding(
    Severity.ERROR, "data-file-missing", "/a.parquet", "the data file does not exist", "restore it", ("main",)
)


def test_report_says_what_is_damaged_where_and_what_would_mend_it() -> None:
    report = CheckReport(False, (TableCheck("db.a", "/m", (ERROR,), {"data-file-missing": 3}, 2, 1, 4, 2048),))
    assert str(report).splitlines() == [
        "check of 1 table: 1 damaged",
        "db.a: 4 findings (2 snapshots, 1 manifest, 4 files of 2.00 KiB)",
        "  error data-file-missing: the data file does not exist (needed by `main`)",
        "    at /a.parquet",
        "    to repair it: restore it",
        "  and 3 findings more of data-file-missing",
    ]


def test_warnings_alone_leave_a_table_whole() -> None:
    warning = Finding(Severity.WARNING, "summary-totals", "x", "y", "z")
    report = CheckReport(True, (TableCheck("db.a", None, (warning,)),))
    assert report.ok
    assert str(report).startswith("deep check of 1 table: none damaged\n")


def test_report_as_json_values() -> None:
    report = CheckReport(False, (TableCheck("db.a", "/m", (ERROR,)),))
    found = json.loads(json.dumps(report.to_dict()))
    assert (found["ok"], found["tables"][0]["ok"]) == (False, False)
    assert found["tables"][0]["findings"][0]["severity"] == "error"
