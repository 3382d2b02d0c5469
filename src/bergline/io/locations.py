"""Locations: the one place that reads and normalises the URIs in metadata.

Text after the scheme is taken as it stands: like Hadoop and PyIceberg we neither encode nor decode percent signs.
"""

import os
import re

from bergline.errors import InvalidInputError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)")


def scheme_of(location: str) -> str:
    """The scheme of a location in lower case; bare paths are `file`."""
    match = _SCHEME.match(location)
    return match["scheme"].lower() if match else "file"


def local_path(location: str) -> str:
    """The path of a `file:` location or bare path; InvalidInputError for other schemes."""
    match = _SCHEME.match(location)
    if match is None:
        return os.path.abspath(location)
    if match["scheme"].lower() != "file":
        raise InvalidInputError(f"expected a file location, found `{location}`")
    path = location[match.end() :]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in {"", "localhost"} or not slash:
            raise InvalidInputError(f"expected a location like `file:///path`, found `{location}`")
        path = f"/{rest}"
    return os.path.normpath(path)


def normalized(location: str) -> str:
    """One spelling for all locations of the same object, for comparing them."""
    scheme = scheme_of(location)
    if scheme == "file":
        return f"file://{local_path(location)}"
    if scheme in {"s3a", "s3n"}:
        return f"s3{location[len(scheme) :]}"
    return location


def absolute_location(location: str) -> str:
    """A location that means the same from any working directory; bare paths become `file:///…`."""
    return location.rstrip("/") if _SCHEME.match(location) else f"file://{os.path.abspath(location)}"


def join(location: str, *parts: str) -> str:
    """A location below another."""
    return "/".join([location.rstrip("/"), *parts])
