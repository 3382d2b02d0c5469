"""The JSON of snapshots and of the snapshot log, which grow with history: each value is encoded and decoded once.

Snapshots never change: the JSON of a history is kept with its metadata, and that of the next commit shares it. A file
whose history begins with the same bytes is read from there on.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import ENCODED_LOG, ENCODED_SNAPSHOTS, SnapshotLogEntry, TableMetadata

# ids that no writer assigns: snapshot ids are positive
KNOWN_SNAPSHOTS: Final = Snapshot(snapshot_id=-(2**63), timestamp_ms=0, manifest_list="known")
"""The placeholder for the snapshots that were left out of a file."""
KNOWN_LOG: Final = SnapshotLogEntry(0, -(2**63))
"""The placeholder for the entries of the snapshot log that were left out of a file."""
_PIECE: Final = 2**16


class EncodedArray(msgspec.Struct, frozen=True, gc=False):
    """The JSON of the first values of an array, in pieces to be joined by commas."""

    count: int = 0
    pieces: tuple[bytes, ...] = ()

    def extended(self, values: Sequence[object]) -> "EncodedArray":
        """The JSON of all these values; this object has the first of them already."""
        new = values[self.count :]
        if not new:
            return self
        text = encode_json(new)[1:-1]
        if self.pieces and len(self.pieces[-1]) < _PIECE:  # keep the pieces few; a commit then copies only the last one
            return EncodedArray(len(values), (*self.pieces[:-1], b"%b,%b" % (self.pieces[-1], text)))
        return EncodedArray(len(values), (*self.pieces, text))

    def end_in(self, data: bytes, start: int) -> int | None:
        """Where these values end in an array that begins with them; None if it begins otherwise."""
        for number, piece in enumerate(self.pieces):
            if number:
                if data[start : start + 1] != b",":
                    return None
                start += 1
            if not data.startswith(piece, start):
                return None
            start += len(piece)
        # the array must continue or end here: a value that only begins like the last known one is another
        return start if data[start : start + 1] in (b",", b"]") else None


class _HistoryPart(msgspec.Struct, frozen=True):
    """One of the growing arrays, and the attribute in which metadata caches its JSON."""

    field: str
    kept_as: str
    key: bytes

    def encoded(self, metadata: TableMetadata) -> EncodedArray:
        # A cache beside the fields of the frozen struct: equality, pickling and JSON do not see it
        known: EncodedArray = metadata.__dict__.get(self.kept_as, _NONE)
        metadata.__dict__[self.kept_as] = array = known.extended(getattr(metadata, self.field))
        return array

    def known_in(self, data: bytes, known: TableMetadata, after: int = 0) -> range | None:
        """The range of the known metadata's values in the JSON of a table; None if its array begins otherwise."""
        values, start = getattr(known, self.field), data.find(self.key, after) + len(self.key)
        # compare the first value before all of them, which may have to be encoded first
        if start < len(self.key) or not values or not data.startswith(encode_json(values[0]), start):
            return None
        end = self.encoded(known).end_in(data, start)
        return None if end is None else range(start, end)


_NONE = EncodedArray()
_SNAPSHOTS = _HistoryPart("snapshots", ENCODED_SNAPSHOTS, b',"snapshots":[')
_LOG = _HistoryPart("snapshot_log", ENCODED_LOG, b',"snapshot-log":[')


def snapshots_json(metadata: TableMetadata) -> list[bytes]:
    """The JSON of the table's snapshots as an array, in parts."""
    return _array(_SNAPSHOTS.encoded(metadata))


def snapshot_log_json(metadata: TableMetadata) -> list[bytes]:
    """The JSON of the snapshot log as an array, in parts."""
    return _array(_LOG.encoded(metadata))


def without_known_history(data: bytes, known: TableMetadata) -> bytes | None:
    """The JSON of a table with KNOWN_SNAPSHOTS and KNOWN_LOG in place of what known metadata has; None if it differs.

    The text is not parsed here: the caller must check that both placeholders are where they belong.
    """
    snapshots = _SNAPSHOTS.known_in(data, known)
    if snapshots is None:
        return None
    before = data[: snapshots.start] + encode_json(KNOWN_SNAPSHOTS)
    if not known.snapshot_log:
        return before + data[snapshots.stop :]
    log = _LOG.known_in(data, known, snapshots.stop)
    if log is None:
        return None
    return before + data[snapshots.stop : log.start] + encode_json(KNOWN_LOG) + data[log.stop :]


def _array(encoded: EncodedArray) -> list[bytes]:
    parts: list[bytes] = []
    for piece in encoded.pieces:
        parts += (b",", piece)
    return [b"[", *parts[1:], b"]"]
