"""The scope of a session's writes while a pipeline's step or audits run: one branch of some tables, nothing else."""

from collections.abc import Mapping
from typing import Protocol

import msgspec
from pyspark.sql import SparkSession

from bergline.errors import RefusedError
from bergline.table.table import Table

PIPELINE_NAME = "bergline.pipeline"
RUN_ID = "bergline.run-id"
STEP = "bergline.step"


class WriteScope(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's writes are for. Its reads take the branch, too."""

    pipeline: str
    run_id: str
    step: str | None
    """None for audits, which must not write."""
    branch: str
    tables: Mapping[str, str]
    """The names of the tables that may be written, by their UUIDs."""
    wap_settings: Mapping[str, str | None] = {}
    """What the session's WAP settings were when it began: only those changed since count."""
    has_ended: bool = False
    """True for the clones of a session that outlive the step they were created in."""

    @property
    def summary(self) -> dict[str, str]:
        """The entries for the summary of every snapshot."""
        entries = {PIPELINE_NAME: self.pipeline, RUN_ID: self.run_id}
        return entries if self.step is None else entries | {STEP: self.step}

    def check_write(self, table: Table, branch: str, wap_id: str | None) -> None:
        """RefusedError unless a write goes to the step's own branch of one of the pipeline's tables."""
        if self.step is None:
            raise RefusedError(f"cannot write to `{table.name}` in an audit: what is audited is what is published")
        if self.has_ended:
            raise RefusedError(
                f"cannot write to `{table.name}` in a session that was cloned in {self}, which has ended",
                hints=["wait in the step for the streams that it starts"],
            )
        if table.metadata.table_uuid not in self.tables:
            raise RefusedError(
                f"cannot write to `{table.name}` in a pipeline of {', '.join(self.tables.values())}",
                hints=["add it to the pipeline's `tables`"],
            )
        if branch != self.branch or wap_id is not None:
            raise RefusedError(f"cannot write to `{branch}` in a pipeline, whose branch is `{self.branch}`")

    def __str__(self) -> str:
        part = "the audits" if self.step is None else f"step `{self.step}`"
        return f"{part} of pipeline {self.pipeline}, run {self.run_id}"


class WritingSession(Protocol):
    """An attached session, as writes see it."""

    @property
    def spark(self) -> SparkSession:
        """Spark's own session."""

    @property
    def scope(self) -> WriteScope | None:
        """The scope of writes that start now; None outside of pipelines."""
