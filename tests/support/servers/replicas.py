"""Replicas of `bergline serve` on one PostgreSQL behind a balancer, all of which can be killed and come back."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from support.proxies.balancer import Balancer
from support.servers.bergline_server import BerglineServer
from support.servers.killable_postgres import KillablePostgres


class ReplicaSet:
    """What a supervisor keeps running: whoever ended is started again, as often as that takes."""

    def __init__(self, directory: Path, count: int) -> None:
        self._directory = directory
        self._count = count
        self._stack = ExitStack()
        self.servers: Sequence[BerglineServer] = ()

    def __enter__(self) -> Self:
        self.postgres = self._stack.enter_context(KillablePostgres(self._directory))
        for number in range(self._count):
            place = self._directory / f"replica{number}"
            place.mkdir()
            server = BerglineServer(
                place, "--catalog", self.postgres.uri, "--warehouse", str(self._directory / "warehouse")
            )
            self.servers = (*self.servers, self._stack.enter_context(server))
        self._balancer = self._stack.enter_context(Balancer([server.address for server in self.servers]))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def uri(self) -> str:
        """The address of the balancer."""
        return self._balancer.uri

    def restart(self, server: BerglineServer) -> None:
        """Start a server that ended; one that ends again because the database is not there is started again."""
        for _ in range(20):
            try:
                return server.start()
            except pytest.fail.Exception as error:
                said = str(error)
        raise RuntimeError(said)
