"""Which lake the commands open: from options, the environment, or `bergline.toml`.

A source that names a catalog names the whole lake: warehouse, name and properties of later sources, which may be
secrets, are not used for that catalog.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bergline.errors import InvalidInputError, near_names

FILE_NAME = "bergline.toml"
ENVIRONMENT = {"catalog": "BERGLINE_CATALOG", "warehouse": "BERGLINE_WAREHOUSE", "name": "BERGLINE_NAME"}
_TEXTS = tuple(ENVIRONMENT)
_KEYS = (*_TEXTS, "properties", "oidc")
_ISSUER_KEYS = (
    "issuer",
    "audience",
    "principal-claim",
    "groups-claim",
    "jwks",
    "client-id",
    "client-secret-file",
    "scopes",
)
_NEEDED_OF_AN_ISSUER = _ISSUER_KEYS[:2]
_SQLITE = "sqlite:///"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_POSITION = re.compile(r"\s*\(at (?P<place>[^)]*)\)\Z")


class ConnectArguments(msgspec.Struct, frozen=True):
    """The given arguments of `connect`, and the issuers that `bergline serve` trusts."""

    catalog: str | None = None
    warehouse: str | None = None
    name: str | None = None
    properties: dict[str, str] = {}
    issuers: dict[str, dict[str, str]] = {}
    """By alias."""
    ref: str | None = None
    """A branch or tag of the lake, or a time, of a command that takes one."""

    def before(self, behind: "ConnectArguments") -> "ConnectArguments":
        """These settings, completed from another source."""
        if self.catalog is not None:
            return self
        return ConnectArguments(
            behind.catalog,
            behind.warehouse if self.warehouse is None else self.warehouse,
            behind.name if self.name is None else self.name,
            behind.properties | self.properties,
            behind.issuers | self.issuers,
            self.ref,
        )


def load_settings(directory: Path | None = None, environment: Mapping[str, str] = os.environ) -> ConnectArguments:
    """The settings of the environment, completed from the settings file of a directory, by default the current one."""
    catalog, warehouse, name = (environment.get(variable) or None for variable in ENVIRONMENT.values())
    given = ConnectArguments(catalog, warehouse, name)
    if given.catalog is not None:
        return given
    file = find_settings_file(Path.cwd() if directory is None else directory)
    return given if file is None else given.before(read_settings_file(file))


def find_settings_file(directory: Path) -> Path | None:
    """`bergline.toml` in a directory or the nearest one above it."""
    places = (place / FILE_NAME for place in (directory, *directory.parents))
    return next((file for file in places if file.is_file()), None)


def read_settings_file(file: Path) -> ConnectArguments:
    """The settings of a file; relative paths in it begin at its directory."""
    try:
        text = file.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken_syntax(file, text, str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInputError(f"cannot read `{file}`: {reason}") from error
    for key, value in found.items():
        _check(file, text, key, value)
    properties = dict(_properties(file, text, found.pop("properties", {})))
    issuers = found.pop("oidc", {})
    settings = ConnectArguments(**found)
    return msgspec.structs.replace(
        settings,
        properties=properties,
        issuers=issuers,
        catalog=None if settings.catalog is None else _catalog_from(file.parent, settings.catalog),
        warehouse=None
        if settings.warehouse is None
        else _place_from(file.parent, settings.warehouse, settings.catalog),
    )


def _broken_syntax(file: Path, text: str, reason: str) -> InvalidInputError:
    position = _POSITION.search(reason)
    has_line = position is not None and position["place"].startswith("line ")
    place = f", {position['place']}" if position and has_line else f", line {max(len(text.splitlines()), 1)}"
    what = _POSITION.sub("", reason)
    return InvalidInputError(f"expected TOML, found {what[:1].lower()}{what[1:]} in `{file}`{place}")


def _check(file: Path, text: str, key: str, value: Any) -> None:
    place = f"in `{file}`, line {_line_of(text, key)}"
    if key not in _KEYS:
        known = ", ".join(f"`{k}`" for k in _KEYS)
        hints = [f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if (near := near_names(key, _KEYS)) else []
        raise InvalidInputError(f"expected one of {known}, found `{key}` {place}", hints=hints)
    if key in _TEXTS and (not isinstance(value, str) or not value):
        raise InvalidInputError(f"expected text for `{key}` {place}")
    if key == "properties" and not isinstance(value, dict):
        raise InvalidInputError(f"expected a table `[properties]` {place}")
    if key == "oidc":
        _check_issuers(value, place)


def _check_issuers(found: Any, place: str) -> None:
    if not isinstance(found, dict) or not all(isinstance(issuer, dict) for issuer in found.values()):
        raise InvalidInputError(f"expected a table like `[oidc.corp]` for each issuer {place}")
    for alias, issuer in found.items():
        for key, value in issuer.items():
            if key not in _ISSUER_KEYS:
                known = ", ".join(f"`{k}`" for k in _ISSUER_KEYS)
                raise InvalidInputError(f"expected one of {known} of issuer `{alias}`, found `{key}` {place}")
            if not isinstance(value, str) or not value:
                raise InvalidInputError(f"expected text for `{key}` of issuer `{alias}` {place}")
        for key in _NEEDED_OF_AN_ISSUER:
            if key not in issuer:
                raise InvalidInputError(f"expected `{key}` of issuer `{alias}`, found none {place}")


def _properties(file: Path, text: str, table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings by their full names: `s3.endpoint = "…"` works without quotes around the dotted name."""
    for key, value in table.items():
        match value:
            case str():
                yield f"{prefix}{key}", value
            case dict():
                yield from _properties(file, text, value, f"{prefix}{key}.")
            case _:  # the value may be a secret: do not show it
                place = f"in `{file}`, line {_line_of(text, key)}"
                raise InvalidInputError(f"expected text for the property `{prefix}{key}` {place}")


def _line_of(text: str, key: str) -> int:
    """The line of a key; 1 if the key is written in an unusual way."""
    written = re.compile(rf"""\s*\[*\s*(?:[^=]*\.)?["']?{re.escape(key)}["']?\s*[=\].]""")
    return next((i for i, line in enumerate(text.splitlines(), 1) if written.match(line)), 1)


def _catalog_from(directory: Path, catalog: str) -> str:
    if not catalog.startswith(_SQLITE):
        return catalog
    return f"{_SQLITE}{directory / catalog.removeprefix(_SQLITE)}"


def _place_from(directory: Path, warehouse: str, catalog: str | None) -> str:
    """A warehouse directory relative to a place; the warehouse of a REST server is just a name."""
    if _SCHEME.match(warehouse) or (catalog or "").startswith(("http:", "https:")):
        return warehouse
    return str(directory / warehouse)
