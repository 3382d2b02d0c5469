"""Branches of the lake over HTTP."""

from bergline.catalog.rest.protocol.names import decode_name
from bergline.errors import RefusedError
from bergline.governance.lake_branches.granted import GrantedLakeBranches
from bergline.governance.lake_branches.model import NewLakeBranch, missing_lake_branch
from bergline.governance.lake_branches.protocol import ListLakeBranchesResponse, LoadLakeBranchResponse
from bergline.governance.lake_branches.store import SqlLakeBranches
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response


def list_lake_branches(context: ServerContext, request: Request) -> Response:
    """All branches, by name."""
    return json_response(ListLakeBranchesResponse(tuple(_kept(context, request).all())))


def create_lake_branch(context: ServerContext, request: Request) -> Response:
    """A new branch of the caller."""
    body: NewLakeBranch = request.read()
    return json_response(_kept(context, request).create(body))


def load_lake_branch(context: ServerContext, request: Request) -> Response:
    """One branch, and whether the caller may drop it."""
    kept, name = _kept(context, request), decode_name(request.names["branch"])
    found, refused = kept.find(name), None
    if found is None:
        raise missing_lake_branch(name, kept)
    try:
        kept.check_may_drop(name)
    except RefusedError as error:
        refused = str(error)
    return json_response(LoadLakeBranchResponse(found, refused))


def drop_lake_branch(context: ServerContext, request: Request) -> Response:
    """Forget a branch; its refs in tables are dropped by a commit."""
    _kept(context, request).remove(decode_name(request.names["branch"]))
    return NO_CONTENT


def _kept(context: ServerContext, request: Request) -> GrantedLakeBranches:
    kept = SqlLakeBranches(context.catalog, context.store)
    return GrantedLakeBranches(kept, context.access, request.principal, request.groups)
