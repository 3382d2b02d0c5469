"""How bergline's server tells clients that a refusal is the one answer to an idempotency key."""

from typing import Final

IDEMPOTENCY_KEY_HEADER: Final = "Idempotency-Key"
"""With a request: its key."""
REFUSED_KEY_HEADER: Final = "bergline-refused-key"
"""With a refusal that was recorded for a key: that key. No request with it changes anything any more."""
