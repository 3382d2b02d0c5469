"""Answers of loads in the encoding that a client takes; all encodings of one answer have the same weak `ETag`.

Packing and unpacking take longer than sending to a client on the same machine: those get the bytes as they are.
"""

from bergline.server.answer import Answer
from bergline.server.call import Call
from bergline.server.encodings import takes_gzip
from bergline.server.kept_answers import KeptAnswer
from bergline.server.served import Served

_NOT_MODIFIED = 304
_VARY = {"vary": "Accept-Encoding"}


def load_answer(
    served: Served, call: Call, kept: KeptAnswer, *, tag: str | None = None, end: bytes | None = None
) -> Answer:
    """What was kept, in gzip if it is long and the client takes that; with another end where one is given."""
    headers = _VARY if tag is None else _VARY | {"etag": tag}
    if _is_sent_packed(call, kept):
        return Answer(200, served.loads.answers.gzip(kept, end), headers | {"content-encoding": "gzip"})
    return Answer(200, kept.plain(end), headers)


def waits_for_packing(call: Call, kept: KeptAnswer) -> bool:
    """Whether what was kept must be packed first, which is no work for the event loop."""
    return kept.packed is None and _is_sent_packed(call, kept)


def not_modified(tag: str) -> Answer:
    """That the client has it already, in whichever encoding."""
    return Answer(_NOT_MODIFIED, headers=_VARY | {"etag": tag})


def _is_sent_packed(call: Call, kept: KeptAnswer) -> bool:
    return kept.is_long and not call.is_near and takes_gzip(call.headers.get("accept-encoding"))
