"""Credentials for the files of a table, by themselves or with the table."""

import logging
from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import CredentialsAnswer
from bergline.catalog.rest.protocol.endpoints import LOAD_CREDENTIALS
from bergline.catalog.rest.protocol.names import encode_name, encode_namespace
from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.credentials.vending import Keys, Vending, asks_for_keys
from bergline.server.handlers.context import Served, table_directories
from bergline.server.http.request import Call
from bergline.server.http.response import Answer, answer_json

_LOG = logging.getLogger("bergline.server")


def load_credentials(served: Served, call: Call) -> Answer:
    """Fresh credentials; none where clients reach the files with their own."""
    name = call.table
    pointer = served.catalog.pointer(name)
    if served.vending is None:
        return answer_json(CredentialsAnswer(()))
    return answer_json(CredentialsAnswer(_keys(served, served.vending, name, _places_at(served, pointer)).credentials))


def wants_keys(served: Served, call: Call) -> bool:
    """Whether credentials are asked for with an answer, and handed out."""
    return served.vending is not None and asks_for_keys(call.headers)


def keys_for(served: Served, name: TableName, pointer: str) -> Keys | None:
    """The credentials of the table in a metadata file; None, and a line in the log, for one that can have none."""
    if served.vending is None:
        return None
    try:
        return _keys(served, served.vending, name, _places_at(served, pointer))
    except RefusedError as error:
        if served.note_without_keys(name):
            _LOG.warning("no credentials for table `%s`: %s", name, error)
        return None


def known_keys_for(served: Served, pointer: str) -> Keys | None:
    """The same if it takes no waiting."""
    places = served.loads.known_places(pointer)
    return served.vending.known_keys(places) if served.vending and places is not None else None


def end_for(served: Served, name: TableName, keys: Keys | None) -> bytes | None:
    """How the answer of a load ends where there are credentials; None where it ends as it is kept."""
    if keys is None or not keys.credentials:
        return None
    names = {"namespace": encode_namespace(name.namespace, served.settings.separator), "table": encode_name(name.name)}
    return served.loads.end_with_keys(keys, LOAD_CREDENTIALS.url(**names).lstrip("/"))


def made_with_keys(served: Served, call: Call, name: TableName, answer: Answer, metadata: TableMetadata) -> Answer:
    """The answer for a table that was made: it is there, so it is answered even if credentials are not to be had."""
    if served.vending is None or not wants_keys(served, call):
        return answer
    try:
        keys = _keys(served, served.vending, name, _places(served, metadata))
    except BerglineError:
        return answer
    headers = {key: value for key, value in answer.headers.items() if key != "etag"}  # that of a load without keys
    return Answer(answer.status, served.loads.with_end(answer.body, end_for(served, name, keys)), headers)


def _keys(served: Served, vending: Vending, name: TableName, places: Sequence[str]) -> Keys:
    """Credentials for a table's directories; RefusedError where they would open more than this table."""
    known = vending.known_keys(places)
    if known is not None:
        return known
    if vending.is_for_one_table:
        for place in places:
            served.check_directory(place)
        served.check_apart(name, places)
    return vending.keys(places)


def _places_at(served: Served, pointer: str) -> tuple[str, ...]:
    return served.loads.places(pointer, lambda: _places(served, served.catalog.metadata_at(pointer)))


def _places(served: Served, metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table that the server itself may touch."""
    allowed = []
    for place in table_directories(metadata):
        try:
            served.check_place(place)
        except RefusedError:
            continue
        allowed.append(place)
    return tuple(allowed)
