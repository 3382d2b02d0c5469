"""How long a call waits for another writer on a locked SQLite database, in seconds."""

from typing import Final

DEFAULT_BUSY_TIMEOUT_S: Final = 30.0
LONGEST_BUSY_TIMEOUT_S: Final = 1_000_000
