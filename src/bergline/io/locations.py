"""Locations: the only module that parses and normalizes the URIs in metadata.

Text after the scheme is taken literally: like Hadoop and PyIceberg, percent signs are neither encoded nor decoded.
"""

import os
import re
from typing import NamedTuple

from bergline.errors import InvalidInputError, UnsupportedError

_ONE_SCHEME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)")


def scheme_of(location: str) -> str:
    """The scheme of a location in lower case; bare paths are `file`."""
    match = _SCHEME.match(location)
    return match["scheme"].lower() if match else "file"


def local_path(location: str) -> str:
    """The path of a `file:` location or bare path; InvalidInputError for other schemes."""
    try:
        os.fsencode(location)
    except UnicodeEncodeError:
        raise InvalidInputError(f"expected a location that can be encoded, found {location!a}") from None
    if "\0" in location:
        raise InvalidInputError(f"expected a location without null characters, found {location!a}")
    match = _SCHEME.match(location)
    if match is None:
        return _one_root(os.path.abspath(location))
    if match["scheme"].lower() != "file":
        raise InvalidInputError(f"expected a file location, found `{location}`")
    path = location[match.end() :]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in {"", "localhost"} or not slash:
            raise InvalidInputError(f"expected a location like `file:///path`, found `{location}`")
        path = f"/{rest}"
    return _one_root(os.path.normpath(path))


class ObjectLocation(NamedTuple):
    """The parts of `scheme://authority/key`, unchanged."""

    scheme: str
    authority: str
    key: str


def object_location(location: str) -> ObjectLocation:
    """Parse an object's location; InvalidInputError if a part is missing, UnsupportedError for some keys."""
    found = _split_object(location)
    if not found.key:
        raise InvalidInputError(f"expected a location like `{found.scheme}://bucket/key`, found `{location}`")
    _check_key(found.key, location)
    return found


def directory_location(location: str) -> ObjectLocation:
    """Parse a directory's location; the key has no trailing slash and may be empty."""
    found = _split_object(location)
    key = found.key.removesuffix("/")
    if key:
        _check_key(key, location)
    return found._replace(key=key)


def normalized(location: str) -> str:
    """The canonical spelling of a location, for comparisons."""
    scheme = scheme_of(location)
    if scheme == "file":
        return f"file://{local_path(location)}"
    rest = location[len(scheme) :]
    if scheme.startswith("wasb"):
        rest = rest.replace(".blob.", ".dfs.", 1)
    return f"{_ONE_SCHEME.get(scheme, scheme)}{rest}"


def spellings(location: str) -> list[str]:
    """The ways to write a canonical location, itself among them."""
    scheme = scheme_of(location)
    rest = location[len(scheme) :]
    if scheme == "file":
        path = rest.removeprefix("://")
        return [location, f"file:{path}", path]
    same = [f"{other}{rest}" for other, one in _ONE_SCHEME.items() if one == scheme]
    return [location, *(one.replace(".dfs.", ".blob.", 1) if one.startswith("wasb") else one for one in same)]


def is_absolute(location: str) -> bool:
    """Whether a location does not depend on the working directory."""
    return _SCHEME.match(location) is not None or os.path.isabs(location)


def absolute_location(location: str) -> str:
    """The location independent of the working directory; bare paths become `file:///…`."""
    return location.rstrip("/") if _SCHEME.match(location) else f"file://{_one_root(os.path.abspath(location))}"


def join(location: str, *parts: str) -> str:
    """A location below another."""
    return "/".join([location.rstrip("/"), *parts])


def _one_root(path: str) -> str:
    """An absolute path with a single leading slash: Python keeps two, which mean the same here."""
    return f"/{path.lstrip('/')}" if path.startswith("//") else path


def _split_object(location: str) -> ObjectLocation:
    match = _SCHEME.match(location)
    scheme, rest = (location[: match.end() - 1], location[match.end() :]) if match else ("", location)
    authority, _, key = rest.removeprefix("//").partition("/")
    if not scheme or not rest.startswith("//") or not authority:
        raise InvalidInputError(f"expected a location like `{scheme or 's3'}://bucket/key`, found `{location}`")
    return ObjectLocation(scheme.lower(), authority, key)


def _check_key(key: str, location: str) -> None:
    """Refuse the few keys that object stores allow but our client cannot address."""
    if any(segment in {"", ".", ".."} for segment in key.split("/")):
        raise UnsupportedError(f"expected a key without empty, `.` and `..` segments, found `{location}`")
    if _CONTROL.search(key):
        raise UnsupportedError(f"expected a key without control characters, found {location!r}")
