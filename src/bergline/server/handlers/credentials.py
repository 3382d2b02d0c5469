"""Credentials for the files of a table, on their own or with the table."""

import logging
from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import LoadCredentialsResponse
from bergline.catalog.rest.protocol.endpoints import LOAD_CREDENTIALS
from bergline.catalog.rest.protocol.names import encode_name, encode_namespace
from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.credentials.vending import VendedCredentials, Vending, requests_credentials
from bergline.server.handlers.context import ServerContext, table_directories
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response

_LOG = logging.getLogger("bergline.server")


def load_credentials(context: ServerContext, request: Request) -> Response:
    """Fresh credentials; none where clients reach the files with their own."""
    name = request.table
    pointer = context.catalog.pointer(name)
    if context.vending is None:
        return json_response(LoadCredentialsResponse(()))
    return json_response(
        LoadCredentialsResponse(
            _credentials(context, context.vending, name, _directories_at(context, pointer)).credentials
        )
    )


def wants_credentials(context: ServerContext, request: Request) -> bool:
    """Whether credentials are requested with the response, and vended."""
    return context.vending is not None and requests_credentials(request.headers)


def credentials_for(context: ServerContext, name: TableName, pointer: str) -> VendedCredentials | None:
    """The credentials of the table in a metadata file; None, and a line in the log, for one that can have none."""
    if context.vending is None:
        return None
    try:
        return _credentials(context, context.vending, name, _directories_at(context, pointer))
    except RefusedError as error:
        if context.note_missing_credentials(name):
            _LOG.warning("no credentials for table `%s`: %s", name, error)
        return None


def cached_credentials_for(context: ServerContext, pointer: str) -> VendedCredentials | None:
    """The same if no waiting is needed, or None."""
    directories = context.loads.cached_directories(pointer)
    return context.vending.cached_credentials(directories) if context.vending and directories is not None else None


def suffix_for(context: ServerContext, name: TableName, vended: VendedCredentials | None) -> bytes | None:
    """The end of a load's response with credentials; None without."""
    if vended is None or not vended.credentials:
        return None
    names = {"namespace": encode_namespace(name.namespace, context.settings.separator), "table": encode_name(name.name)}
    return context.loads.suffix_with_credentials(vended, LOAD_CREDENTIALS.url(**names).lstrip("/"))


def with_credentials(
    context: ServerContext, request: Request, name: TableName, response: Response, metadata: TableMetadata
) -> Response:
    """The response for a table that was just created: it exists, so failing to get credentials is no error."""
    if context.vending is None or not wants_credentials(context, request):
        return response
    try:
        vended = _credentials(context, context.vending, name, _directories(context, metadata))
    except BerglineError:
        return response
    # the ETag is that of a load without credentials
    headers = {key: value for key, value in response.headers.items() if key != "etag"}
    body = context.loads.with_suffix(response.body, suffix_for(context, name, vended))
    return Response(response.status, body, headers)


def _credentials(
    context: ServerContext, vending: Vending, name: TableName, locations: Sequence[str]
) -> VendedCredentials:
    """Credentials for a table's directories; RefusedError where they would cover more than this table."""
    known = vending.cached_credentials(locations)
    if known is not None:
        return known
    if vending.is_for_one_table:
        for location in locations:
            context.check_directory(location)
        context.check_apart(name, locations)
    return vending.credentials(locations)


def _directories_at(context: ServerContext, pointer: str) -> tuple[str, ...]:
    return context.loads.directories(pointer, lambda: _directories(context, context.catalog.metadata_at(pointer)))


def _directories(context: ServerContext, metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table that the server itself may touch."""
    allowed = []
    for directory in table_directories(metadata):
        try:
            context.check_location(directory)
        except RefusedError:
            continue
        allowed.append(directory)
    return tuple(allowed)
