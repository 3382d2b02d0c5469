"""A session with a server, after reading its configuration: its endpoints, and how names are encoded."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.calls import Calls
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import Transport
from bergline.catalog.rest.protocol.endpoints import DEFAULT_ENDPOINTS, GET_CONFIG, VIEW_ENDPOINTS, Endpoint
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_PROPERTY
from bergline.catalog.rest.protocol.names import (
    SEPARATOR_PROPERTY,
    UNIT_SEPARATOR,
    decode_separator,
    encode_name,
    encode_namespace,
    join_levels,
)
from bergline.catalog.rest.protocol.ref_retention import REF_RETENTION_PROPERTY
from bergline.catalog.status_checks import status_check_waits
from bergline.errors import FormatError, NotFoundError, UnavailableError

_CONFIGURATION = CallSubject("the catalog's configuration", "")
_ADDRESS = "the address is the part before /v1, e.g. http://host:8181 or https://host/api/catalog"
_MOST_PAGES = 100_000
_DURATION = re.compile(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?")
_NESSIE = "nessie.is-nessie-catalog"


class PagedResponse(Protocol):
    """A page of a list, and the token of the next one, if any."""

    @property
    def next_page_token(self) -> str | None:
        """The token; None at the end."""
        ...


ListResponse = TypeVar("ListResponse", bound=PagedResponse)


class _Config(msgspec.Struct, rename="kebab"):
    """The configuration as servers send it, possibly with nulls and non-text values."""

    defaults: dict[str, Any] | None = None
    overrides: dict[str, Any] | None = None
    endpoints: tuple[str, ...] | None = None
    idempotency_key_lifetime: str | None = None


class RestSession:
    """A session with one catalog of a server."""

    def __init__(
        self,
        settings: RestSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._transport = Transport(settings.timeouts_s, tls=settings.tls)
        authorization = Authorization(settings, self._transport, clock_s=clock_s)
        first = Calls(settings, self._transport, authorization, sleep=sleep)
        config = _configuration(first, settings)
        self.settings = settings.with_response(_texts(config.defaults), _texts(config.overrides))
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
        """Whether the server's tables have branches and tags."""
        self.rebases_appends = _texts(config.overrides).get(MAY_MOVE_PROPERTY) == "true"
        """Whether the server puts an append on the head of its branch, if the client lets it."""
        self.asserts_retention = _texts(config.overrides).get(REF_RETENTION_PROPERTY) == "true"
        """Whether the server checks that the retention of refs is what the client knows."""
        self._closed = False

    @property
    def calls(self) -> Calls:
        """The calls; UnavailableError once the catalog is closed."""
        if self._closed:
            raise UnavailableError("the catalog is closed")
        return self._calls

    def close(self) -> None:
        """Close connections."""
        self._closed = True
        self._transport.close()

    def waits(self, properties: Mapping[str, str] | None = None) -> Iterator[Callable[[], None]]:
        """A wait for each look at what became of a change whose response was lost."""
        return status_check_waits(properties or {}, self.calls.sleep)

    def namespace_path(self, namespace: Namespace) -> dict[str, str]:
        """A namespace in a path."""
        return {"namespace": encode_namespace(namespace, self._joint(namespace))}

    def table_path(self, name: TableName, kind: str = "table") -> dict[str, str]:
        """A table or view in a path."""
        return {**self.namespace_path(name.namespace), kind: encode_name(name.name)}

    def pages(
        self,
        endpoint: Endpoint,
        as_type: type[ListResponse],
        about: CallSubject,
        *,
        names: Mapping[str, str] | None = None,
        below: Namespace = (),
        asked: Mapping[str, str] = {},
    ) -> Iterator[ListResponse]:
        """All pages of a list."""
        query = {**(asked or {}), **({"parent": join_levels(below, self._joint(below))} if below else {})}
        if self.settings.text("rest-page-size"):
            query["pageSize"] = str(self.settings.number("rest-page-size", 1))
        token = ""
        for _ in range(_MOST_PAGES):
            response = self.calls.call(endpoint, about, names=names, query={**query, "pageToken": token})
            page = self.calls.parsed(response, as_type, about)
            yield page
            if not page.next_page_token:
                return
            if page.next_page_token == token:
                break
            token = page.next_page_token
        raise FormatError(f"expected pages that come to an end, found the same again in the server's list for {about}")

    def _joint(self, namespace: Namespace) -> str:
        """The separator of levels: the server's own, or the standard one for levels that contain it."""
        return UNIT_SEPARATOR if any(self._separator in level for level in namespace) else self._separator


def _configuration(calls: Calls, settings: RestSettings) -> _Config:
    """Load the server's configuration; the error says so if it is not an Iceberg catalog."""
    query = {"warehouse": settings.warehouse} if settings.warehouse else None
    try:
        response = calls.call(GET_CONFIG, _CONFIGURATION, query=query)
        return calls.parsed(response, _Config, _CONFIGURATION)
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
    """Seconds of an ISO 8601 duration such as `PT30M`; 0 if invalid."""
    found = _DURATION.fullmatch(duration.strip())
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _texts(given: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: value for name, value in (given or {}).items() if isinstance(value, str)}
