"""Settings of a REST catalog: its URI, and properties as named by Java and PyIceberg.

Tokens and credentials appear in no message: `hide` removes them from text by others.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bergline.arguments import check_text
from bergline.catalog.rest.client.transport import ClientTls
from bergline.catalog.rest.protocol.branch_tables import BRANCH_TABLES
from bergline.errors import InvalidInputError, near_names
from bergline.io.settings import PropertyReader, check_endpoint
from bergline.io.store_properties import check_store_properties, is_store_property

REST_PROPERTIES = (
    "prefix",
    "token",
    "credential",
    "oauth2-server-uri",
    "scope",
    "audience",
    "resource",
    "token-expires-in-ms",
    "token-refresh-enabled",
    "token-exchange-enabled",
    "rest.auth.type",
    "rest.auth.basic.username",
    "rest.auth.basic.password",
    "rest.client.connection-timeout-ms",
    "rest.client.socket-timeout-ms",
    "rest-page-size",
    "namespace-separator",
    "view-endpoints-supported",
)
TLS_PROPERTIES = ("ssl.cabundle", "ssl.client.cert", "ssl.client.key")
"""Files on this machine, which a server cannot choose."""
_HEADER = "header."
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PREFIX = re.compile(r"[^?#\s]*")
_SECRETS = ("token", "credential", "rest.auth.basic.password")
_SHORTEST_SECRET = 4
_CONNECT_MS, _ANSWER_MS = 10_000, 60_000
_LONGEST_MS = 3_600_000
_AUTH_TYPES = ("none", "basic", "oauth2")


class RestSettings(msgspec.Struct, frozen=True):
    """The server's address, authentication and timeouts, without storage settings."""

    uri: str
    warehouse: str | None
    properties: dict[str, str]
    """The catalog properties by name."""
    storage: dict[str, str]
    """The storage properties."""

    def __repr__(self) -> str:
        return f"RestSettings({self.uri!r})"

    def text(self, name: str) -> str | None:
        """A property that is not empty."""
        return PropertyReader(self.properties).text(name)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        """A boolean property."""
        found = PropertyReader(self.properties).boolean(name)
        return otherwise if found is None else found

    def number(self, name: str, otherwise: int, most: int = _LONGEST_MS) -> int:
        """A positive integer property."""
        value = self.text(name)
        if value is None:
            return otherwise
        if not re.fullmatch(r"\d{1,12}", value) or not 1 <= int(value) <= most:
            raise InvalidInputError(f"expected a number from 1 to {most} in property `{name}`, found `{value}`")
        return int(value)

    @property
    def timeouts_s(self) -> tuple[float, float]:
        """Timeouts in seconds: to connect, and to wait for a response."""
        return (
            self.number("rest.client.connection-timeout-ms", _CONNECT_MS) / 1000,
            self.number("rest.client.socket-timeout-ms", _ANSWER_MS) / 1000,
        )

    @property
    def tls(self) -> ClientTls | None:
        """The authorities and the certificate of connections; None for the system's authorities alone."""
        files = ClientTls(*map(self.text, TLS_PROPERTIES))
        if files.key is not None and files.certificate is None:
            raise InvalidInputError("expected the property `ssl.client.cert` beside `ssl.client.key`, found none")
        return None if files == ClientTls() else files

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request; vended credentials are requested unless a property says otherwise."""
        own = {name.removeprefix(_HEADER): value for name, value in self.properties.items() if name.startswith(_HEADER)}
        asked = {} if any(n.lower() == "x-iceberg-access-delegation" for n in own) else _VENDED
        return {BRANCH_TABLES: "true", **asked, **own}

    def hide(self, text: str) -> str:
        """A text with secrets removed."""
        for name, value in self.properties.items():
            if name in _SECRETS or name.startswith(_HEADER):
                for secret in (value, value.partition(":")[2] if name == "credential" else ""):
                    text = text.replace(secret, "…") if len(secret) >= _SHORTEST_SECRET else text
        return text

    def with_response(self, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> "RestSettings":
        """The settings merged with the server's: its defaults below ours, its overrides above; not trusted."""
        merged = {**_known(defaults), **self.properties, **self.storage, **_known(overrides)}
        uri = overrides.get("uri") or self.uri
        check_endpoint(uri, "the server's configuration")
        return RestSettings(
            uri.rstrip("/"),
            self.warehouse,
            {name: value for name, value in merged.items() if _is_rest_property(name)},
            {name: value for name, value in merged.items() if not _is_rest_property(name)},
        )


_VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


def rest_settings(uri: str, warehouse: str | None, properties: Mapping[str, Any]) -> RestSettings:
    """Parse the settings; InvalidInputError for an invalid URI or property."""
    check_endpoint(uri, "the catalog's address")
    own = {name: value for name, value in properties.items() if _is_rest_property(name)}
    for name, value in own.items():
        check_text(value, f"text for property `{name}`")
        _check_header(name, value)
    for name in properties:
        if isinstance(name, str) and not _is_rest_property(name) and not is_store_property(name):
            near = near_names(name, (*REST_PROPERTIES, *TLS_PROPERTIES))
            raise InvalidInputError(
                f"expected a property of a REST catalog such as `token`, or of storage such as `s3.endpoint`, "
                f"found `{name}`",
                hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
            )
    storage = check_store_properties({name: value for name, value in properties.items() if name not in own})
    settings = RestSettings(uri.rstrip("/").removesuffix("/v1"), warehouse, own, storage)
    _check_values(settings)
    return settings


def _check_values(settings: RestSettings) -> None:
    for name in REST_PROPERTIES:
        settings.text(name)
    kind = settings.text("rest.auth.type")
    if kind is not None and kind.lower() not in _AUTH_TYPES:
        raise InvalidInputError(f"expected {' or '.join(_AUTH_TYPES)} in property `rest.auth.type`, found `{kind}`")
    if not _PREFIX.fullmatch(settings.text("prefix") or ""):
        raise InvalidInputError("expected a part of a path in property `prefix`, found another text")
    for name in ("token-refresh-enabled", "token-exchange-enabled", "view-endpoints-supported"):
        settings.flag(name, otherwise=False)
    _ = (
        settings.tls,
        settings.timeouts_s,
        settings.number("rest-page-size", 1),
        settings.number("token-expires-in-ms", 1, 2**40),
    )


def _check_header(name: str, value: str) -> None:
    if name.startswith(_HEADER) and not (_HEADER_NAME.fullmatch(name.removeprefix(_HEADER)) and value.isprintable()):
        raise InvalidInputError(f"expected the name and the text of a header in property `{name}`, found another")


def _is_rest_property(name: object) -> bool:
    return isinstance(name, str) and (name in (*REST_PROPERTIES, *TLS_PROPERTIES) or name.startswith(_HEADER))


def _known(given: Mapping[str, str]) -> dict[str, str]:
    """The properties from the server that are known, and that a server may set."""
    known = {name: value for name, value in given.items() if _is_rest_property(name) or is_store_property(name)}
    return {name: value for name, value in known.items() if name not in TLS_PROPERTIES}
