"""Settings of an object store, read from Iceberg's properties; values that may be secret appear in no message."""

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError

_ENDPOINT = re.compile(
    r"https?://(?:(?P<host>[A-Za-z0-9._-]+)|\[(?P<ipv6>[0-9A-Fa-f:.]+)\])(?::(?P<port>\d{1,5}))?(?:/[A-Za-z0-9._~/-]*)?"
)
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_HIGHEST_PORT = 65535
_BOOLEANS = {"true": True, "false": False}


class StoreSettings(msgspec.Struct, frozen=True):
    """What obstore needs to open a bucket or container; everything else comes from the environment."""

    store: str
    bucket: str
    config: dict[str, Any]
    client: dict[str, Any]
    credential: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"StoreSettings({self.store}, {self.bucket!r})"


class PropertyReader:
    """Typed access to properties. Of several names for one setting, the first that is set counts."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def text(self, *names: str) -> str | None:
        """A value of printable characters; None if none of the names is set."""
        name = next((n for n in names if self._properties.get(n)), None)
        if name is None:
            return None
        value = self._properties[name]
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError(f"expected printable ASCII characters in property `{name}`, found others")
        return value

    def boolean(self, *names: str) -> bool | None:
        """`true` or `false`; None if not set."""
        value = self.text(*names)
        if value is None:
            return None
        if value.lower() in _BOOLEANS:
            return _BOOLEANS[value.lower()]
        raise InvalidInputError(f"expected true or false in property `{names[0]}`, found `{value}`")

    def seconds(self, *names: str) -> str | None:
        """A duration in obstore's format; None if not set."""
        value = self.text(*names)
        if value is None:
            return None
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) or float(value) == 0:
            raise InvalidInputError(f"expected a number of seconds in property `{names[0]}`, found `{value}`")
        return f"{max(1, round(float(value) * 1000))}ms"

    def endpoint(self, *names: str) -> str | None:
        """A URL such as `http://host:9000`; None if not set."""
        value = self.text(*names)
        if value is None:
            return None
        check_endpoint(value, f"property `{names[0]}`")
        return value.rstrip("/")

    def pair(self, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str] | None:
        """Two values that must be set together; None if neither is set."""
        one, other = self.text(*first), self.text(*second)
        if one and other:
            return one, other
        if one or other:
            raise InvalidInputError(f"expected properties `{first[0]}` and `{second[0]}`, found only one of them")
        return None

    def refuse(self, names: Mapping[str, str]) -> None:
        """UnsupportedError if an unsupported property is set; `names` maps each to an alternative."""
        for name, instead in names.items():
            if self._properties.get(name, "false").lower() != "false":
                raise UnsupportedError(f"property `{name}` is not supported", hints=[instead])


def check_endpoint(value: str, setting: str) -> None:
    """InvalidInputError unless the value is an HTTP or HTTPS URL without user and query."""
    match = _ENDPOINT.fullmatch(value)
    if match is None or not _is_host(match) or not 1 <= int(match["port"] or 1) <= _HIGHEST_PORT:
        found = "another text" if "@" in value else f"`{value}`"  # there is a password before an @
        raise InvalidInputError(f"expected an address like `http://host:9000` in {setting}, found {found}")


def is_ip_address(endpoint: str) -> bool:
    """Whether the host of an endpoint is an IP address."""
    match = _ENDPOINT.fullmatch(endpoint)
    return match is not None and (match["ipv6"] is not None or _ends_in_number(match["host"]))


def _is_host(match: re.Match[str]) -> bool:
    """Whether clients accept a host: one that ends in a number must be an IPv4 address."""
    if match["ipv6"] is not None or _ends_in_number(match["host"]):
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(match["ipv6"] or match["host"]))
        return False
    return all(_LABEL.fullmatch(label) for label in match["host"].removesuffix(".").split("."))


def _ends_in_number(host: str) -> bool:
    return _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]) is not None
