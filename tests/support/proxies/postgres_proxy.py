"""A TCP proxy before a PostgreSQL server's socket: for clients that know no sockets, and to be cut off mid-sentence."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import sqlalchemy as sa

_SIZE = 65536
Cut = Callable[[bytes], str | bytes | None]


class PostgresProxy:
    """Passes bytes on, both ways; `cut` is asked about everything that a client sends.

    It may answer "before", and the server never gets it; "after", and the client never hears what came of it; or
    "amid", and the client is hung up on while the server is at it. Bytes are what the client gets in place of what the
    server says.
    """

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut: Cut = lambda _: None
        self.is_shut = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Hang up on everybody, and let nobody in until `is_shut` says otherwise: a database that is down."""
        self.is_shut = True
        self._hang_up(*self._open)

    def close(self) -> None:
        """Let go of the port."""
        self._listener.close()
        self._hang_up(*self._open)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_shut:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._socket_path)
                self._open += (client, server)
                is_deaf, instead = threading.Event(), list[bytes]()
                for pass_along in (self._pass_on, self._pass_back):
                    threading.Thread(target=pass_along, args=(client, server, is_deaf, instead), daemon=True).start()

    def _pass_on(
        self, client: socket.socket, server: socket.socket, is_deaf: threading.Event, instead: list[bytes]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_SIZE):
                where = self.cut(data)
                if isinstance(where, bytes):
                    instead.append(where)
                if where == "before":
                    break
                if where in {"amid", "after"}:
                    is_deaf.set()
                if where == "amid":
                    client.shutdown(socket.SHUT_RDWR)
                server.sendall(data)
                if is_deaf.is_set():
                    server.shutdown(socket.SHUT_WR)  # it finishes what it got and then ends, which hangs up on both
                    return
        self._hang_up(client, server)

    def _pass_back(
        self, client: socket.socket, server: socket.socket, is_deaf: threading.Event, instead: list[bytes]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_SIZE):
                if not is_deaf.is_set():
                    client.sendall(instead.pop() if instead else data)
        self._hang_up(client, server)

    def _hang_up(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def server_error(sqlstate: str, severity: str = "ERROR") -> bytes:
    """What a server, or a pooler before it, sends for an error with this code."""
    fields = b"".join(
        code + value.encode() + b"\0"
        for code, value in ((b"S", severity), (b"V", severity), (b"C", sqlstate), (b"M", "no"))
    )
    return b"E" + struct.pack("!I", len(fields) + 5) + fields + b"\0" + b"Z" + struct.pack("!I", 5) + b"I"


@contextlib.contextmanager
def postgres_proxy(uri: str) -> Iterator[tuple[PostgresProxy, str]]:
    """A proxy before the server at a URI, and the URI through it."""
    url = sa.make_url(uri)
    directory = url.query.get("host")
    assert isinstance(directory, str)
    proxy = PostgresProxy(f"{directory}/.s.PGSQL.{url.query.get('port', 5432)}")
    through = url.set(host="127.0.0.1", port=proxy.port, query={}, drivername="postgresql")
    try:
        yield proxy, through.render_as_string(hide_password=False)
    finally:
        proxy.close()
