"""Free ports on loopback, for servers that cannot choose one themselves, or that come back to theirs."""

import contextlib
import random
import socket
from pathlib import Path

_LOWEST, _USUAL_END = 10_000, 32_768
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody has now, and that no connection gets for its own end: the system takes those from above."""
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else _USUAL_END
    while True:
        port = random.SystemRandom().randrange(_LOWEST, max(end, _LOWEST + 1000))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
