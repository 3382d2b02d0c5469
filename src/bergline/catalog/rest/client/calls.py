"""Calls of endpoints: where a request goes and what it carries; refusals become our errors."""

import math
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.errors import About, Refusals
from bergline.catalog.rest.client.retries import READING, SUCCESSES, LostError, Tries
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import HttpResponse, Transport
from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, GET_CONFIG, Endpoint
from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.wire import decode_json, encode_json

Body = TypeVar("Body")
NOT_MODIFIED = 304
_DONE = frozenset({200, 204})
_SHOWN = 80


class ChangeResponse(NamedTuple):
    """The answer to a change that happened, and what it holds: None where the protocol has no body for it."""

    answer: HttpResponse
    content: Any


class Calls:
    """One server, with its endpoints; safe to use from many threads."""

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
        self._refusals = Refusals(settings, authorization)
        self._tries = Tries(settings, transport, authorization, self._refusals, sleep)
        self._endpoints = endpoints
        self._key_lifetime_s = key_lifetime_s
        self.sleep = sleep

    def has(self, endpoint: Endpoint) -> bool:
        """Whether the server offers an endpoint."""
        return str(endpoint) in self._endpoints or endpoint in ALWAYS_THERE

    def call(
        self,
        endpoint: Endpoint,
        about: About,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> HttpResponse:
        """The answer of a success, or 304.

        Names are encoded already. Raises what the server's refusal means, UnavailableError where it cannot be reached
        and nothing changed, and LostError.
        """
        if not self.has(endpoint):
            raise UnsupportedError(f"expected a server with `{endpoint}` for {about}, found one without")
        url = self._settings.uri + endpoint.url(self._settings.text("prefix") or "", **(names or {}))
        sent = {"Accept": "application/json", **self._settings.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        repeatable_s = math.inf if endpoint.method in READING else 0.0
        if self._key_lifetime_s and endpoint.takes_key:
            repeatable_s = self._key_lifetime_s
            sent["Idempotency-Key"] = str(_uuid7())
        answer = self._tries.answer(
            endpoint.method,
            f"{url}?{urlencode(query)}" if query else url,
            sent,
            None if body is None else encode_json(body),
            repeatable_s=repeatable_s,
        )
        if answer.status in SUCCESSES or (answer.status == NOT_MODIFIED and endpoint.method in READING):
            return answer
        # HEAD is answered without a body, and whether there is a catalog at all is what the configuration is asked for
        by_status = endpoint.method == "HEAD" or endpoint is GET_CONFIG
        raise self._refusals.error(answer, about, by_status=by_status)

    def change(
        self,
        endpoint: Endpoint,
        about: About,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> ChangeResponse:
        """The answer to a change, as the protocol says that it is; any other success is LostError.

        A proxy's page, or half of an answer, says nothing of what happened. A success without a body is worth little
        more: whoever asked looks whether it shows.
        """
        answer = self.call(endpoint, about, names=names, query=query, body=body)
        if endpoint.answer is not None:
            try:
                return ChangeResponse(answer, self.parsed(answer, endpoint.answer, about))
            except FormatError as error:
                raise LostError(str(error)) from error
        if answer.status not in _DONE or answer.body.strip():
            found = self._settings.hide(answer.body[:_SHOWN].decode(errors="replace"))
            raise LostError(f"expected no body in the answer for {about}, found status {answer.status} and {found!r}")
        return ChangeResponse(answer, None)

    def parsed(self, answer: HttpResponse, as_type: type[Body], about: About) -> Body:
        """The body of an answer; FormatError if it is not what the protocol says."""
        return decode_json(answer.body, as_type, f"the server's answer for {about}")


def _uuid7() -> uuid.UUID:
    """A new key: the time and chance, in the form that the protocol asks for."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | (7 << 76) | (secrets.randbits(12) << 64) | (2 << 62) | secrets.randbits(62)
    return uuid.UUID(int=value)
