"""The options of a streaming read."""

from collections.abc import Callable, Mapping

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.refs import check_ref_name
from bergline.table.scans.stream_scan import SKIP_DELETES, SKIP_OVERWRITES, StreamRules

_BRANCH = "branch"


class StreamOptions(msgspec.Struct, frozen=True):
    """Which branch is read, and by which rules."""

    branch: str | None = None
    rules: StreamRules = StreamRules()


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options, whose names are in lower case; what is not understood is refused rather than ignored."""
    branch = given.get(_BRANCH)
    if branch is not None:
        check_ref_name(branch)
    if unknown := [key for key in given if key not in STREAM_OPTIONS]:
        raise UnsupportedError(f"expected one of the options {', '.join(STREAM_OPTIONS)}, found `{unknown[0]}`")
    rules = {_RULES[key][0]: _RULES[key][1](key, text) for key, text in given.items() if key in _RULES}
    return StreamOptions(branch, msgspec.convert(rules, StreamRules))


def _milliseconds(key: str, text: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise InvalidInputError(f"expected milliseconds since 1970 for option `{key}`, found `{text}`")
    return int(text)


def _count(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInputError(f"expected a whole number from 1 on for option `{key}`, found `{text}`")
    return int(text)


def _truth(key: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise InvalidInputError(f"expected true or false for option `{key}`, found `{text}`")
    return text.lower() == "true"


_RULES: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "stream-from-timestamp": ("from_ms", _milliseconds),
    "streaming-max-files-per-micro-batch": ("max_files", _count),
    "streaming-max-rows-per-micro-batch": ("max_rows", _count),
    SKIP_OVERWRITES: ("skip_overwrites", _truth),
    SKIP_DELETES: ("skip_deletes", _truth),
}
STREAM_OPTIONS = (_BRANCH, *_RULES)
