"""A run that ends in a pull request: its audits are the checks, and the same run has one pull request."""

from collections.abc import Mapping, Sequence
from typing import Final

from bergline.errors import RefusedError
from bergline.governance.pull_requests.model import PullRequestState
from bergline.governance.pull_requests.pull_requests import PullRequest
from bergline.governance.reviews.model import CheckState
from bergline.spark.pipeline.audits_run import AuditResult
from bergline.spark.pipeline.run import Run

COMMIT: Final = "commit"
PULL_REQUEST: Final = "pull request"


def propose_run(
    run: Run, target: str, audited: Mapping[str, int], results: Sequence[AuditResult], *, may_open: bool
) -> int | None:
    """The number of the run's pull request into a branch, with the audits as checks of the heads that they saw.

    None if there is none and none may be opened; RefusedError if it was closed.
    """
    request = _of_run(run, target, audited)
    if request is None:
        if not may_open:
            return None
        title = f"Pipeline {run.pipeline}, run {run.run_id}"[:255]
        request = run.lake.pull_requests.open(run.branch, into=target, title=title, tables=list(audited))
    elif request.state is PullRequestState.CLOSED:
        raise RefusedError(
            f"cannot propose pipeline {run.pipeline}, run {run.run_id}: its pull request {request.number} was closed",
            hints=["reopen it, or give the run another id"],
        )
    for result in results:
        state = CheckState.PASSED if result.passed else CheckState.FAILED
        request.report_check(result.audit, state, detail=result.found, heads=audited)
    return request.number


def _of_run(run: Run, target: str, audited: Mapping[str, int]) -> PullRequest | None:
    """The newest pull request of the run's branch and tables that was not published."""
    return next(
        (
            request
            for request in run.lake.pull_requests
            if (request.record.branch, request.record.target) == (run.branch, target)
            and audited.keys() <= {str(table.name) for table in request.record.tables}
            and request.state is not PullRequestState.PUBLISHED
        ),
        None,
    )
