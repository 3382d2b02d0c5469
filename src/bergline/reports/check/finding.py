"""Findings of a check, and the report of all tables, as text or as JSON."""

from enum import StrEnum
from typing import Any

import msgspec

from bergline.arguments import counted
from bergline.reports.units import render_size


class Severity(StrEnum):
    """How serious a finding is."""

    ERROR = "error"
    """Reads fail or return wrong rows, or will after the next write."""
    WARNING = "warning"
    """Reads are correct; something else is lost, wrong, or could not be checked."""
    NOTE = "note"
    """Nothing is wrong, but something is left over or unusual."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is damaged: how serious it is, what and where, and what would repair it."""

    severity: Severity
    code: str
    place: str
    message: str
    mend: str
    refs: tuple[str, ...] = ()
    """The branches and tags whose head needs what is damaged."""

    def __str__(self) -> str:
        needed = f" (needed by {', '.join(f'`{ref}`' for ref in self.refs)})" if self.refs else ""
        return f"{self.severity} {self.code}: {self.message}{needed}\n  at {self.place}\n  to repair it: {self.mend}"


class TableCheck(msgspec.Struct, frozen=True):
    """One table: the most serious findings first, and how much was checked."""

    table: str
    metadata_location: str | None
    findings: tuple[Finding, ...] = ()
    omitted: dict[str, int] = {}
    """How many more findings there are, by code: only the first of each are kept."""
    snapshots: int = 0
    manifests: int = 0
    files: int = 0
    bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def __str__(self) -> str:
        looked = ", ".join(
            [
                counted(self.snapshots, "snapshot"),
                counted(self.manifests, "manifest"),
                f"{counted(self.files, 'file')} of {render_size(self.bytes)}",
            ]
        )
        count = len(self.findings) + sum(self.omitted.values())
        lines = [f"{self.table}: {counted(count, 'finding') if count else 'no finding'} ({looked})"]
        lines += [line for finding in self.findings for line in str(finding).splitlines()]
        lines += [f"and {counted(more, 'finding')} more of {code}" for code, more in self.omitted.items()]
        return "\n  ".join(lines)


class OtherCheck(msgspec.Struct, frozen=True):
    """Something other than a table: a view, an object in the trash, or the catalog itself."""

    what: str
    metadata_location: str | None = None
    findings: tuple[Finding, ...] = ()
    omitted: dict[str, int] = {}

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def __str__(self) -> str:
        count = len(self.findings) + sum(self.omitted.values())
        lines = [f"{self.what}: {counted(count, 'finding') if count else 'no finding'}"]
        lines += [line for finding in self.findings for line in str(finding).splitlines()]
        lines += [f"and {counted(more, 'finding')} more of {code}" for code, more in self.omitted.items()]
        return "\n  ".join(lines)


class CheckReport(msgspec.Struct, frozen=True):
    """All tables that were checked, by name; `deep` if every file was opened."""

    deep: bool
    tables: tuple[TableCheck, ...] = ()
    others: tuple[OtherCheck, ...] | None = None
    """Views, what is in the trash, and the catalog itself; None if only tables were checked."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return all(table.ok for table in self.tables) and all(other.ok for other in self.others or ())

    def __str__(self) -> str:
        others = self.others or ()
        bad = sum(not table.ok for table in self.tables) + sum(not other.ok for other in others)
        kind = "deep check" if self.deep else "check"
        what = counted(len(self.tables), "table") + (f" and {counted(len(others), 'other')}" if others else "")
        first = f"{kind} of {what}: {f'{bad:,} damaged' if bad else 'none damaged'}"
        return "\n".join([first, *map(str, self.tables), *map(str, others)])

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        tables = [{**msgspec.to_builtins(table), "ok": table.ok} for table in self.tables]
        report = {"ok": self.ok, "deep": self.deep, "tables": tables}
        if self.others is None:
            return report
        return report | {"others": [{**msgspec.to_builtins(other), "ok": other.ok} for other in self.others]}
