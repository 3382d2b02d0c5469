"""TLS of the server: certificates from files, which new connections get as soon as the files change."""

import os
import signal
import ssl
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

import msgspec

from bergline.errors import InvalidInputError

_LOOKED_AT_EVERY_S = 5.0
_Seen = tuple[tuple[int, int, int], ...]


class TlsSettings(msgspec.Struct, frozen=True):
    """Where certificate, key and, for certificates of clients, their authorities are, as PEM."""

    certificate: str
    key: str
    client_ca: str | None = None
    """If given, nobody connects without a certificate of one of these authorities."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files."""
        return (self.certificate, self.key, *([self.client_ca] if self.client_ca else []))


class TlsContext(ssl.SSLContext):
    """A context whose new connections are those of another one, which can be exchanged whole."""

    newest: ssl.SSLContext

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """A connection by the newest context; both event loops make connections so."""
        return self.newest.wrap_bio(*arguments, **named)


class TlsFiles:
    """Looks after the files of certificates while it is entered: SIGHUP, or a change, has them read again."""

    def __init__(self, settings: TlsSettings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._seen = _seen(settings)
        self.context = TlsContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.newest = make_context(settings)
        self._asked = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._look, name="tls-files", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._previous: Any = None
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGHUP, self._hung_up)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGHUP, self._previous)
        self._is_over = True
        self._asked.set()
        self._thread.join()

    def reload(self) -> bool:
        """Read the files again; if they are not right, what they were before stays, and it is said."""
        self._seen = _seen(self._settings)
        try:
            self.context.newest = make_context(self._settings)
        except InvalidInputError as error:
            self._say(f"the certificate stays as it was: {error}")
            return False
        self._say(f"new connections get the certificate in {self._settings.certificate} as it is now")
        return True

    def _hung_up(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._asked.set()

    def _look(self) -> None:
        while True:
            is_asked = self._asked.wait(_LOOKED_AT_EVERY_S)
            self._asked.clear()
            if self._is_over:
                return
            if is_asked or _seen(self._settings) != self._seen:
                self.reload()


def make_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context for TLS 1.2 and later; InvalidInputError says which file is not right."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise _wrong("--tls-cert and --tls-key", f"{settings.certificate}, {settings.key}", error) from error
    if settings.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cafile=settings.client_ca)
        except (OSError, ValueError) as error:
            raise _wrong("--tls-client-ca", settings.client_ca, error) from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a passphrase, which nobody could type")


def _wrong(options: str, files: str, error: Exception) -> InvalidInputError:
    why = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    reason = why or getattr(error, "reason", None) or str(error)
    return InvalidInputError(
        f"expected PEM files for {options}, a certificate with its chain and the key that belongs to it, "
        f"found {files}: {reason}"
    )


def _seen(settings: TlsSettings) -> _Seen:
    """What tells whether a file is another one; a link may lead to another file."""
    return tuple(_seen_file(path) for path in settings.files)


def _seen_file(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
