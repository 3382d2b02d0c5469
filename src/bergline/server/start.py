"""Start the server."""

import contextlib
import errno
import ipaddress
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType

import uvicorn

from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.server.access.oidc.issuer_settings import is_loopback
from bergline.server.app import Application
from bergline.server.connection_examples import connection_examples
from bergline.server.context.context import ServerContext
from bergline.server.http.access_log import AccessLog
from bergline.server.http.protocol import guarded_protocol
from bergline.server.http.tls import TlsFiles, TlsSettings
from bergline.server.purge_job import PurgeJob
from bergline.server.reservation_job import ReservationJob
from bergline.server.start_warnings import start_warnings
from bergline.server.webhook_job import WebhookJob

_BACKLOG = 1024
_OWN_FILES = 512
_EVERY_ADDRESS = {"0.0.0.0", "::", ""}  # noqa: S104


def serve(
    context: ServerContext,
    host: str,
    port: int,
    *,
    anonymous: bool,
    say: Callable[[str], None],
    tls: TlsSettings | None = None,
) -> None:
    """Serve until the process is stopped; port 0 takes a free port, which `say` prints."""
    if anonymous:
        context.authenticator.allow_anonymous()
    check_host(host, has_tokens=context.authenticator.has_tokens, anonymous=anonymous)
    if context.credentials.are_given and not context.authenticator.has_tokens and not is_loopback(host):
        raise RefusedError(
            f"cannot hand out credentials on {host} without tokens: every machine that reaches it would get them",
            hints=["make a token with `bergline token create NAME`"],
        )
    files = None if tls is None else TlsFiles(tls, say)
    _raise_file_limit(context.settings.max_connections)
    listening = _listen(host, port)
    url = _url(host, listening.getsockname()[1], "http" if files is None else "https")
    application = Application(context, any_host=anonymous)
    how, proxies = context.settings.access_log, trusted_networks(context.settings.trusted_proxies)
    config = uvicorn.Config(
        application if how is None else AccessLog(application, how, _log),
        http=guarded_protocol(context.settings),
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=30,
        ssl_context_factory=None if files is None else lambda *_: files.context,
    )
    say(connection_examples(context, url))
    for warning in start_warnings(context, host, url, anonymous=anonymous):
        say(f"{warning}\n")
    if shadowed := context.authenticator.shadowed_tokens():
        names = ", ".join(f"`{name}`" for name in shadowed)
        say(f"not accepted, for their principals have names of an issuer's: the tokens {names}\n")
    if context.authenticator.has_issuers:
        threading.Thread(target=fetch_keys, args=(context, say), daemon=True).start()
    if context.authenticator.has_tokens and not context.authenticator.has_issuers and not context.records.tokens.all():
        say(
            "nobody can come in: the last token was revoked; make one with `bergline token create NAME`, "
            "or let everybody in with --anonymous\n"
        )
    purging, reserving = PurgeJob(context), ReservationJob(context)
    jobs = context.request_audit, purging, reserving, WebhookJob(context), context.authenticator.uses
    for job in jobs:
        job.start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when it has ended
    try:
        with files or contextlib.nullcontext():
            _Server(config, application.end_waits).run(sockets=[listening])
    except KeyboardInterrupt:
        say("stopped")
    finally:
        listening.close()
        for job in jobs:
            job.stop()
        context.catalog.close()


def fetch_keys(context: ServerContext, say: Callable[[str], None]) -> None:
    """Get the keys of issuers before the first request needs them; nobody waits for an issuer that does not respond."""
    for problem in context.authenticator.fetch_keys():
        say(f"tokens cannot be checked yet: {problem}")


class _Server(uvicorn.Server):
    """A server that says when it is told to stop, before it waits for its requests."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping()
        super().handle_exit(sig, frame)


def check_host(host: str, *, has_tokens: bool, anonymous: bool) -> None:
    """Refuse to let other machines in without tokens, unless `anonymous`."""
    if has_tokens or anonymous or is_loopback(host):
        return
    raise RefusedError(
        f"cannot serve on {host} without tokens: every machine that reaches it could change every table",
        hints=["make a token with `bergline token create`, in the same --catalog", "let everybody in with --anonymous"],
    )


def trusted_networks(proxies: Iterable[str]) -> list[str]:
    """The networks of proxies that are believed; InvalidInputError for what is no address or network."""
    try:
        return [str(ipaddress.ip_network(proxy, strict=False)) for proxy in proxies]
    except ValueError as error:
        raise InvalidInputError(
            f"expected addresses or networks of trusted proxies, such as 127.0.0.1 or 10.0.0.0/8: {error}"
        ) from None


def _log(line: str) -> None:
    sys.stderr.write(line)
    sys.stderr.flush()


def _raise_file_limit(connections: int) -> None:
    """Raise the limit of open files to what the connections need, if possible."""
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + _OWN_FILES
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        hints = ["another program has the port: take another with --port"] if error.errno == errno.EADDRINUSE else []
        raise UnavailableError(
            f"cannot listen on {host} port {port}: {error.strerror or error}", hints=hints
        ) from error


def _url(host: str, port: int, scheme: str) -> str:
    """The URL for clients; with the machine's name if the server listens on every address."""
    if host in _EVERY_ADDRESS:
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"
