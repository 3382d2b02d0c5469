"""Cross-origin requests and DNS rebinding: pages of other sites get nothing from a server that needs no token.

A browser lets such pages send requests that change tables and, under a host name that leads to this machine, read
the responses too.
"""

import ipaddress
from collections.abc import Mapping

from bergline.errors import RefusedError


def check_cross_origin(headers: Mapping[str, str], *, any_host: bool) -> None:
    """RefusedError for a page of another site and, unless `any_host`, for a host name that others may have chosen."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusedError(
            f"expected no page of another site without a token, found one of `{origin[:200]}`",
            hints=["make a token with `bergline token create NAME`"],
        )
    if host and not any_host and not _is_local(host):
        raise RefusedError(
            f"expected an address or `localhost` as the server's name without a token, found `{host[:200]}`",
            hints=["make a token with `bergline token create NAME`, or let everybody in with --anonymous"],
        )


def check_loopback_name(headers: Mapping[str, str]) -> None:
    """RefusedError unless the host's name is one of this machine alone."""
    host = headers.get("host", "")
    name = _name(host)
    try:
        is_loopback = ipaddress.ip_address(name).is_loopback
    except ValueError:
        is_loopback = name == "localhost" or name.endswith(".localhost")
    if not is_loopback:
        raise RefusedError(f"expected `localhost` or a loopback address as the host, found `{host[:200]}`")


def _name(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_local(host: str) -> bool:
    name = _name(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
