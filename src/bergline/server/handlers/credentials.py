"""Credentials for the files of a table, on their own or with the table, or the settings of remote signing instead."""

import logging
import time
from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import LoadCredentialsResponse
from bergline.catalog.rest.protocol.endpoints import LOAD_CREDENTIALS, SIGN_REQUEST
from bergline.catalog.rest.protocol.names import encode_name, encode_namespace
from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.governance.audit.store import AuditKind
from bergline.governance.events.model import table_subject
from bergline.governance.grants.file_actions import FileActions
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.access.directory_claims import table_directories
from bergline.server.context.context import ServerContext
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import VendedCredentials, Vending, fingerprint_of, requests_credentials
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response

_LOG = logging.getLogger("bergline.server")
_SIGNING = {
    "s3.remote-signing-enabled": "true",
    "s3.signer": "S3V4RestSigner",
    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",  # PyIceberg's other one cannot be told to ask for signatures
}
_ENDPOINT_NAMES = ("s3.signer.endpoint", "signer.endpoint")  # of Java before and since 1.11; PyIceberg has the first
STAGED_MS = 24 * 3600 * 1000
"""How long requests are signed for the files of a table that was staged and not created, and its directories kept."""


def load_credentials(context: ServerContext, request: Request) -> Response:
    """Fresh credentials; none where clients reach the files with their own."""
    name = request.table
    pointer = context.catalog.pointer(name)
    vending = context.credentials.vending
    if vending is None:
        return json_response(LoadCredentialsResponse(()))
    actions = context.credentials.actions(request, name)
    directories = directories_at(context, pointer)
    vended = _credentials(context, vending, name, directories, actions, principal=request.principal)
    return json_response(LoadCredentialsResponse(note_vended(context, request, name, vended).credentials))


def credentials_for(
    context: ServerContext, request: Request, name: TableName, pointer: str
) -> VendedCredentials | None:
    """What a client gets for the table in a metadata file; None, and a line in the log, for one that can have none."""
    actions = context.credentials.actions(request, name)
    try:
        return _delegated(context, request, name, directories_at(context, pointer), actions)
    except RefusedError as error:
        if context.credentials.note_missing(name):
            _LOG.warning("no credentials for table `%s`: %s", name, error)
        return None


def cached_credentials_for(
    context: ServerContext, request: Request, name: TableName, pointer: str
) -> VendedCredentials | None:
    """The same if no waiting is needed, or None."""
    directories = context.loads.cached_directories(pointer)
    if directories is None:
        return None
    given = context.credentials
    signer = given.signer_for(request)
    if given.vending is not None and requests_credentials(request.headers):
        actions = given.file_access.actions_certainly(request.principal, request.groups, name)
        if actions is None:
            return None
        if (vending := given.vending_for(request, actions)) is not None:
            known = vending.cached_credentials(directories, actions, principal=request.principal)
            if known is None or known.credentials or signer is None:
                return known
    if signer is not None and context.claims.owns_certainly(name, directories):
        return _signer_settings(context, signer, name, directories)
    return None


def suffix_for(context: ServerContext, name: TableName, vended: VendedCredentials | None) -> bytes | None:
    """The end of a load's response with credentials; None without."""
    if vended is None or not (vended.credentials or vended.config):
        return None
    names = {"namespace": encode_namespace(name.namespace, context.settings.separator), "table": encode_name(name.name)}
    return context.loads.suffix_with_credentials(vended, LOAD_CREDENTIALS.url(**names).lstrip("/"))


def with_credentials(
    context: ServerContext,
    request: Request,
    name: TableName,
    response: Response,
    metadata: TableMetadata,
    *,
    is_staged: bool = False,
) -> Response:
    """The response for a table that was just created: it exists, so failing to get credentials is no error."""
    if not context.credentials.are_wanted(request):
        return response
    actions = context.credentials.actions(request, name)
    if is_staged:  # nobody else has files there
        actions = max(actions, FileActions.DELETE)
    try:
        vended = _delegated(context, request, name, _directories(context, metadata), actions, is_staged=is_staged)
    except BerglineError:
        return response
    # the ETag is that of a load without credentials
    headers = {key: value for key, value in response.headers.items() if key != "etag"}
    body = context.loads.with_suffix(response.body, suffix_for(context, name, vended))
    return Response(response.status, body, headers)


def _delegated(
    context: ServerContext,
    request: Request,
    name: TableName,
    directories: tuple[str, ...],
    actions: FileActions,
    *,
    is_staged: bool = False,
) -> VendedCredentials:
    """Keys where they are requested and can be had, else the settings of remote signing."""
    given = context.credentials
    signer = given.signer_for(request)
    if (vending := given.vending_for(request, actions)) is not None:
        try:
            vended = _credentials(context, vending, name, directories, actions, principal=request.principal)
        except RefusedError:
            if signer is None:
                raise
        else:
            if vended.credentials:
                return note_vended(context, request, name, vended)
    if signer is None:
        return VendedCredentials((), "")
    context.claims.check_own(name, directories)
    staged = None
    if is_staged:
        now = time.time_ns() // 1_000_000
        staged = given.staged_tables.add(name, request.principal, directories, now, now + STAGED_MS)
    return _signer_settings(context, signer, name, directories, staged)


def _credentials(
    context: ServerContext,
    vending: Vending,
    name: TableName,
    locations: Sequence[str],
    actions: FileActions,
    *,
    principal: str,
) -> VendedCredentials:
    """Credentials for a table's directories; RefusedError where they would cover more than this table."""
    known = vending.cached_credentials(locations, actions, principal=principal)
    if known is not None:
        return known
    if vending.is_for_one_table:
        for location in locations:
            context.locations.check_directory(location)
        context.claims.check_apart(name, locations)
    return vending.credentials(locations, actions, principal=principal)


def note_vended(
    context: ServerContext, request: Request, name: TableName, vended: VendedCredentials
) -> VendedCredentials:
    """What is vended, with a note in the audit of requests if there are credentials in it."""
    if vended.credentials:
        context.request_audit.note(AuditKind.CREDENTIALS, request, resource=table_subject(name))
    return vended


def directories_at(context: ServerContext, pointer: str) -> tuple[str, ...]:
    """The directories of the table in a metadata file."""
    return context.loads.directories(
        pointer, lambda: _directories(context, context.catalog.tables.metadata_at(pointer))
    )


def _directories(context: ServerContext, metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table that the server itself may touch."""
    allowed = []
    for directory in table_directories(metadata):
        try:
            context.locations.check_location(directory)
        except RefusedError:
            continue
        allowed.append(directory)
    return tuple(allowed)


def _signer_settings(
    context: ServerContext, signer: S3Signer, name: TableName, directories: Sequence[str], staged: str | None = None
) -> VendedCredentials:
    """What clients need to have their requests for files on S3 signed, without any keys; nothing for other stores."""
    if not any(scheme_of(directory) in S3_SCHEMES for directory in directories):
        return VendedCredentials((), "")
    names = {"namespace": encode_namespace(name.namespace, context.settings.separator), "table": encode_name(name.name)}
    endpoint = SIGN_REQUEST.url(**names).lstrip("/") + (f"?staged={staged}" if staged else "")
    config = signer.storage | _SIGNING | dict.fromkeys(_ENDPOINT_NAMES, endpoint)
    return VendedCredentials((), fingerprint_of("signing", endpoint), config=config)
