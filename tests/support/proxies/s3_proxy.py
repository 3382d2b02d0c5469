"""A network that misbehaves on demand, between a client and a server on this machine."""

import contextlib
import re
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, Self

_METHODS = (b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")


class _Asked(NamedTuple):
    """A request that was passed on, and what is answered in place of the server's answer."""

    method: str
    path: str
    instead: bytes | None


class Proxy:
    """Passes bytes on; `lose_answers` says how many answers to drop, with their connection, from now on.

    `lose_answers_to` does so for one kind of request only, `answer_instead` gives other answers than the server's,
    and without `pass_on` the server does not even get those requests. `hold_answers_to` lets requests arrive and keeps
    their senders waiting; `held` are those that do.
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
        self._holds: tuple[str, re.Pattern[str]] | None = None
        self._released = threading.Event()
        self.held: list[str] = []
        self._counts: Counter[str] = Counter()

    def lose_answers_to(self, method: str, number: int, *, after: int = 0) -> None:
        """Drop so many answers to requests of one method, after letting some pass."""
        start = self._counts[method] + after
        self._lost[method] = range(start, start + number)

    def answer_instead(self, method: str, path: str, answer: bytes) -> None:
        """Let the next request with this in its path land, and give this answer to it; an empty one is none."""
        self._answers.append((method, path, answer))

    def hold_answers_to(self, method: str, path: str) -> None:
        """Keep back the answers to requests of one method whose paths match, until `release`."""
        self._holds = method, re.compile(path)
        self._released.clear()

    def release(self) -> None:
        """Give the answers that were kept back, and keep back no more."""
        self._released.set()

    def all_answered(self) -> bool:
        """Whether every request that was waited for has come."""
        return not self._answers

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
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
            asked: deque[_Asked] = deque()
            self._start(self._pass_requests, client, server, asked)
            self._start(self._pass_answers, client, server, asked)

    def _pass_requests(self, client: socket.socket, server: socket.socket, asked: deque[_Asked]) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if data.startswith(_METHODS):
                    self.requests.append(data.split(b" HTTP/", 1)[0].decode())
                    method, path = self.requests[-1].split(" ", 1)
                    asked.append(_Asked(method, path, self._instead(method, path)))
                if not self.pass_on and asked and asked[-1].instead is not None:
                    client.sendall(asked[-1].instead)
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

    def _is_to_wait(self, request: _Asked) -> bool:
        if self._holds is None or self._released.is_set():
            return False
        method, path = self._holds
        return request.method == method and path.search(request.path) is not None

    def _pass_answers(self, client: socket.socket, server: socket.socket, asked: deque[_Asked]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                request = asked.popleft() if data.startswith(b"HTTP/") and asked else None
                if request and request.instead is not None:
                    client.sendall(request.instead)
                    break
                if request and self._is_to_wait(request):
                    self.held.append(request.path)
                    self._released.wait()
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
