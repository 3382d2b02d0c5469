"""HTTP transport: sends each request once; callers decide about retries."""

import importlib
import re
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.extras import install_hint

_CHUNK_BYTES = 64 * 1024
_MOST_BYTES = 512 * 1024 * 1024  # decompressed
_ENCODINGS = {"", "identity", "gzip", "x-gzip"}
_LONGEST_RESPONSE_S = 600.0
_CONNECTIONS = 16
_NOISE = re.compile(
    r"^.*?(?:>|\(host=[^)]*\)): |Failed to establish a new connection: |\[Errno -?\d+\] | \(_ssl\.c:\d+\)"
)


class ClientTls(NamedTuple):
    """Files in PEM: authorities that are trusted instead of the system's, and a certificate of one's own."""

    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    """The certificate's key; None if it is in the same file."""

    def context(self) -> ssl.SSLContext:
        """A context for connections; InvalidInputError if a file is not right."""
        try:
            context = ssl.create_default_context(cafile=self.authorities)
        except (OSError, ValueError) as error:
            raise _wrong_file("ssl.cabundle", self.authorities, error) from error
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
            except (OSError, ValueError) as error:
                files = self.certificate if self.key is None else f"{self.certificate}, {self.key}"
                raise _wrong_file("ssl.client.cert` and `ssl.client.key", files, error) from error
        return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase, which nobody could type")


def _wrong_file(names: str, files: str | None, error: Exception) -> InvalidInputError:
    why = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    return InvalidInputError(
        f"expected PEM files in `{names}`, found {files}: {why or getattr(error, 'reason', None) or error}"
    )


class HttpResponse(NamedTuple):
    """A response; header names are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NotSentError(Exception):
    """The request was certainly not sent."""


class ResponseLostError(Exception):
    """The server may have processed the request, but the response was lost."""


class UnusableResponseError(ResponseLostError):
    """A response that is too long, too slow or wrongly encoded; a retry would not help."""


class Transport:
    """A connection pool; certificates are verified, redirects are not followed."""

    def __init__(
        self,
        timeouts_s: tuple[float, float],
        most_bytes: int = _MOST_BYTES,
        longest_response_s: float = _LONGEST_RESPONSE_S,
        tls: ClientTls | None = None,
    ) -> None:
        try:
            self._urllib3: Any = importlib.import_module("urllib3")
        except ImportError:
            raise UnsupportedError(
                "expected the package urllib3 for REST catalogs, found none", hints=[install_hint("rest")]
            ) from None
        self._most_bytes = most_bytes
        self._longest_response_s = longest_response_s
        connect, read = timeouts_s
        self._pool: Any = self._urllib3.PoolManager(
            num_pools=4,
            maxsize=_CONNECTIONS,
            timeout=self._urllib3.Timeout(connect=connect, read=read),
            ssl_context=None if tls is None else tls.context(),
        )

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        """Send a request; returns the response with any status, NotSentError or ResponseLostError if there is none."""
        errors = self._urllib3.exceptions
        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers={"Accept-Encoding": "gzip", "User-Agent": "bergline", **headers},
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (errors.NewConnectionError, errors.ConnectTimeoutError, errors.LocationValueError) as error:
            raise NotSentError(_reason(error)) from error
        except errors.SSLError as error:
            known = NotSentError if "CERTIFICATE_VERIFY_FAILED" in str(error) else ResponseLostError
            raise known(_reason(error)) from error
        except (errors.HTTPError, OSError, ValueError) as error:
            raise ResponseLostError(_reason(error)) from error
        try:
            return HttpResponse(response.status, response.headers, self._read(response))
        except (errors.HTTPError, OSError, ValueError) as error:
            raise ResponseLostError(_reason(error)) from error
        finally:
            response.release_conn()

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _read(self, response: Any) -> bytes:
        """Read the body in bounded time and memory; compressed at most once, so that decompression is bounded."""
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            response.close()
            raise UnusableResponseError(f"expected a response in gzip or plain, found `{encoding[:80]}`")
        deadline, body = time.monotonic() + self._longest_response_s, bytearray()
        while chunk := response.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > self._most_bytes:
                response.close()
                raise UnusableResponseError(
                    f"expected a response of up to {self._most_bytes} bytes, found a longer one"
                )
            if time.monotonic() > deadline:
                response.close()
                raise UnusableResponseError(
                    f"expected a response within {self._longest_response_s:.0f} s, found a slower one"
                )
        return bytes(body)


def _reason(error: Exception) -> str:
    """The reason of a failure, without the object names that urllib3 puts before it."""
    inner = getattr(error, "reason", None) or next((a for a in error.args if isinstance(a, Exception)), error)
    text = _NOISE.sub("", str(inner)) or type(inner).__name__
    return text[:300] if text[:2].isupper() else f"{text[:1].lower()}{text[1:300]}"
