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

    `lose_answers_to` does so for one kind of request only.
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
        self._counts: Counter[str] = Counter()

    def lose_answers_to(self, method: str, number: int, *, after: int = 0) -> None:
        """Drop so many answers to requests of one method, after letting some pass."""
        start = self._counts[method] + after
        self._lost[method] = range(start, start + number)

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
            asked: deque[bool] = deque()
            self._start(self._pass_requests, client, server, asked)
            self._start(self._pass_answers, client, server, asked)

    def _pass_requests(self, client: socket.socket, server: socket.socket, to_lose: deque[bool]) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if data.startswith(_METHODS):
                    self.requests.append(data.split(b" HTTP/", 1)[0].decode())
                    to_lose.append(self._is_to_lose(data.split(b" ", 1)[0].decode()))
                server.sendall(data)
        _close(server)

    def _is_to_lose(self, method: str) -> bool:
        number = self._counts[method]
        self._counts[method] += 1
        return number in self._lost.get(method, ())

    def _pass_answers(self, client: socket.socket, server: socket.socket, to_lose: deque[bool]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if data.startswith(b"HTTP/") and to_lose and to_lose.popleft():
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
