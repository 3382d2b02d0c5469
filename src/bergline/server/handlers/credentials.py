"""Credentials for the files of a table, by themselves or with the table."""

import logging
from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import LoadCredentialsResponse
from bergline.catalog.rest.protocol.endpoints import LOAD_CREDENTIALS
from bergline.catalog.rest.protocol.names import encode_name, encode_namespace
from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.credentials.vending import Keys, Vending, asks_for_keys
from bergline.server.handlers.context import ServerContext, table_directories
from bergline.server.http.request import Request
from bergline.server.http.response import Response, answer_json

_LOG = logging.getLogger("bergline.server")


def load_credentials(context: ServerContext, call: Request) -> Response:
    """Fresh credentials; none where clients reach the files with their own."""
    name = call.table
    pointer = context.catalog.pointer(name)
    if context.vending is None:
        return answer_json(LoadCredentialsResponse(()))
    return answer_json(
        LoadCredentialsResponse(_keys(context, context.vending, name, _places_at(context, pointer)).credentials)
    )


def wants_keys(context: ServerContext, call: Request) -> bool:
    """Whether credentials are asked for with an answer, and handed out."""
    return context.vending is not None and asks_for_keys(call.headers)


def keys_for(context: ServerContext, name: TableName, pointer: str) -> Keys | None:
    """The credentials of the table in a metadata file; None, and a line in the log, for one that can have none."""
    if context.vending is None:
        return None
    try:
        return _keys(context, context.vending, name, _places_at(context, pointer))
    except RefusedError as error:
        if context.note_without_keys(name):
            _LOG.warning("no credentials for table `%s`: %s", name, error)
        return None


def known_keys_for(context: ServerContext, pointer: str) -> Keys | None:
    """The same if it takes no waiting."""
    places = context.loads.known_places(pointer)
    return context.vending.known_keys(places) if context.vending and places is not None else None


def end_for(context: ServerContext, name: TableName, keys: Keys | None) -> bytes | None:
    """How the answer of a load ends where there are credentials; None where it ends as it is kept."""
    if keys is None or not keys.credentials:
        return None
    names = {"namespace": encode_namespace(name.namespace, context.settings.separator), "table": encode_name(name.name)}
    return context.loads.end_with_keys(keys, LOAD_CREDENTIALS.url(**names).lstrip("/"))


def made_with_keys(
    context: ServerContext, call: Request, name: TableName, answer: Response, metadata: TableMetadata
) -> Response:
    """The answer for a table that was made: it is there, so it is answered even if credentials are not to be had."""
    if context.vending is None or not wants_keys(context, call):
        return answer
    try:
        keys = _keys(context, context.vending, name, _places(context, metadata))
    except BerglineError:
        return answer
    headers = {key: value for key, value in answer.headers.items() if key != "etag"}  # that of a load without keys
    return Response(answer.status, context.loads.with_end(answer.body, end_for(context, name, keys)), headers)


def _keys(context: ServerContext, vending: Vending, name: TableName, places: Sequence[str]) -> Keys:
    """Credentials for a table's directories; RefusedError where they would open more than this table."""
    known = vending.known_keys(places)
    if known is not None:
        return known
    if vending.is_for_one_table:
        for place in places:
            context.check_directory(place)
        context.check_apart(name, places)
    return vending.keys(places)


def _places_at(context: ServerContext, pointer: str) -> tuple[str, ...]:
    return context.loads.places(pointer, lambda: _places(context, context.catalog.metadata_at(pointer)))


def _places(context: ServerContext, metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table that the server itself may touch."""
    allowed = []
    for place in table_directories(metadata):
        try:
            context.check_place(place)
        except RefusedError:
            continue
        allowed.append(place)
    return tuple(allowed)
