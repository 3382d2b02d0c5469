"""Calls to endpoints: builds requests, and converts error responses to errors."""

import math
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.error_responses import CallSubject, ResponseErrors
from bergline.catalog.rest.client.retries import READING, SUCCESSES, ChangeInDoubtError, RequestRetries
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import HttpResponse, Transport
from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, GET_CONFIG, Endpoint
from bergline.catalog.rest.protocol.final_refusal import IDEMPOTENCY_KEY_HEADER, REFUSED_KEY_HEADER
from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.wire import decode_json, encode_json

Body = TypeVar("Body")
NOT_MODIFIED = 304
_DONE = frozenset({200, 204})
_SHOWN = 80


class RequestKey:
    """The idempotency key of one change, however often it is sent."""

    def __init__(self, lifetime_s: float) -> None:
        self.text = str(_uuid7())
        self._until = time.monotonic() + lifetime_s
        self.is_refused = False
        """Whether the server said that no request with this key changes anything any more."""

    @property
    def repeatable_s(self) -> float:
        """For how many seconds from now the server surely keeps it."""
        return max(0.0, self._until - time.monotonic())


class ParsedResponse(NamedTuple):
    """The response to a successful change, and its parsed body: None if the protocol defines none."""

    response: HttpResponse
    content: Any


class Calls:
    """One server with its endpoints; thread-safe."""

    def __init__(
        self,
        settings: RestSettings,
        transport: Transport,
        authorization: Authorization,
        *,
        endpoints: frozenset[str] = frozenset(),
        key_lifetime_s: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._refusals = ResponseErrors(settings, authorization)
        self._retries = RequestRetries(settings, transport, authorization, self._refusals, sleep)
        self._endpoints = endpoints
        self._key_lifetime_s = key_lifetime_s
        self.sleep = sleep

    def has(self, endpoint: Endpoint) -> bool:
        """Whether the server offers an endpoint."""
        return str(endpoint) in self._endpoints or endpoint in ALWAYS_THERE

    def new_key(self) -> RequestKey | None:
        """A key for a change that may be sent several times; None if the server keeps none."""
        return RequestKey(self._key_lifetime_s) if self._key_lifetime_s else None

    def call(
        self,
        endpoint: Endpoint,
        about: CallSubject,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        key: RequestKey | None = None,
    ) -> HttpResponse:
        """Call an endpoint; returns a successful response, or a 304.

        Names are encoded already; a change without a key gets one if the server keeps keys. Raises the error of the
        response, UnavailableError if the server cannot be reached and nothing was changed, and ChangeInDoubtError.
        """
        if not self.has(endpoint):
            raise UnsupportedError(f"expected a server with `{endpoint}` for {about}, found one without")
        url = self._settings.uri + endpoint.url(self._settings.text("prefix") or "", **(names or {}))
        sent = {"Accept": "application/json", **self._settings.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        repeatable_s = math.inf if endpoint.method in READING else 0.0
        key = (key or self.new_key()) if endpoint.takes_key else None
        if key is not None:
            repeatable_s = key.repeatable_s
            sent[IDEMPOTENCY_KEY_HEADER] = key.text
        response = self._retries.send(
            endpoint.method,
            f"{url}?{urlencode(query)}" if query else url,
            sent,
            None if body is None else encode_json(body),
            repeatable_s=repeatable_s,
        )
        if response.status in SUCCESSES or (response.status == NOT_MODIFIED and endpoint.method in READING):
            return response
        if key is not None and response.headers.get(REFUSED_KEY_HEADER) == key.text:
            key.is_refused = True
        # responses to HEAD have no body, and the configuration call itself finds out whether there is a catalog
        by_status = endpoint.method == "HEAD" or endpoint is GET_CONFIG
        raise self._refusals.error(response, about, by_status=by_status)

    def change(
        self,
        endpoint: Endpoint,
        about: CallSubject,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        key: RequestKey | None = None,
    ) -> ParsedResponse:
        """Call a modifying endpoint; a success that does not follow the protocol is a ChangeInDoubtError.

        A proxy's page or a truncated response does not tell what happened. A success without a body tells little more:
        callers check whether the change is visible.
        """
        response = self.call(endpoint, about, names=names, query=query, headers=headers, body=body, key=key)
        if endpoint.response is not None:
            try:
                return ParsedResponse(response, self.parsed(response, endpoint.response, about))
            except FormatError as error:
                raise ChangeInDoubtError(str(error)) from error
        if response.status not in _DONE or response.body.strip():
            found = self._settings.hide(response.body[:_SHOWN].decode(errors="replace"))
            raise ChangeInDoubtError(
                f"expected no body in the response for {about}, found status {response.status} and {found!r}"
            )
        return ParsedResponse(response, None)

    def parsed(self, response: HttpResponse, as_type: type[Body], about: CallSubject) -> Body:
        """Parse the body of a response; FormatError if it does not follow the protocol."""
        return decode_json(response.body, as_type, f"the server's response for {about}")


def _uuid7() -> uuid.UUID:
    """A new idempotency key: a UUIDv7, as the protocol requires."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | (7 << 76) | (secrets.randbits(12) << 64) | (2 << 62) | secrets.randbits(62)
    return uuid.UUID(int=value)
