"""Parts of a plan that clients fetch later: each is self-contained, so that the server keeps no state.

It holds the client's request and the positions of manifests: a forged one reveals no more than a plan does.
"""

import base64
import binascii
import zlib
from typing import Any, TypeVar

import msgspec

from bergline.errors import FormatError, NotFoundError
from bergline.format.encoding.integers import Int, Long
from bergline.format.encoding.wire import decode_json, encode_json

_MAX_BYTES = 8 * 1024 * 1024
_SHOWN = 40

_Token = TypeVar("_Token", bound=msgspec.Struct)


class PlanTask(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Files of the plan of one state of a table: those of a run of its manifests, some of which were named before."""

    table: str
    """The table's uuid."""
    schema: Int
    snapshot: Long | None = None
    """None for a table without one."""
    after: Long | None = None
    """Where a plan of appends begins."""
    filter: Any = None
    case_sensitive: bool = True
    select: tuple[str, ...] = ()
    """The columns that are read; all of them if none is named."""
    statistics: tuple[str, ...] = ()
    manifests: Int = 0
    """How many the whole plan has; the places count only while that holds."""
    first: Int = 0
    stop: Int = 0
    """The first manifest of the run, and the one behind its last."""
    part: Int = 0
    """How many manifests at its beginning were planned together before."""
    skip: Long = 0
    """How many files of that part were named before."""


def render_task(task: PlanTask) -> str:
    """The token for clients."""
    return packed(task)


def parse_task(text: str) -> PlanTask:
    """A token that a client sends back; NotFoundError for any other text."""
    task = unpacked(text, PlanTask)
    if task is None:
        raise unknown_task(text)
    return task


def unknown_task(text: str) -> NotFoundError:
    """The error for a task that does not exist, or no longer."""
    shown = shortened(text)
    return NotFoundError(
        f"no plan task `{shown}` for this table", kind="plan task", name=shown, hints=["plan the scan again"]
    )


def packed(value: msgspec.Struct) -> str:
    """A value as text that fits a path."""
    return base64.urlsafe_b64encode(zlib.compress(encode_json(value))).decode()


def unpacked(text: str, kind: type[_Token], most_bytes: int = _MAX_BYTES) -> _Token | None:
    """The value in a text; None for any other text, and for one that holds more bytes."""
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.urlsafe_b64decode(text.encode()), most_bytes)
        return decode_json(data, kind, "a plan") if unpacking.eof else None
    except (binascii.Error, zlib.error, FormatError, ValueError):
        return None


def shortened(text: str) -> str:
    """The beginning of a token, for errors."""
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text
