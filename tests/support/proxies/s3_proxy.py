"""A network that misbehaves on demand, between a client and a server on this machine."""

import contextlib
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Self

_METHODS = (b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")


class Proxy:
    """Passes bytes on; `lose_answers` says how many answers to drop, with their connection, from now on.

    `lose_answers_to` does so for one kind of request only, `answer_instead` gives other answers than the server's,
    and without `pass_on` the server does not even get those requests.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lose_answers = 0
        self.requests: list[str] = []
        self._lost: dict[str, range] = {}
        self._answers: list[tuple[str, str, bytes]] = []
        self.pass_on = True
        self._counts: Counter[str] = Counter()

    def lose_answers_to(self, method: str, number: int, *, after: int = 0) -> None:
        """Drop so many answers to requests of one method, after letting some pass."""
        start = self._counts[method] + after
        self._lost[method] = range(start, start + number)

    def answer_instead(self, method: str, path: str, answer: bytes) -> None:
        """Let the next request with this in its path land, and give this answer to it; an empty one is none."""
        self._answers.append((method, path, answer))

    def all_answered(self) -> bool:
        """Whether every request that was waited for has come."""
        return not self._answers

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self._sockets):  # a listener that is shut down wakes its thread
            _close(one)
        for thread in self._threads:
            thread.join(timeout=5)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, server]
            asked: deque[bytes | None] = deque()
            self._start(self._pass_requests, client, server, asked)
            self._start(self._pass_answers, client, server, asked)

    def _pass_requests(self, client: socket.socket, server: socket.socket, instead: deque[bytes | None]) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if data.startswith(_METHODS):
                    self.requests.append(data.split(b" HTTP/", 1)[0].decode())
                    instead.append(self._instead(*self.requests[-1].split(" ", 1)))
                if not self.pass_on and instead and instead[-1] is not None:
                    client.sendall(instead[-1])
                    break
                server.sendall(data)
        _close(server)

    def _instead(self, method: str, path: str) -> bytes | None:
        """What is answered in place of the server's answer; None if that is passed on."""
        number = self._counts[method]
        self._counts[method] += 1
        for one in self._answers:
            if one[0] == method and one[1] in path:
                self._answers.remove(one)
                return one[2]
        return b"" if number in self._lost.get(method, ()) else None

    def _pass_answers(self, client: socket.socket, server: socket.socket, instead: deque[bytes | None]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                other = instead.popleft() if data.startswith(b"HTTP/") and instead else None
                if other is not None:
                    client.sendall(other)
                    break
                if self.lose_answers:
                    self.lose_answers -= 1
                    break
                client.sendall(data)
        _close(client)
        _close(server)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
