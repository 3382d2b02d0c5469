"""Events over REST, where they are CloudEvents: the endpoint, and the headers of its responses."""

from bergline.catalog.rest.protocol.endpoints import OWN, Endpoint
from bergline.governance.events.model import CLOUD_EVENTS_BATCH, CloudEvent

POSITION_HEADER = "bergline-position"
"""The header with the position up to which a page of events goes."""
NEWEST_HEADER = "bergline-newest-position"

LIST_EVENTS = Endpoint(
    "list_events",
    "GET",
    f"{OWN}/events",
    response=tuple[CloudEvent, ...],
    queries=("after", "newest", "limit", "type", "subject", "wait"),
    media=CLOUD_EVENTS_BATCH,
)
