"""Sequence number inheritance: the only place where sequence numbers are omitted, assigned and inherited.

New entries are written without sequence numbers; the manifest list assigns one to their manifest, and readers inherit
it. So a commit that lost the race rewrites one manifest list, never a manifest. Existing entries
store their sequence numbers in the manifest, where they never change again. Row ids (v3) are inherited the same way:
the list assigns each manifest its first row id, and files without one count on from there.

Every rule exists twice, for single entries and for columns; a property test checks that the two agree.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
import polars as pl

from bergline.errors import FormatError
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile

MANIFEST = "manifest"
"""The column with the index of the manifest that an entry in a batch came from."""
_MAX_LONG = 2**63 - 1
_ADDED, _DELETED = int(EntryStatus.ADDED), int(EntryStatus.DELETED)


def added_entry(file: DataFile, snapshot_id: int | None = None) -> ManifestEntry:
    """The entry of a new file: without sequence numbers, so that every attempt can use it. v1 needs a snapshot id."""
    if file.first_row_id is not None:
        file = msgspec.structs.replace(file, first_row_id=None)
    return ManifestEntry(EntryStatus.ADDED, file, snapshot_id)


def existing_entry(entry: ManifestEntry) -> ManifestEntry:
    """An inherited entry carried over to a rewritten manifest, with explicit sequence numbers from now on."""
    return msgspec.structs.replace(_check_resolved(entry), status=EntryStatus.EXISTING)


def deleted_entry(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """The tombstone of an inherited entry, written by the snapshot that removes the file."""
    return msgspec.structs.replace(_check_resolved(entry), status=EntryStatus.DELETED, snapshot_id=snapshot_id)


def assign_numbers(manifests: Iterable[ManifestFile], snapshot_id: int, sequence_number: int) -> list[ManifestFile]:
    """Assign the commit's sequence number to new manifests of a manifest list; existing ones keep theirs."""
    return [_assigned(m, snapshot_id, sequence_number) for m in manifests]


def assign_row_ids(manifests: Iterable[ManifestFile], next_row_id: int) -> tuple[list[ManifestFile], int]:
    """Assign first row ids to the manifests of a v3 manifest list; also returns how many ids were used.

    Every data manifest without one gets a range, even from before v3; existing rows count too: some may lack an id.
    """
    assigned, counter = [], next_row_id
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            if manifest.added_rows_count is None or manifest.existing_rows_count is None:
                raise FormatError(f"expected row counts to assign row ids, found none for {manifest.manifest_path}")
            assigned.append(msgspec.structs.replace(manifest, first_row_id=counter))
            counter += manifest.added_rows_count + manifest.existing_rows_count
        elif manifest.first_row_id == (first := _first_row_id(manifest)):
            assigned.append(manifest)
        else:
            assigned.append(msgspec.structs.replace(manifest, first_row_id=first))
    return assigned, counter - next_row_id


