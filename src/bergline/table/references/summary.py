"""Summary entries by which merges, cherry-picks and publishing recognize snapshots, and those that callers may add."""

from typing import Any, Final

from bergline.arguments import check_text, check_texts
from bergline.errors import InvalidInputError
from bergline.format.metadata.snapshot import (
    PUBLISHED_STAGED_WAP_ID,
    REBASED_FROM,
    SOURCE_SNAPSHOT_ID,
    STAGED_WAP_ID,
    Snapshot,
)

SOURCE: Final = SOURCE_SNAPSHOT_ID
"""The snapshot, on another line of history, that this one replays."""
ORIGIN: Final = "origin-snapshot-id"
"""The original snapshot, if the source was itself a replay."""
SQUASHED_SINCE: Final = "squashed-since-snapshot-id"
"""The snapshot after which the squashed history began; the source is its last one. Empty for the beginning."""
SQUASHED: Final = "squashed-snapshot-ids"
"""The original snapshots of all squashed changes, as far as they had not expired."""
REPLACED: Final = "replace-partitions"
"""Whether the snapshot replaced all rows of the partitions that it wrote to."""
REPLACED_AMONG_OTHERS: Final = "replayed-replace-partitions"
"""Whether the snapshot replays one that did; the specification has no entry for that."""
WAP_ID: Final = STAGED_WAP_ID
"""The id that a snapshot was staged under."""
PUBLISHED_WAP_ID: Final = PUBLISHED_STAGED_WAP_ID
"""The id of the staged snapshot that this one replays on a branch."""

_OWN: Final = frozenset(
    {SOURCE, ORIGIN, SQUASHED, SQUASHED_SINCE, WAP_ID, PUBLISHED_WAP_ID, REPLACED, REPLACED_AMONG_OTHERS, REBASED_FROM}
)


def check_summary(given: Any) -> dict[str, str]:
    """A caller's entries; InvalidInputError for those that say what a snapshot replays: merges would skip its rows."""
    summary = {} if given is None else check_texts(given, "summary entry")
    if taken := sorted(_OWN & summary.keys()):
        hints = ["`wap_id` stages a write"] if WAP_ID in taken else []
        raise InvalidInputError(
            f"expected summary entries of your own, found `{taken[0]}`, which bergline writes itself", hints=hints
        )
    return summary


def check_wap_id(wap_id: str) -> str:
    """The WAP id; InvalidInputError if it is empty."""
    if not check_text(wap_id, "text for a WAP id"):
        raise InvalidInputError("expected a WAP id, found empty text")
    return wap_id


def wap_summary(wap_id: str | None) -> dict[str, str]:
    """The entry of a snapshot that is staged under a WAP id; none without one."""
    return {} if wap_id is None else {WAP_ID: check_wap_id(wap_id)}


def published_summary(source: Snapshot) -> dict[str, str]:
    """The entry of a snapshot that replays a staged one."""
    return {PUBLISHED_WAP_ID: wap_id} if (wap_id := source.summary.get(WAP_ID)) else {}
