"""The console of `bergline ui`: over any lake, for whoever sits at this machine."""

import contextlib
import hmac
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import uvicorn

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, current_caller
from bergline.errors import RefusedError, UnavailableError
from bergline.lake.at_ref import catalog_at_ref
from bergline.lake.lake import Lake
from bergline.reports.row_job import JobResult, RowJob
from bergline.server.access.cross_origin import check_cross_origin, check_loopback_name
from bergline.server.console.app import Console
from bergline.server.planning.row_reading import RowReading

_Done = TypeVar("_Done")
_LOOPBACK = "127.0.0.1"
_SECRET_BYTES = 32


class LocalLake:
    """A lake on this machine's own account, as a host of the console, for those who know its secret.

    A ticket stands for the secret once: the command line with which a browser is opened is for all users to read.
    """

    needs_token = False
    browser_sign_in = None
    public_url = None

    def __init__(self, lake: Lake, secret: str) -> None:
        self._lake = lake
        self._user = current_caller().name or "anonymous"
        self._row_reading = RowReading(lake.catalog.io)
        self._secret = secret
        self._lock = threading.Lock()
        self._tickets: set[str] = set()

    def new_ticket(self) -> str:
        """What can be sent for the secret, once."""
        ticket = new_secret()
        with self._lock:
            self._tickets.add(ticket)
        return ticket

    @property
    def lake(self) -> Lake:
        """The lake that was opened."""
        return self._lake

    def lake_for(self, caller: Caller, at: LakeRef | None = None) -> Lake:
        """The same for everybody: who opened it has the database."""
        del caller
        return self._lake if at is None else Lake(catalog_at_ref(self._lake.catalog, at), self._lake.name)

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Only pages of ours, under a name of this machine."""
        check_loopback_name(headers)
        check_cross_origin(headers, any_host=False)

    def token_for(self, ticket: str) -> str | None:
        """The secret, for itself or for a ticket."""
        with self._lock:
            is_ticket = ticket in self._tickets
            self._tickets.discard(ticket)
        return self._secret if is_ticket or self._is_secret(ticket) else None

    def caller(self, token: str | None, address: str) -> Caller:
        """Whoever started it; RefusedError without the secret."""
        del address
        if token is None or not self._is_secret(token):
            raise RefusedError(
                "expected the secret of this console, found none or another",
                hints=[
                    "open the whole address that `bergline ui` printed, with `?token=…`: this browser keeps it then",
                    "programs send it as `Authorization: Bearer …`",
                ],
            )
        return Caller(self._user)

    def read_rows(self, caller: Caller, job: RowJob[JobResult]) -> JobResult:
        """By a worker process: whoever wrote the files may be a stranger."""
        return self._row_reading.read(caller.name, job)

    def close(self) -> None:
        """End the worker process."""
        self._row_reading.close()

    def change(
        self,
        caller: str,
        action: str,
        table: TableName,
        act: Callable[[], _Done],
        groups: Collection[str] = (),
    ) -> _Done:
        """Through the lake, as from Python."""
        del caller, action, table, groups
        return act()

    def change_pull_request(
        self, caller: str, action: str, number: int, act: Callable[[], _Done], groups: Collection[str] = ()
    ) -> _Done:
        """Through the lake, as from Python."""
        del caller, action, number, groups
        return act()

    def _is_secret(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self._secret.encode())


def new_secret() -> str:
    """A text that nobody guesses."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def show_lake(lake: Lake, port: int, *, say: Callable[[str], None], started: Callable[[str], None]) -> None:
    """Serve the console on loopback until the process is stopped; `started` is called with its address, good once."""
    try:
        listening = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on {_LOOPBACK} port {port}: {error.strerror or error}",
            hints=["another program may have the port: take another with --port, or a free one with --port 0"],
        ) from error
    url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}/"
    host = LocalLake(lake, secret := new_secret())
    config = uvicorn.Config(
        Console(host),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    say(f"showing `{lake.name}` at {url}?token={secret} to who has this address; Ctrl-C ends it")
    started(f"{url}?token={host.new_ticket()}")
    with listening, contextlib.closing(host), contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])
