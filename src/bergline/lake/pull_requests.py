"""The pull requests of a lake, which are published by its own commits to several tables."""

import functools

from bergline.errors import UnsupportedError
from bergline.governance.governance import governance_of
from bergline.governance.pull_requests.model import PullRequestCalls
from bergline.governance.pull_requests.pull_requests import LakePullRequests
from bergline.lake.handle import LakeHandle
from bergline.lake.references import publish


def pull_requests_of(lake: LakeHandle) -> LakePullRequests:
    """The value of `lake.pull_requests`."""
    return LakePullRequests(pull_request_calls(lake))


def pull_request_calls(lake: LakeHandle) -> PullRequestCalls:
    """The calls for pull requests of the catalog; UnsupportedError if it has none."""
    calls = governance_of(lake.catalog).pull_requests(functools.partial(publish, lake), lake.timing.clock_ms)
    if calls is None:
        raise UnsupportedError(
            "expected a catalog with pull requests, found another kind",
            hints=["catalogs in SQLite and PostgreSQL and a `bergline serve` have them"],
        )
    return calls
