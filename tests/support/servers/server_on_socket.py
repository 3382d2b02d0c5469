"""A server in this process on a real socket, with its own protocol."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from bergline.server.app import Application
from bergline.server.context.context import ServerContext
from bergline.server.http.protocol import guarded_protocol

_LONG_S = 60


@contextlib.contextmanager
def on_socket(
    served: ServerContext, protocol: type[Any] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """Serve on a free loopback port, which is the value; in another protocol where one is given, or over TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)  # what is not read soon stays with the server
        config = uvicorn.Config(
            Application(served),
            http=protocol or guarded_protocol(served.settings),
            ws="none",
            log_level="critical",
            access_log=False,
            timeout_keep_alive=1000,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(_LONG_S)
        assert not thread.is_alive()
