"""The report of a pipeline's run: a value, and the text that people read."""

from typing import Literal

import msgspec

from bergline.errors import RefusedError
from bergline.lake.ref_report import RefReport
from bergline.markup import html_block, html_table
from bergline.spark.pipeline.audits_run import AuditResult

Status = Literal["published", "published before", "audits failed", "audited", "pull request"]
StepOutcome = Literal["written", "written before", "wrote nothing"]


class StepResult(msgspec.Struct, frozen=True):
    """A step, whether this run or an earlier one wrote it, and by how many rows each table grew."""

    step: str
    what: StepOutcome
    rows: dict[str, int] = {}

    def __str__(self) -> str:
        grown = ", ".join(f"{table} {count:+,} rows" for table, count in self.rows.items())
        return f"{self.step}: {self.what}{f', {grown}' if grown else ''}"


class PipelineReport(msgspec.Struct, frozen=True):
    """The whole run; `published` says what became of `main` in each table."""

    pipeline: str
    run_id: str
    branch: str
    status: Status
    steps: tuple[StepResult, ...] = ()
    audits: tuple[AuditResult, ...] = ()
    rebased: tuple[str, ...] = ()
    """The tables whose `main` had moved on: the branch was rebased onto it before its audits."""
    published: RefReport | None = None
    tag: str | None = None
    pull_request: int | None = None
    """The number of the pull request that asks to publish the run."""

    @property
    def is_published(self) -> bool:
        """Whether `main` has what the run wrote, by this run or an earlier one of the same id."""
        return self.status in {"published", "published before"}

    @property
    def failures(self) -> tuple[AuditResult, ...]:
        """The audits that failed."""
        return tuple(audit for audit in self.audits if not audit.passed)

    def check_published(self) -> "PipelineReport":
        """This report, or RefusedError if the run was not published."""
        if not self.is_published:
            raise RefusedError(str(self), hints=[f"branch `{self.branch}` has what was written"])
        return self

    def __str__(self) -> str:
        parts = [
            ("steps", [str(step) for step in self.steps]),
            ("brought on top of main", list(self.rebased)),
            ("audits", [str(audit) for audit in self.audits]),
            ("main", [str(table) for table in self.published.tables] if self.published else []),
        ]
        lines = [f"pipeline {self.pipeline}, run {self.run_id}: {self._headline()}"]
        for title, texts in parts:
            lines += [f"  {title}", *(f"    {line}" for text in texts for line in text.splitlines())] if texts else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: steps, audits with some of the rows that fail them, and what was published."""
        steps = [
            (step.step, step.what, table, f"{count:+,}" if table else None)
            for step in self.steps
            for table, count in (step.rows or {"": 0}).items()
        ]
        audits = [
            (a.audit, "ok" if a.passed else "FAILED", a.expected, a.found, a.sample[0] if a.sample else None)
            for a in self.audits
        ]
        return html_block(
            f"Pipeline {self.pipeline}, run {self.run_id}",
            self._headline(),
            html_table(("step", "", "table", "rows"), steps) if steps else "",
            html_table(("audit", "", "expected", "found", "a row that fails"), audits) if audits else "",
            "" if self.published is None else self.published._repr_html_(),
        )

    def _headline(self) -> str:
        match self.status:
            case "published":
                return f"published{f' and tagged `{self.tag}`' if self.tag else ''}"
            case "published before":
                return "published before, nothing to do"
            case "audited":
                return f"not published yet; branch `{self.branch}` is ready"
            case "pull request":
                return f"not published yet; pull request {self.pull_request} asks to publish branch `{self.branch}`"
            case "audits failed":
                failed = f"{len(self.failures)} of {len(self.audits)} audits failed"
                return f"not published, {failed}; main is as it was, branch `{self.branch}` stays"
