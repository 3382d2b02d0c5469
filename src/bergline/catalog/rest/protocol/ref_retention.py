"""How bergline's server tells clients that it knows the requirement for the retention of a ref, which is our own."""

from typing import Final

REF_RETENTION_PROPERTY: Final = "bergline.assert-ref-retention"
"""The configuration property of a server that checks it."""
