"""Signed messages to webhooks, in the form of Standard Webhooks, each sent once; callers decide about retries.

Only the status of the response is kept: its body could be from a page that nobody should see.
"""

import base64
import hashlib
import hmac
import http.client
import socket
import ssl
import threading
import time
from functools import cached_property

import msgspec

from bergline.errors import InvalidInputError, RefusedError
from bergline.governance.events.model import CLOUD_EVENTS_BATCH
from bergline.governance.webhooks.addresses import Address, WebhookAddresses, WebhookTarget, parse_target
from bergline.governance.webhooks.store import WebhookSecret

_TIMEOUT_S = 10.0
_SUCCESSES = range(200, 300)
_GONE = 410


class SendResult(msgspec.Struct, frozen=True):
    """The outcome of a message."""

    took_ms: int
    status: int | None = None
    error: str | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status == _GONE


class WebhookSender:
    """Sends messages; no redirects, no proxies, certificates verified for the name in the URL."""

    def __init__(
        self, addresses: WebhookAddresses, *, timeout_s: float = _TIMEOUT_S, tls: ssl.SSLContext | None = None
    ) -> None:
        self._addresses = addresses
        self._timeout_s = timeout_s
        self._given_tls = tls

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or ssl.create_default_context()

    def check(self, url: str) -> None:
        """InvalidInputError or RefusedError for a URL that will not be called."""
        target = parse_target(url)
        self._addresses.find(target.host, target.port)

    def send(self, url: str, secret: WebhookSecret, message_id: str, body: bytes) -> SendResult:
        """Send one message; any failure is part of the result."""
        started = time.monotonic()
        status, error = None, None
        try:
            target = parse_target(url)
            addresses = self._addresses.find(target.host, target.port)
            status = self._post(target, addresses, _headers(secret, message_id, body), body)
            error = None if status in _SUCCESSES else f"the receiver responded with status {status}"
        except (RefusedError, InvalidInputError) as refusal:
            error = str(refusal)
        except ssl.SSLCertVerificationError as problem:
            error = f"the receiver's certificate is not valid: {problem.verify_message}"
        except TimeoutError:
            error = f"the receiver did not respond within {self._timeout_s:g} s"
        except (ConnectionResetError, BrokenPipeError):
            error = "the receiver closed the connection without a response"
        except (OSError, http.client.HTTPException) as problem:
            error = f"cannot reach the receiver: {getattr(problem, 'strerror', None) or type(problem).__name__}"
        return SendResult(round((time.monotonic() - started) * 1000), status, error)

    def _post(self, target: WebhookTarget, addresses: list[Address], headers: dict[str, str], body: bytes) -> int:
        deadline = _Deadline(self._timeout_s)
        try:
            connection = http.client.HTTPConnection(target.host, target.port)
            connection.sock = self._connect(target, addresses, deadline)
            connection.request("POST", target.path, body, {"Host": target.host_header, **headers})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            if deadline.is_over:
                raise TimeoutError from None
            raise
        finally:
            deadline.close()
        if deadline.is_over:  # truncated headers would look complete
            raise TimeoutError
        return status

    def _connect(self, target: WebhookTarget, addresses: list[Address], deadline: "_Deadline") -> socket.socket:
        """A connection to one of the addresses that were checked."""
        problem: OSError = TimeoutError()
        for address in addresses:
            try:
                plain = socket.create_connection((str(address), target.port), timeout=deadline.left_s)
            except OSError as error:
                problem = error
                continue
            deadline.guard(plain)
            if target.scheme == "http":
                return plain
            wrapped = self._tls.wrap_socket(plain, server_hostname=target.host, do_handshake_on_connect=False)
            deadline.guard(wrapped)
            wrapped.do_handshake()
            return wrapped
        raise problem


class _Deadline:
    """A deadline for the whole message: a receiver that sends a byte now and then would never time out otherwise."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    @property
    def left_s(self) -> float:
        return max(self._end - time.monotonic(), 0.001)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def guard(self, connected: socket.socket) -> None:
        self._socket = connected

    def close(self) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def _cut(self) -> None:
        connected = self._socket
        if connected is not None:
            try:
                connected.shutdown(socket.SHUT_RDWR)
            except OSError:
                return


def sign(secret: WebhookSecret, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message: that of its id, time and body."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(secret.key(), signed, hashlib.sha256).digest()).decode()}"


def _headers(secret: WebhookSecret, message_id: str, body: bytes) -> dict[str, str]:
    timestamp = int(time.time())
    return {
        "Content-Type": CLOUD_EVENTS_BATCH,
        "User-Agent": "bergline",
        "Connection": "close",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, message_id, timestamp, body),
    }
