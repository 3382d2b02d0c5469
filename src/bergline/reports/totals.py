"""The totals of a snapshot, from its summary: no manifest is read."""

from collections.abc import Mapping

import msgspec

from bergline.format.metadata.snapshot import Snapshot

_LONGEST = 19


class Totals(msgspec.Struct, frozen=True):
    """What a snapshot holds; None if its writer did not record it."""

    rows: int | None = None
    """The rows of the data files, before deletes."""
    bytes: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    position_deletes: int | None = None
    equality_deletes: int | None = None


def totals_of(snapshot: Snapshot | None) -> Totals:
    """The totals of a snapshot; zeros for a table without any."""
    if snapshot is None:
        return Totals(0, 0, 0, 0, 0, 0)
    summary = snapshot.summary
    return Totals(
        *(
            summary_number(summary, f"total-{key}")
            for key in (
                "records",
                "files-size",
                "data-files",
                "delete-files",
                "position-deletes",
                "equality-deletes",
            )
        )
    )


def summary_number(summary: Mapping[str, str], key: str) -> int | None:
    """A count in a summary; None if it is missing or not a number."""
    text = summary.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST else None
