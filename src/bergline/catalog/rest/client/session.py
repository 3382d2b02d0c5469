"""A connection to a server after its configuration was read: what it offers, and how names are spelt there."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.calls import Calls
from bergline.catalog.rest.client.errors import About
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import Transport
from bergline.catalog.rest.protocol.bodies import ListNamespacesResponse, ListTablesResponse
from bergline.catalog.rest.protocol.endpoints import DEFAULT_ENDPOINTS, GET_CONFIG, VIEW_ENDPOINTS, Endpoint
from bergline.catalog.rest.protocol.names import (
    SEPARATOR_PROPERTY,
    UNIT_SEPARATOR,
    decode_separator,
    encode_name,
    encode_namespace,
    join_levels,
)
from bergline.errors import FormatError, NotFoundError, UnavailableError

_CONFIGURATION = About("the catalog's configuration", "")
_ADDRESS = "the address is the part before /v1, e.g. http://host:8181 or https://host/api/catalog"
_MOST_PAGES = 100_000
_DURATION = re.compile(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?")
_NESSIE = "nessie.is-nessie-catalog"

Page = TypeVar("Page", ListTablesResponse, ListNamespacesResponse)


class _Config(msgspec.Struct, rename="kebab"):
    """The configuration as servers send it: with nulls, and with values that are no text."""

    defaults: dict[str, Any] | None = None
    overrides: dict[str, Any] | None = None
    endpoints: tuple[str, ...] | None = None
    idempotency_key_lifetime: str | None = None


class RestSession:
    """Calls to one catalog of a server."""

    def __init__(
        self,
        settings: RestSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._transport = Transport(settings.timeouts_s)
        authorization = Authorization(settings, self._transport, clock_s=clock_s)
        first = Calls(settings, self._transport, authorization, sleep=sleep)
        config = _configuration(first, settings)
        self.settings = settings.with_answer(_texts(config.defaults), _texts(config.overrides))
        authorization.adopt(self.settings)
        self.clock_s = clock_s
        self._separator = decode_separator(self.settings.properties.get(SEPARATOR_PROPERTY, "") or UNIT_SEPARATOR)
        self._calls = Calls(
            self.settings,
            self._transport,
            authorization,
            endpoints=_endpoints(config, self.settings),
            key_lifetime_s=_seconds(config.idempotency_key_lifetime or ""),
            sleep=sleep,
        )
        self.keeps_refs = _texts(config.overrides).get(_NESSIE) != "true"
        """Whether tables have branches and tags of their own."""
        self._closed = False

    @property
    def calls(self) -> Calls:
        """What sends requests; UnavailableError once the catalog is closed."""
        if self._closed:
            raise UnavailableError("the catalog is closed")
        return self._calls

    def close(self) -> None:
        """Let go of connections."""
        self._closed = True
        self._transport.close()

    def namespace_path(self, namespace: Namespace) -> dict[str, str]:
        """A namespace in a path."""
        return {"namespace": encode_namespace(namespace, self._joint(namespace))}

    def table_path(self, name: TableName, kind: str = "table") -> dict[str, str]:
        """A table or view in a path."""
        return {**self.namespace_path(name.namespace), kind: encode_name(name.name)}

    def pages(
        self,
        endpoint: Endpoint,
        as_type: type[Page],
        about: About,
        *,
        names: Mapping[str, str] | None = None,
        below: Namespace = (),
    ) -> Iterator[Page]:
        """All pages of a list."""
        query = {"parent": join_levels(below, self._joint(below))} if below else {}
        if self.settings.text("rest-page-size"):
            query["pageSize"] = str(self.settings.number("rest-page-size", 1))
        token = ""
        for _ in range(_MOST_PAGES):
            answer = self.calls.call(endpoint, about, names=names, query={**query, "pageToken": token})
            page = self.calls.parsed(answer, as_type, about)
            yield page
            if not page.next_page_token:
                return
            if page.next_page_token == token:
                break
            token = page.next_page_token
        raise FormatError(f"expected pages that come to an end, found the same again in the server's list for {about}")

    def _joint(self, namespace: Namespace) -> str:
        """What joins levels: the server's separator, or for levels that have it in them the one all servers know."""
        return UNIT_SEPARATOR if any(self._separator in level for level in namespace) else self._separator


def _configuration(calls: Calls, settings: RestSettings) -> _Config:
    """What the server says of itself; what is no Iceberg catalog is said to be none."""
    query = {"warehouse": settings.warehouse} if settings.warehouse else None
    try:
        answer = calls.call(GET_CONFIG, _CONFIGURATION, query=query)
        return calls.parsed(answer, _Config, _CONFIGURATION)
    except NotFoundError as error:
        if error.kind == "warehouse":
            raise
        message = f"no Iceberg REST catalog at {settings.uri}: {error}"
        raise NotFoundError(message, kind="catalog", name=settings.uri, hints=[_ADDRESS]) from error
    except FormatError as error:
        raise FormatError(str(error), hints=[_ADDRESS]) from error


def _endpoints(config: _Config, settings: RestSettings) -> frozenset[str]:
    if config.endpoints is not None:
        return frozenset(config.endpoints)
    with_views = settings.flag("view-endpoints-supported", otherwise=False)
    return DEFAULT_ENDPOINTS | VIEW_ENDPOINTS if with_views else DEFAULT_ENDPOINTS


def _seconds(duration: str) -> float:
    """A duration as ISO 8601 writes it, `PT30M`; 0 for what is none."""
    found = _DURATION.fullmatch(duration.strip())
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _texts(given: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: value for name, value in (given or {}).items() if isinstance(value, str)}
