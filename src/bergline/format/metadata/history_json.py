"""The JSON of snapshots and of the snapshot log, which grow with history: each value is encoded once.

Snapshots never change: the JSON of a history is kept with its metadata, and that of the next commit shares it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.table_metadata import ENCODED_LOG, ENCODED_SNAPSHOTS, TableMetadata

_PIECE: Final = 2**16


class EncodedArray(msgspec.Struct, frozen=True, gc=False):
    """The JSON of the first values of an array, in pieces that need commas between them."""

    count: int = 0
    pieces: tuple[bytes, ...] = ()

    def extended(self, values: Sequence[object]) -> "EncodedArray":
        """The JSON of all these values, of which this one has the first."""
        new = values[self.count :]
        if not new:
            return self
        text = encode_json(new)[1:-1]
        if self.pieces and len(self.pieces[-1]) < _PIECE:  # few pieces, of which commits copy the last alone
            return EncodedArray(len(values), (*self.pieces[:-1], b"%b,%b" % (self.pieces[-1], text)))
        return EncodedArray(len(values), (*self.pieces, text))


def snapshots_json(metadata: TableMetadata) -> list[bytes]:
    """The JSON of the table's snapshots as an array, in parts."""
    return _parts(metadata, ENCODED_SNAPSHOTS, metadata.snapshots)


def snapshot_log_json(metadata: TableMetadata) -> list[bytes]:
    """The JSON of the snapshot log as an array, in parts."""
    return _parts(metadata, ENCODED_LOG, metadata.snapshot_log)


def _parts(metadata: TableMetadata, kept_as: str, values: Sequence[object]) -> list[bytes]:
    known: EncodedArray = metadata.__dict__.get(kept_as, _NONE)
    metadata.__dict__[kept_as] = array = known.extended(values)
    return [b"[", *_with_commas(array.pieces), b"]"]


def _with_commas(pieces: Iterable[bytes]) -> list[bytes]:
    parts: list[bytes] = []
    for piece in pieces:
        parts += (b",", piece)
    return parts[1:]


_NONE = EncodedArray()
