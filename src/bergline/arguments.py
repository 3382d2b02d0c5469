"""Checks of arguments in Python calls: a valid value, or an InvalidInputError that says what was expected."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bergline.errors import InvalidInputError

_LONG = range(-(2**63), 2**63)
_SHOWN = 80
DURATION: Final = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400}


def check_text(value: Any, what: str) -> str:
    """Check that a value is text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise InvalidInputError(f"expected {what}, found {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"expected text without lone surrogates, found {shown(value)}") from error
    return value


def check_no_nul(text: str, what: str) -> str:
    """Check that text has no null character, which databases and file systems do not allow."""
    if "\0" in text:
        raise InvalidInputError(f"expected no null character in {what}, found {shown(text)}")
    return text


def check_texts(values: Any, what: str) -> dict[str, str]:
    """Check a mapping of text to text."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"expected a mapping with text for each {what}, found {shown(values)}")
    for key, value in values.items():
        check_text(key, f"text for the name of a {what}")
        check_text(value, f"text for {what} `{key}`")
    return dict(values)


def check_list(values: Any, what: str) -> tuple[str, ...]:
    """Check a list of texts; a single text is refused."""
    if isinstance(values, str):
        raise InvalidInputError(f"expected a list of {_several(what)}, found the text `{values[:_SHOWN]}`")
    if not isinstance(values, Iterable):
        raise InvalidInputError(f"expected a list of {_several(what)}, found {shown(values)}")
    return tuple([check_text(value, f"text for a {what}") for value in values])


def check_whole(value: Any, what: str) -> int:
    """Check a 64-bit integer."""
    if type(value) is not int or value not in _LONG:
        raise InvalidInputError(f"expected a whole number for {what}, found {shown(value)}")
    return value


def check_positive(value: Any, what: str) -> int:
    """Check a 64-bit integer of at least 1."""
    if check_whole(value, what) < 1:
        raise InvalidInputError(f"expected a number from 1 on for {what}, found {value}")
    return int(value)


def shown(value: Any) -> str:
    """A value for a message, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def counted(number: int, thing: str) -> str:
    """A count with its noun, in singular or plural."""
    return f"{number:,} {thing if number == 1 else _several(thing)}"


def _several(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"


def parse_duration(text: str) -> int:
    """The seconds of `90d`, `12h` or `30m`."""
    match = DURATION.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"expected a duration like 90d, 12h or 30m, found `{text}`")
    return int(match["number"]) * _SECONDS[match["unit"]]
