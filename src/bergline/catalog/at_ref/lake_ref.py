"""Refs of the lake: what `lake@staging` names, and how it stands in addresses."""

import datetime as dt
import re
from enum import StrEnum
from typing import Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.format.metadata.snapshot_log import EPOCH

LAKE_MAIN: Final = "lake_main"
"""The name under which the real `main` is seen at another ref."""
AT: Final = "@"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]")
_IN_PATH = re.compile(r"[A-Za-z0-9_.~-]+")
_ESCAPE = "~"


class LakeRefKind(StrEnum):
    """What a ref of the lake is."""

    BRANCH = "branch"
    TAG = "tag"
    TIME = "time"


_KINDS = {kind.value: kind for kind in LakeRefKind}


class LakeRef(msgspec.Struct, frozen=True):
    """A branch or tag of many tables under one name, or a time at which all tables are seen."""

    kind: LakeRefKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind is LakeRefKind.TIME else f"{self.kind} `{self.name}`"

    @property
    def time_ms(self) -> int:
        """The time, in milliseconds since 1970."""
        return (dt.datetime.fromisoformat(self.name) - EPOCH) // dt.timedelta(milliseconds=1)

    @property
    def in_path(self) -> str:
        """The ref as the prefix of paths: letters, digits and `_.-~` alone, which no client encodes."""
        return f"{self.kind}.{_escaped(self.name)}"


def parse_time(text: str) -> LakeRef | None:
    """The ref for a time with a time zone; None for a text that is none."""
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"expected a time such as 2026-11-01T00:00:00Z, found `{text}`") from None
    return LakeRef(LakeRefKind.TIME, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def parse_in_path(segment: str) -> LakeRef | None:
    """The ref that the prefix of a path names; None if it names none."""
    found, dot, escaped = segment.partition(".")
    kind = _KINDS.get(found) if dot else None
    if kind is None:
        return None
    name = _unescaped(escaped)
    if kind is LakeRefKind.TIME:
        time = parse_time(name)
        if time is None:
            raise _not_given_out(segment)
        return time
    check_ref_name(name)
    if name == MAIN:
        if kind is LakeRefKind.TAG:
            raise _not_given_out(segment)
        return None
    return LakeRef(kind, name)


def split_warehouse(warehouse: str) -> tuple[str, str | None]:
    """A warehouse, and the ref behind its `@`, if there is one; a location with an `@` in a directory has none."""
    name, at, ref = warehouse.partition(AT)
    if not at or "/" in name or "\\" in name:
        return warehouse, None
    if not ref:
        raise InvalidInputError(f"expected a branch, a tag or a time after `{AT}`, found none in `{warehouse}`")
    return name, ref


def _escaped(name: str) -> str:
    return "".join(
        chr(byte) if _PLAIN.match(bytes((byte,))) else f"{_ESCAPE}{byte:02X}" for byte in name.encode(errors="strict")
    )


def _unescaped(text: str) -> str:
    if not _IN_PATH.fullmatch(text):  # such as one that was encoded twice, which would name another branch
        raise _not_given_out(text)
    first, *others = text.split(_ESCAPE)
    try:
        return b"".join((first.encode(), *(bytes.fromhex(o[:2]) + o[2:].encode() for o in others))).decode()
    except ValueError:
        raise _not_given_out(text) from None


def _not_given_out(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"expected a ref of the lake in the path, found `{text[:200]}`",
        hints=["ask for it: `GET /v1/config?warehouse=lake@staging` answers with the prefix of paths"],
    )
