"""A TCP balancer before replicas: each connection goes to one that lets it in, and breaks with it."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Sequence
from typing import Self

import uvloop

_SIZE = 65536


class Balancer:
    """Knows nothing of health: who does not accept a connection is left out, as long as anybody accepts it."""

    def __init__(self, replicas: Sequence[tuple[str, int]]) -> None:
        self._replicas = list(replicas)
        self._ready = threading.Event()
        self._loop = uvloop.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.uri = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._over.wait()
        server.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for host, port in random.sample(self._replicas, len(self._replicas)):
            with contextlib.suppress(OSError):
                behind_reader, behind_writer = await asyncio.open_connection(host, port)
                await asyncio.gather(_pass_on(reader, behind_writer), _pass_on(behind_reader, writer))
                return
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until either side hangs up; then the other side is hung up on too."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_SIZE):
            writer.write(data)
            await writer.drain()
    writer.close()
