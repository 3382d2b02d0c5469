"""The steps of a run: each writes to a branch of its own, which is published to the run's branch in one commit.

So a step is in the run's branch whole or not at all, whenever a process dies and however many run at once.
"""

import re
import uuid
from collections.abc import Mapping

import msgspec

from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.refs import check_ref_name
from bergline.spark.pipeline.report import StepOutcome, StepResult
from bergline.spark.pipeline.run import History, Run, Step, load_tables
from bergline.table.table import Table


class RunSteps:
    """Writes the steps of one run."""

    def __init__(self, run: Run, steps: Mapping[str, Step]) -> None:
        self._run = run
        self._steps = steps

    def check_names(self) -> None:
        """InvalidInputError if a step's branch would have no valid name."""
        check_ref_name(self._branch(len(self._steps) - 1, "0" * 8))

    def write(self) -> tuple[StepResult, ...]:
        """All steps; those up to the last one that the branch has are not run again."""
        done = self._count_done(self._run, load_tables(self._run))
        results = []
        for place, name in enumerate(self._steps):
            what: StepOutcome = "written" if place >= done and self._write_step(place, name) else "written before"
            results.append((name, what))
        written = History(self._run, load_tables(self._run)).steps(self._run.branch)
        return tuple(
            StepResult(name, what, written[name]) if name in written else StepResult(name, "wrote nothing")
            for name, what in results
        )

    def drop_leftovers(self, tables: Mapping[str, Table]) -> None:
        """Drop the steps' branches that dead processes left behind, once the run is published."""
        left = re.compile(re.escape(self._run.branch) + r"\.\d+-[0-9a-f]{8}")
        for branch in {ref for table in tables.values() for ref in table.refs.branches if left.fullmatch(ref)}:
            self._discard(branch)

    def _count_done(self, run: Run, tables: Mapping[str, Table]) -> int:
        known = History(run, tables).steps(run.branch)
        return max((place + 1 for place, name in enumerate(self._steps) if name in known), default=0)

    def _write_step(self, place: int, name: str) -> bool:
        """Whether the step was written by this run, not by another one of the same id that came first."""
        run = self._run
        own = msgspec.structs.replace(run, branch=self._branch(place, uuid.uuid4().hex[:8]), step=name)
        run.lake.branch(own.branch, dict.fromkeys(run.tables, run.branch))
        try:
            # read from the step's own branch: any later commit to the run's branch makes the publish fail
            before = load_tables(run)
            if self._count_done(own, before) > place:
                self._discard(own.branch)
                return False
            self._fill(own, before)
        except BaseException as error:
            error.add_note(
                f"in step `{name}` of pipeline {run.pipeline}, run {run.run_id}: nothing of the step is kept"
            )
            self._discard(own.branch)
            raise
        try:
            run.lake.publish(own.branch, into=run.branch, tables=run.tables)
        except BerglineError:
            self._discard(own.branch)
            if self._count_done(run, load_tables(run)) <= place:
                raise
            return False
        return True

    def _fill(self, own: Run, before: Mapping[str, Table]) -> None:
        """Run a step, and check that its snapshots can be recognized as the step's when the run is continued."""
        with own.session(before):
            step = self._steps[own.step or ""]
            own.sql(step) if isinstance(step, str) else step(own)
        after = load_tables(own)
        moved = [n for n in own.tables if after[n].metadata.head(own.branch) != before[n].metadata.head(own.branch)]
        if moved and own.step not in History(own, after).steps(own.branch):
            raise RefusedError(
                f"cannot take step `{own.step}`: it wrote to `{moved[0]}` without the run's mark",
                hints=["write through the session, or with `run.append`"],
            )

    def _discard(self, branch: str) -> None:
        """Drop a step's branch if that is possible: the error that led here is more important."""
        try:
            self._run.lake.drop_ref(branch, tables=self._run.tables, if_exists=True)
        except BerglineError:
            return

    def _branch(self, place: int, own: str) -> str:
        return f"{self._run.branch}.{place + 1}-{own}"
