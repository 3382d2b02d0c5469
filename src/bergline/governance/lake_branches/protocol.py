"""Branches of the lake over REST: the bodies of responses, and the endpoints."""

import msgspec

from bergline.catalog.rest.protocol.endpoints import OWN, Endpoint, endpoints_in
from bergline.governance.lake_branches.model import LakeBranch, NewLakeBranch


class ListLakeBranchesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Branches of the lake, by name."""

    branches: tuple[LakeBranch, ...]


class LoadLakeBranchResponse(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A branch of the lake."""

    branch: LakeBranch
    drop_refused: str | None = None
    """Why the caller may not drop it, if so."""


_BRANCHES = f"{OWN}/lake-branches"
_BRANCH = f"{_BRANCHES}/{{branch}}"
LIST_LAKE_BRANCHES = Endpoint("list_lake_branches", "GET", _BRANCHES, response=ListLakeBranchesResponse)
CREATE_LAKE_BRANCH = Endpoint("create_lake_branch", "POST", _BRANCHES, NewLakeBranch, LakeBranch, takes_key=True)
LOAD_LAKE_BRANCH = Endpoint("load_lake_branch", "GET", _BRANCH, response=LoadLakeBranchResponse)
DROP_LAKE_BRANCH = Endpoint("drop_lake_branch", "DELETE", _BRANCH, status=204, takes_key=True)

LAKE_BRANCH_ENDPOINTS = endpoints_in(vars())
