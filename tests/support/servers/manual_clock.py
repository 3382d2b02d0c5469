"""Time that passes for a server's connections only when a test says so."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from bergline.server.http.protocol import guarded_protocol
from bergline.server.http.settings import ServerSettings

_LONG_S = 60
_TURNS = 20


class ManualClock:
    """The event loop of all connections to a server, but for its timers: those fire when `advance` says so."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[_Timer] = []
        self._loop: Any = None
        self._somebody_came = threading.Event()
        self.connections: list[Any] = []
        """All that there were, oldest first."""

    def protocol(self, settings: ServerSettings) -> type[Any]:
        """The server's protocol, on this clock."""
        clock, guarded = self, guarded_protocol(settings)

        class OnThisClock(guarded):  # type: ignore[misc,valid-type]
            def connection_made(self, transport: asyncio.Transport) -> None:
                clock._loop, self.loop = self.loop, clock
                clock.connections.append(self)
                super().connection_made(transport)
                clock._somebody_came.set()

        return OnThisClock

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: Any) -> "_Timer":
        """As the loop's own."""
        timer = _Timer(self, self._now + delay, lambda: callback(*arguments))
        self._timers.append(timer)
        return timer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def advance(self, seconds: float) -> None:
        """Let time pass when the server has dealt with all that it was sent; returns after what is then due."""
        assert self._somebody_came.wait(_LONG_S), "the server let nobody in"
        self._run(self._advance(seconds))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_LONG_S)

    async def _advance(self, seconds: float) -> None:
        await _turns()
        self._now += seconds
        for timer in [t for t in self._timers if t.due <= self._now]:
            if timer in self._timers:
                timer.cancel()
                timer.fire()
        await _turns()


class _Timer:
    """What `call_later` gives."""

    def __init__(self, clock: ManualClock, due: float, fire: Callable[[], None]) -> None:
        self._clock = clock
        self.due = due
        self.fire = fire

    def cancel(self) -> None:
        """As that of the loop; it may be cancelled, or have fired, already."""
        self._clock._timers = [t for t in self._clock._timers if t is not self]


async def _turns() -> None:
    """In each turn the loop looks at its connections; what it finds there may take some more turns."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
