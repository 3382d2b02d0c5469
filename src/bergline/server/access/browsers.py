"""Pages of other sites in a browser on the same machine: they get nothing from a server that asks for no token.

A browser lets them send what changes tables, and under a name that leads to this machine also read the answers.
"""

import ipaddress
from collections.abc import Mapping

from bergline.errors import RefusedError


def check_visitor(headers: Mapping[str, str], *, by_any_name: bool) -> None:
    """RefusedError for a page of another site, and for a name of this machine that others gave it, unless told to."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusedError(
            f"expected no page of another site without a token, found one of `{origin[:200]}`",
            hints=["make a token with `bergline token create NAME`"],
        )
    if host and not by_any_name and not _is_local(host):
        raise RefusedError(
            f"expected an address or `localhost` as the server's name without a token, found `{host[:200]}`",
            hints=["make a token with `bergline token create NAME`, or let everybody in with --anonymous"],
        )


def _is_local(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
