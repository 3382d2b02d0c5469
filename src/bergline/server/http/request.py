"""A parsed request."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from starlette.types import Scope

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.at_ref.seen import seen_at
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.names import decode_name, decode_namespace, split_levels
from bergline.errors import BerglineError, FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.http.errors import RequestRefused
from bergline.server.http.response import Response

ANONYMOUS = "anonymous"
CALLER: Final = "bergline.caller"
"""Where a scope has the name of the caller, once it is known: the access log shows it."""
_LOOPBACK = {"127.0.0.1", "::1"}
_FORWARDED = {b"x-forwarded-for", b"forwarded", b"x-real-ip"}


class PrecomputedResponse:
    """The response to a change that is known before the change is made, and recorded with it."""

    response: Response | None = None


class Request(msgspec.Struct, frozen=True, dict=True):
    """A request for an endpoint by a principal; names are the segments of the path, still encoded."""

    endpoint: Endpoint
    names: dict[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    separator: str
    principal: str = ANONYMOUS
    groups: frozenset[str] = frozenset()
    """The groups of the principal."""
    is_local: bool = False
    """Whether it comes from the same machine."""
    address: str = ""
    """The address of the client, as `address_of` finds it."""
    max_values: int = 1_000_000
    """How many values its body may have."""
    at: LakeRef | None = None
    """The ref of the lake at which it is made, by the prefix of its path."""
    heeds_turns: bool = True
    """Whether it waits while somebody else has a turn on a table."""
    precomputed: PrecomputedResponse = msgspec.field(default_factory=PrecomputedResponse)

    @cached_property
    def namespace(self) -> Namespace:
        """The namespace in the path."""
        return parse_namespace(decode_namespace(self.names["namespace"], self.separator))

    @cached_property
    def table(self) -> TableName:
        """The table or view in the path."""
        name = self.names.get("table") or self.names.get("view") or ""
        return parse_table_name(TableName(self.namespace, decode_name(name)))

    def seen(self, metadata: TableMetadata, table: TableName | None = None) -> TableMetadata:
        """A table as it is seen at the ref of the request; by default the one in its path."""
        return metadata if self.at is None else seen_at(metadata, self.at, table or self.table)

    @property
    def kind(self) -> str:
        """Whether it is about tables, views or pull requests."""
        if "pull_request" in self.endpoint.name:
            return "pull-request"
        return "view" if "view" in self.endpoint.name else "table"

    @property
    def resource(self) -> str:
        """The resource in the path."""
        names = (decode_name(name).replace(self.separator, ".") for name in self.names.values())
        return "/".join((self.kind, *names))

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The names in its path, one by one."""
        return tuple(split_levels(decode_name(name), self.separator) for name in self.names.values())

    def in_path(self, error: BerglineError) -> BerglineError:
        """The error in terms of the path: a missing namespace means a missing table, which is what clients expect."""
        if self.kind in self.names and isinstance(error, NotFoundError) and error.kind == "namespace":
            hints = (str(error), *error.hints)
            return NotFoundError(f"no {self.kind}", kind=self.kind, name=str(self.table), hints=hints)
        return error

    def read(self) -> Any:
        """The body, as the endpoint's type; RequestRefused with the place where it is none."""
        if self.body.count(b",") >= self.max_values:  # counts commas in strings too: the body is not parsed for it
            raise RequestRefused(413, "BadRequestException", f"expected up to {self.max_values:,} values, found more")
        try:
            return decode_json(self.body or b"{}", self.endpoint.body, "the request's body")
        except FormatError as error:
            raise RequestRefused(400, "BadRequestException", str(error)) from error

    def precompute(self, response: Response) -> Response:
        """Note the response, to be replayed as it is when the request is repeated."""
        self.precomputed.response = response
        return response

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false."""
        text = self.query.get(name, "false").lower()
        if text not in {"true", "false", ""}:
            raise InvalidInputError(f"expected true or false for `{name}`, found `{text[:40]}`")
        return text == "true"


def address_of(scope: Scope) -> str:
    """The address that a request comes from; empty where there is none.

    That of the connection: what a header says is believed of trusted proxies only, and put there by uvicorn.
    """
    client = scope.get("client")
    return str(client[0]) if client else ""


def is_local(scope: Scope) -> bool:
    """Whether a request comes from the same machine, and not through a proxy there."""
    return address_of(scope) in _LOOPBACK and not any(name in _FORWARDED for name, _ in scope["headers"])
