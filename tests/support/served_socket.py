"""A server in this process on a real socket, with its own protocol."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn

from bergline.server.app import Application
from bergline.server.protocol import guarded_protocol
from bergline.server.served import Served


@contextlib.contextmanager
def on_socket(served: Served) -> Iterator[int]:
    """Serve on a free loopback port, which is the value."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        protocol = guarded_protocol(served.settings)
        config = uvicorn.Config(Application(served), http=protocol, ws="none", log_level="critical", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
