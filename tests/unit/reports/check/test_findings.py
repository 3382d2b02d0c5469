"""Findings as they are collected."""

from bergline.errors import NotFoundError, StorageError, UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.check.findings import Findings


def test_only_the_first_of_a_kind_are_kept_and_the_others_counted() -> None:
    findings = Findings(most=2)
    for number in range(5):
        findings.error("lost", f"file {number}", "lost", "find it")
    findings.warning("odd", "here", "odd", "none")
    found, omitted = findings.finish(None)
    assert [f.place for f in found] == ["file 0", "file 1", "here"]
    assert omitted == {"lost": 3}


def test_errors_come_first_with_the_refs_that_need_the_file(metadata: TableMetadata) -> None:
    findings = Findings()
    findings.warning("odd", "here", "odd", "none")
    findings.error("lost", "file", "lost", "find it", snapshots=[102, 103], expiry_helps=True)
    (error, warning), _ = findings.finish(metadata)
    assert (error.code, warning.code) == ("lost", "odd")
    assert error.refs == ("audit", "main")
    assert "roll `main` back to snapshot 101" in error.mend
    assert "drop `audit`" in error.mend


def test_error_of_reading_says_whether_the_file_is_gone() -> None:
    findings = Findings()
    findings.unreadable("manifest list", "a", NotFoundError("gone", kind="file", name="a"))
    findings.unreadable("manifest list", "b", StorageError("disk"))
    findings.unreadable("manifest list", "c", UnsupportedError("encrypted"))
    found, _ = findings.finish(None)
    assert [f.code for f in found] == ["manifest-list-missing", "manifest-list-unreadable", "manifest-list-unsupported"]
