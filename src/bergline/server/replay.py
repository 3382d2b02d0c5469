"""The answer of a request that was answered before, given again; a table may have moved on since."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.records import AnsweredRequest
from bergline.catalog.rest.bodies import LoadTableAnswer
from bergline.errors import NotFoundError
from bergline.server.answer import Answer
from bergline.server.cached_loads import entity_tag
from bergline.server.call import Call
from bergline.server.handlers_credentials import made_with_keys, wants_keys
from bergline.server.refusal import Refusal
from bergline.server.served import Served

_BOUND = ("principal", "operation", "resource", "fingerprint")


def replay(served: Served, call: Call, found: AnsweredRequest, asked: AnsweredRequest) -> Answer:
    """The same answer again; Refusal where the key belongs to another request."""
    if any(getattr(found, name) != getattr(asked, name) for name in _BOUND):
        raise Refusal(
            422, "UnprocessableEntityException", "expected a new Idempotency-Key, found one of another request"
        )
    if found.body is not None:
        return Answer(found.status, found.body.encode())
    if found.metadata_location is None or call.endpoint.answer is None:
        return Answer(found.status)
    return _load(served, call, found.metadata_location)


def _load(served: Served, call: Call, location: str) -> Answer:
    if call.kind == "view":
        return Answer(200, served.loads.view(location, lambda: served.catalog.view_at(location)).body)
    try:
        body = served.loads.table(location, "all", lambda: served.catalog.metadata_at(location)).body
    except NotFoundError:  # that version is gone: the newer one will do
        location = served.catalog.pointer(call.table)
        body = served.loads.table(location, "all", lambda: served.catalog.metadata_at(location)).body
    answer = Answer(200, body, {"etag": entity_tag(location)})
    if call.endpoint.answer is not LoadTableAnswer or not wants_keys(served, call):
        return answer
    name = TableName(call.namespace, call.read().name)
    return made_with_keys(served, call, name, answer, served.catalog.metadata_at(location))
