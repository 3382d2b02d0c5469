"""Sign requests to S3 for clients without keys: on the files of one table, within what the caller may do."""

import time

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.s3_signing import RemoteSignRequest
from bergline.errors import NotFoundError, UnsupportedError
from bergline.governance.audit.store import AuditKind
from bergline.governance.grants.file_actions import FileActions
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import table_of
from bergline.server.context.context import ServerContext
from bergline.server.credentials.signable import check_signable
from bergline.server.handlers.credentials import directories_at
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response


def sign_request(context: ServerContext, request: Request) -> Response:
    """The signature of one request; a client may keep that of a read, if the response says so."""
    signer = context.credentials.signer
    if signer is None:
        raise UnsupportedError(
            "this server does not sign requests", hints=["start it with `bergline serve --remote-signing`"]
        )
    body: RemoteSignRequest = request.read()
    name = request.table
    directories, actions = _bounds(context, request, name)
    context.claims.check_own(name, directories)
    signable = check_signable(body, signer.endpoint, directories, actions)
    context.request_audit.note(AuditKind.SIGNATURE, request, body.method)
    kept = "private" if signable.is_reusable else "no-cache"
    return json_response(signer.sign(signable), headers={"cache-control": kept})


def _bounds(context: ServerContext, request: Request, name: TableName) -> tuple[tuple[str, ...], FileActions]:
    """The directories of a table, or of one that the caller has staged, and what the caller may do there."""
    try:
        pointer = context.catalog.pointer(name)
    except NotFoundError:
        staged_id, now = request.query.get("staged", ""), time.time_ns() // 1_000_000
        tables = context.credentials.staged_tables
        staged = tables.directories(staged_id, name, request.principal, now) if staged_id else None
        if staged is None:
            raise
        return staged, FileActions.DELETE
    context.access.check(request.principal, request.groups, Privilege.READ, table_of(name))  # also of one once staged
    return directories_at(context, pointer), context.credentials.actions(request, name)
