"""Addresses that webhooks may have: public ones, and those that the operator allows.

A name is looked up once, all its addresses are checked, and the caller connects to one of exactly these addresses: a
second lookup could return others.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bergline.errors import InvalidInputError, RefusedError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[Any]]
"""With the signature of `socket.getaddrinfo`."""

_LONGEST_URL = 2000
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[\x21-\x7e]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # the host service of Azure's virtual machines
            *("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"),
        ),
    )
)
"""What IANA has set aside within IPv4 and within the public IPv6, and addresses of clouds' own services.

Those of AWS, Google, Oracle and Alibaba are in these ranges; `is_global` has others in each version of Python.
"""
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
_ALLOW = "--webhook-allow with a host or a network, such as 10.0.0.0/8, lets `bergline serve` call it"


class WebhookTarget(msgspec.Struct, frozen=True):
    """The parts of a URL that a message is sent to."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """The host as HTTP names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str) -> WebhookTarget:
    """The parts of a URL; InvalidInputError for one that is not plain http or https."""
    if len(url) > _LONGEST_URL or not _PLAIN.fullmatch(url):
        raise InvalidInputError(
            f"expected a URL of up to {_LONGEST_URL} characters in ASCII without spaces, found another"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInputError("expected a URL such as https://host/path, found another text") from None
    if parts.scheme not in _PORTS or not host or port == 0:
        raise InvalidInputError("expected a URL such as https://host/path, found another text")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInputError(
            "expected a URL without user, password and fragment, found one with them",
            hints=["messages are signed: the receiver needs no password"],
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(parts.scheme, host, port or _PORTS[parts.scheme], path)


class WebhookAddresses:
    """Decides which hosts may be called; `allow` has networks and names of hosts."""

    def __init__(self, allow: Iterable[str] = (), resolve: Resolve | None = None) -> None:
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._hosts: set[str] = set()
        self._resolve = resolve or _look_up
        for text in allow:
            try:
                self._networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                if "/" in text or not _PLAIN.fullmatch(text):
                    raise InvalidInputError(
                        f"expected a host or a network such as 10.0.0.0/8 for --webhook-allow, found `{text[:80]}`"
                    ) from None
                self._hosts.add(text.lower().rstrip("."))

    def find(self, host: str, port: int) -> list[Address]:
        """The addresses of a host, all of which may be called; RefusedError if one may not be, or if there is none.

        Both errors have the same message, so as not to reveal which names exist in a private network.
        """
        try:
            found = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in self._resolve(host, port)]
        except (OSError, UnicodeError, ValueError):
            found = []
        if not found or (host.rstrip(".") not in self._hosts and not all(map(self._is_allowed, found))):
            raise RefusedError(f"host `{host}` has no address, or one that is not public", hints=[_ALLOW])
        return list(dict.fromkeys(found))

    def _is_allowed(self, address: Address) -> bool:
        leads_to = _ends(address)
        if any(end in network for end in leads_to for network in self._networks):
            return True
        return all(map(_is_public, leads_to))


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_IPV6:
        return False
    return not any(address in network for network in _SPECIAL)


def _ends(address: Address) -> tuple[Address, ...]:
    """The addresses that decide for one: for an IPv6 address that leads to IPv4, the one inside, with 6to4 both."""
    if not isinstance(address, ipaddress.IPv6Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address, address.sixtofour)
    return (address,)


def _look_up(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
