"""The console of `bergline ui`: over any lake, for whoever sits at this machine."""

import contextlib
import getpass
import socket
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import uvicorn

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller
from bergline.console.web.app import Console
from bergline.errors import UnavailableError
from bergline.lake.lake import Lake
from bergline.server.access.cross_origin import check_cross_origin, check_loopback_name

_Done = TypeVar("_Done")
_LOOPBACK = "127.0.0.1"


class LocalLake:
    """A lake on this machine's own account, as a host of the console."""

    needs_token = False

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._user = _user()

    @property
    def lake(self) -> Lake:
        """The lake that was opened."""
        return self._lake

    def lake_for(self, caller: Caller) -> Lake:
        """The same for everybody: who opened it has the database."""
        del caller
        return self._lake

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Only pages of ours, under a name of this machine."""
        check_loopback_name(headers)
        check_cross_origin(headers, any_host=False)

    def caller(self, token: str | None) -> Caller:
        """Whoever started it."""
        del token
        return Caller(self._user)

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


def show_lake(lake: Lake, port: int, *, say: Callable[[str], None], started: Callable[[str], None]) -> None:
    """Serve the console on loopback until the process is stopped; `started` is called with its address."""
    try:
        listening = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on {_LOOPBACK} port {port}: {error.strerror or error}",
            hints=["another program may have the port: take another with --port, or a free one with --port 0"],
        ) from error
    url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}/"
    config = uvicorn.Config(
        Console(LocalLake(lake)),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    say(f"showing `{lake.name}` at {url}; Ctrl-C ends it")
    started(url)
    with listening, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "anonymous"
