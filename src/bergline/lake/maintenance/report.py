"""What maintenance did to each table, or would do, and why: printed as text, as Arrow rows, or as JSON."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
import pyarrow as pa

from bergline.arguments import counted
from bergline.errors import BerglineError
from bergline.sizes import render_size

_SCHEMA = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        ("step", pa.string()),
        ("branch", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        ("reason", pa.string()),
        ("error", pa.string()),
        pa.field("details", pa.map_(pa.string(), pa.int64()), nullable=False),
    ]
)


class MaintenanceStep(StrEnum):
    """The steps of maintenance, in the order in which they are run."""

    COMPACTION = "compaction"
    MANIFESTS = "manifests"
    EXPIRY = "expiry"
    ORPHANS = "orphans"


class StepStatus(StrEnum):
    """The outcome of a step."""

    PLANNED = "planned"
    """It would be done."""
    DONE = "done"
    NOTHING = "nothing to do"
    SKIPPED = "skipped"
    """By the policy, by the time budget, or because others changed the table at the same time; a later run may do it.
    """
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Its commit may have happened; nothing was deleted."""


class StepReport(msgspec.Struct, frozen=True):
    """One step on one table; `step` is None where the table as a whole was skipped or failed."""

    step: MaintenanceStep | None
    status: StepStatus
    reason: str = ""
    branch: str | None = None
    details: dict[str, int] = {}
    """Counts and bytes: what was done, or in a plan, what would be done."""
    error: str | None = None
    """The code of the error, as in the reference of errors, or the name of its class."""
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = " ".join(part for part in (self.step, self.branch and f"`{self.branch}`") if part)
        amounts = ", ".join(f"{name.replace('_', ' ')} {_amount(name, value)}" for name, value in self.details.items())
        lines = [": ".join(part for part in (what, self.status.value, self.reason, amounts) if part)]
        return "\n".join([*lines, *(f"  hint: {hint}" for hint in self.hints)])


class TableReport(msgspec.Struct, frozen=True):
    """All steps on one table, in order."""

    table: str
    steps: tuple[StepReport, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and no outcome is unknown."""
        return not any(step.status in {StepStatus.FAILED, StepStatus.UNKNOWN} for step in self.steps)

    def __str__(self) -> str:
        lines = [line for step in self.steps for line in str(step).splitlines()]
        return "\n  ".join([self.table, *lines])


class MaintenanceReport(msgspec.Struct, frozen=True):
    """The tables by name; `planned` if nothing was changed."""

    planned: bool
    tables: tuple[TableReport, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and no outcome is unknown."""
        return all(table.ok for table in self.tables)

    def count(self, status: StepStatus | str) -> int:
        """How many steps have a status."""
        return sum(step.status == status for table in self.tables for step in table.steps)

    def __str__(self) -> str:
        kind = "maintenance plan" if self.planned else "maintenance"
        counts = [f"{self.count(status)} {status.value}" for status in StepStatus if self.count(status)]
        summary = ", ".join([f"{kind} of {counted(len(self.tables), 'table')}", *counts])
        return "\n".join([summary, *map(str, self.tables)])

    def to_arrow(self) -> pa.Table:
        """A row for each step, and for each table that was skipped or failed as a whole."""
        return pa.Table.from_pylist(list(self._rows()), schema=_SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        found = msgspec.to_builtins(self)
        assert isinstance(found, dict)  # noqa: S101  (a struct)
        return {**found, "ok": self.ok}

    def _rows(self) -> Iterator[dict[str, object]]:
        for table in self.tables:
            for step in table.steps:
                yield {
                    "table": table.table,
                    "step": step.step,
                    "branch": step.branch,
                    "status": step.status.value,
                    "reason": step.reason or None,
                    "error": step.error,
                    "details": list(step.details.items()),
                }


def failed_step(
    step: MaintenanceStep | None, error: Exception, branch: str | None = None, *, unknown: bool = False
) -> StepReport:
    """The report of a step that failed."""
    status = StepStatus.UNKNOWN if unknown else StepStatus.FAILED
    if isinstance(error, BerglineError):
        return StepReport(step, status, str(error), branch, error=error.code, hints=error.hints)
    return StepReport(step, status, str(error) or repr(error), branch, error=type(error).__name__)


def _amount(name: str, value: int) -> str:
    return render_size(value) if name.endswith("bytes") else f"{value:,}"
