"""Stands before a server, and adds `read-restrictions` to the tables that are loaded through it."""

import json
import re
from typing import Any

from support.proxies.response_proxy import AnsweringProxy, Asked

_TABLE = re.compile(r"/tables/(?!copy$)[^/?]+$")
ROW_FILTER = {"required-row-filter": {"type": "eq", "term": "region", "value": "EU"}}
MASKS = {"required-column-projections": [{"field-id": 2, "action": "mask-alphanum"}]}


class RestrictingProxy(AnsweringProxy):
    """While `restrictions` are given, every load of a table but `copy` carries them; responses to commits do not."""

    restrictions: Any = None
    passes_etags = False
    """Whether the server's ETags, which are about the metadata, stand for the response all the same."""

    def _pass_on(self, asked: Asked) -> tuple[int, list[tuple[str, str]], bytes]:
        loads = asked.method == "GET" and _TABLE.search(asked.path.partition("?")[0]) is not None
        if loads and not self.passes_etags:  # a server's ETag would be another one with restrictions
            asked = asked._replace(headers={n: t for n, t in asked.headers.items() if n.lower() != "if-none-match"})
        status, headers, data = super()._pass_on(asked)
        if not loads or status != 200 or self.restrictions is None:
            return status, headers, data
        content = json.loads(data) | {"read-restrictions": self.restrictions}
        return (
            status,
            [(n, t) for n, t in headers if n.lower() != "etag" or self.passes_etags],
            json.dumps(content).encode(),
        )