def inherit(entries: Iterable[ManifestEntry], manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Entries as readers see them: nulls are inherited from the manifest's row in the manifest list."""
    number = _number(manifest)
    counter = _first_row_id(manifest)
    for entry in entries:
        _check_static(entry, manifest, number)
        file, row_id = entry.data_file, entry.data_file.first_row_id
        if counter is None:
            row_id = None  # written before v3
        elif row_id is None and entry.is_live:
            row_id, counter = _row_id(counter), counter + file.record_count
        if file.spec_id != manifest.partition_spec_id or file.first_row_id != row_id:
            file = msgspec.structs.replace(file, spec_id=manifest.partition_spec_id, first_row_id=row_id)
        yield ManifestEntry(
            status=entry.status,
            data_file=file,
            snapshot_id=manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
            sequence_number=number if entry.sequence_number is None else entry.sequence_number,
            file_sequence_number=number if entry.file_sequence_number is None else entry.file_sequence_number,
        )


def inherit_columns(frames: Sequence[pl.DataFrame], manifests: Sequence[ManifestFile]) -> pl.DataFrame:
    """`inherit` for the entries of many manifests in one frame; MANIFEST identifies the manifest of each."""
    ends = pl.Series(accumulate(frame.height for frame in frames), dtype=pl.Int64)
    where = ends.search_sorted(pl.int_range(0, ends[-1], eager=True), side="right").cast(pl.UInt32).alias(MANIFEST)
    batch = entries_together(frames)
    number = pl.Series("number", [_number(m) for m in manifests], pl.Int64).gather(where)
    snapshot_id = pl.Series("added", [m.added_snapshot_id for m in manifests], pl.Int64).gather(where)
    batch = batch.with_columns(where, number, snapshot_id)
    _check_static_columns(batch, manifests)
    try:
        return batch.with_columns(
            pl.col("snapshot_id").fill_null(pl.col("added")),
            pl.col("sequence_number").fill_null(pl.col("number")),
            pl.col("file_sequence_number").fill_null(pl.col("number")),
            _row_ids(manifests, where),
        ).drop("number", "added")
    except pl.exceptions.InvalidOperationError as error:  # a value that does not fit its column
        raise _too_many_rows() from error


def entries_together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The entries of several frames in one; partition fields that a frame lacks are null there."""
    try:
        return pl.concat(frames, rechunk=False)
    except pl.exceptions.PolarsError:  # different partition fields, or a partition type that was promoted since
        pass
    try:
        return pl.concat(frames, how="diagonal_relaxed", rechunk=False)
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"expected partition values of one type in all manifests of a spec, found {error}") from error


def _row_ids(manifests: Sequence[ManifestFile], where: pl.Series) -> pl.Expr:
    starts = [_first_row_id(m) for m in manifests]
    if all(start is None for start in starts):
        return pl.lit(None, pl.Int64).alias("first_row_id")
    start = pl.lit(pl.Series(starts, dtype=pl.Int64).gather(where))
    inherits = pl.col("first_row_id").is_null() & (pl.col("status") != _DELETED)
    # 128 bits, so that an overflow is an error instead of a small number
    rows = pl.when(inherits).then(pl.col("record_count")).otherwise(0).cast(pl.Int128)
    counted = pl.when(inherits).then(start + rows.cum_sum().over(MANIFEST) - rows).cast(pl.Int64, strict=True)
    known = pl.when(start.is_null()).then(None).otherwise(pl.col("first_row_id"))
    return pl.when(inherits).then(counted).otherwise(known).alias("first_row_id")


def _number(manifest: ManifestFile) -> int:
    if manifest.sequence_number is None:
        raise FormatError(f"expected a sequence number for the manifest, found none for {manifest.manifest_path}")
    return manifest.sequence_number


def _first_row_id(manifest: ManifestFile) -> int | None:
    """The first row id; only data files have one, whatever a writer stored for delete files."""
    return manifest.first_row_id if manifest.content is ManifestContent.DATA else None


def _row_id(number: int) -> int:
    if number > _MAX_LONG:
        raise _too_many_rows()
    return number


def _too_many_rows() -> FormatError:
    return FormatError("expected row ids of 64 bits, found record counts that go beyond them")


def _check_static(entry: ManifestEntry, manifest: ManifestFile, number: int) -> None:
    # spec: sequence-number-inheritance. Sequence number 0 in the list marks a v1 manifest, where every entry has 0.
    may_inherit = entry.status is EntryStatus.ADDED or number == 0
    if not may_inherit and (entry.sequence_number is None or entry.file_sequence_number is None):
        raise _not_static(entry.data_file.file_path, manifest)


def _check_static_columns(batch: pl.DataFrame, manifests: Sequence[ManifestFile]) -> None:
    unnumbered = pl.col("sequence_number").is_null() | pl.col("file_sequence_number").is_null()
    wrong = batch.lazy().filter(unnumbered & (pl.col("status") != _ADDED) & (pl.col("number") != 0))
    first = wrong.select("file_path", MANIFEST).head(1).collect()
    if first.height:
        raise _not_static(first["file_path"][0], manifests[first[MANIFEST][0]])


def _not_static(path: str, manifest: ManifestFile) -> FormatError:
    return FormatError(
        f"expected static sequence numbers on the carried-forward entry of {path}, "
        f"found null in {manifest.manifest_path}"
    )


def _assigned(manifest: ManifestFile, snapshot_id: int, sequence_number: int) -> ManifestFile:
    if manifest.sequence_number is not None:
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise FormatError(
            f"expected a number on the manifest of snapshot {manifest.added_snapshot_id}, "
            f"found none for {manifest.manifest_path} while committing {snapshot_id}"
        )
    # a manifest with older existing entries keeps their smallest sequence number as its minimum
    minimum = sequence_number if manifest.min_sequence_number is None else manifest.min_sequence_number
    return msgspec.structs.replace(
        manifest, sequence_number=sequence_number, min_sequence_number=min(minimum, sequence_number)
    )


def _check_resolved(entry: ManifestEntry) -> ManifestEntry:
    if entry.snapshot_id is None or entry.sequence_number is None or entry.file_sequence_number is None:
        raise FormatError(
            f"expected resolved numbers on a carried-forward entry, found null for {entry.data_file.file_path}"
        )
    return entry
