"""Manifest lists and manifests: each is read once, and compared with what refers to it.

A list says how many files and rows a manifest has, which numbers it was given, and by which spec it is partitioned.
Entries that inherit their numbers are resolved, as a reader would.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec
import polars as pl

from bergline.errors import BerglineError, FormatError
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.columns import read_manifest_columns
from bergline.format.manifest.inheritance import inherit_columns
from bergline.format.manifest.manifest import EntryStatus, FileContent, ManifestContent, ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.partition.columns import check_partition
from bergline.format.partition.sort_order import UNSORTED
from bergline.io.fileio import FileIO
from bergline.reports.check.findings import RESTORE, Findings
from bergline.scan.manifest_cache import FreshReads
from bergline.scan.manifests import load_manifest_list, spec_of

READERS = 16
_AT_ONCE = 64
_MOST_BYTES = 2**30
_REWRITE = "rewrite the manifests of the table, once its files are intact"
_RECREATE = "restore the manifest; a rewrite of manifests would only carry the wrong value forward"
_COLUMNS = {
    "file_path": pl.String,
    "content": pl.Int32,
    "file_format": pl.String,
    "record_count": pl.Int64,
    "file_size_in_bytes": pl.Int64,
    "sequence_number": pl.Int64,
    "first_row_id": pl.Int64,
    "counts_rows": pl.Boolean,
    "referenced_data_file": pl.String,
    "content_offset": pl.Int64,
    "content_size_in_bytes": pl.Int64,
    "encrypted": pl.Boolean,
    "manifest": pl.UInt32,
}
PhaseProgress = Callable[[str, int, int], object]
"""Called with what is being checked, how many are done, and how many there are."""


class ListedManifests(NamedTuple):
    """The manifests of all snapshots: each once, and by snapshot as positions in `manifests`.

    First row ids are those of each list: two branches may give a manifest from before v3 different ones.
    """

    manifests: list[ManifestFile]
    by_snapshot: dict[int, list[int]]
    first_row_ids: dict[int, dict[int, int | None]]

    def snapshots_of(self) -> list[set[int]]:
        """The snapshots that need each manifest."""
        needed: list[set[int]] = [set() for _ in self.manifests]
        for snapshot, positions in self.by_snapshot.items():
            for position in positions:
                needed[position].add(snapshot)
        return needed


def check_manifest_lists(
    io: FileIO, metadata: TableMetadata, findings: Findings, progress: PhaseProgress
) -> ListedManifests:
    """Read the manifest lists of all snapshots; those that cannot be read are findings."""
    fresh = FreshReads()

    def read(snapshot: Snapshot) -> list[ManifestFile] | None:
        try:
            return load_manifest_list(io, snapshot, fresh)
        except BerglineError as error:
            place = snapshot.manifest_list or f"the manifests of snapshot {snapshot.snapshot_id}"
            findings.unreadable("manifest list", place, error, snapshots=[snapshot.snapshot_id])
            return None

    found = ListedManifests([], {}, {})
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    positions: dict[str, int] = {}
    with ThreadPoolExecutor(READERS, thread_name_prefix="bergline-check") as threads:
        for done, (snapshot, manifests) in enumerate(
            zip(metadata.snapshots, threads.map(read, metadata.snapshots), strict=True)
        ):
            progress("manifest lists", done + 1, len(metadata.snapshots))
            if manifests is None:
                continue
            _check_list(snapshot, manifests, metadata, findings)
            for manifest in manifests:
                position = positions.setdefault(manifest.manifest_path, len(found.manifests))
                if position == len(found.manifests):
                    found.manifests.append(manifest)
                else:
                    _check_same(found.manifests[position], manifest, snapshot, findings)
            found.by_snapshot[snapshot.snapshot_id] = [positions[m.manifest_path] for m in manifests]
            if snapshot.snapshot_id in heads:
                first = {positions[m.manifest_path]: m.first_row_id for m in manifests}
                found.first_row_ids[snapshot.snapshot_id] = first
    return found


def check_manifests(
    io: FileIO, metadata: TableMetadata, listed: ListedManifests, findings: Findings, progress: PhaseProgress
) -> pl.DataFrame:
    """Read every manifest once; the live entries of those that can be read, with their numbers inherited."""
    needed = listed.snapshots_of()
    frames = [pl.DataFrame(schema=_COLUMNS)]
    orders = {UNSORTED.order_id, *(order.order_id for order in metadata.sort_orders)}

    def read(position: int) -> pl.DataFrame | None:
        manifest = listed.manifests[position]
        frame = _read(io, manifest, needed[position], findings)
        if frame is None:
            return None
        check = _ManifestCheck(manifest, frame, metadata, needed[position], findings)
        check.run(orders)
        return check.live_entries(position)

    with ThreadPoolExecutor(READERS, thread_name_prefix="bergline-check") as threads:
        for start in range(0, len(listed.manifests), _AT_ONCE):  # so that only few whole manifests are in memory
            some = range(start, min(start + _AT_ONCE, len(listed.manifests)))
            frames += [frame for frame in threads.map(read, some) if frame is not None]
            progress("manifests", some.stop, len(listed.manifests))
    return pl.concat(frames)


def _check_list(
    snapshot: Snapshot, manifests: Sequence[ManifestFile], metadata: TableMetadata, findings: Findings
) -> None:
    """Compare a list with its snapshot and with the table."""
    number = snapshot.snapshot_id
    place = snapshot.manifest_list or f"the manifests of snapshot {number}"
    for path, count in Counter(m.manifest_path for m in manifests).items():
        if count > 1:
            message = f"snapshot {number} lists the manifest {path} {count} times: its rows are read that many times"
            findings.error("manifest-listed-twice", place, message, RESTORE, snapshots=[number])
    for manifest in manifests:
        sequence, minimum = manifest.sequence_number, manifest.min_sequence_number
        if sequence is None:
            message = f"expected a sequence number for {manifest.manifest_path}, found none"
            findings.error("sequence-number-missing", place, message, RESTORE, snapshots=[number])
        elif sequence > snapshot.sequence_number:
            message = (
                f"expected sequence numbers up to {snapshot.sequence_number} of snapshot {number}, "
                f"found {sequence} for {manifest.manifest_path}"
            )
            findings.error("sequence-number-too-high", place, message, RESTORE, snapshots=[number])
        elif minimum is not None and minimum > sequence:
            message = f"expected min-sequence-number up to {sequence}, found {minimum} for {manifest.manifest_path}"
            findings.error("sequence-number-too-high", place, message, RESTORE, snapshots=[number])
        _check_row_ids(snapshot, manifest, metadata, place, findings)
    _check_totals(snapshot, manifests, place, findings)


def _check_row_ids(
    snapshot: Snapshot, manifest: ManifestFile, metadata: TableMetadata, place: str, findings: Findings
) -> None:
    if metadata.format_version < ROW_LINEAGE_VERSION or manifest.content is not ManifestContent.DATA:
        return
    if manifest.first_row_id is None:
        if snapshot.first_row_id is not None:
            message = f"expected a first-row-id for {manifest.manifest_path}, found none"
            findings.error("row-ids-missing", place, message, RESTORE, snapshots=[snapshot.snapshot_id])
        return
    if manifest.first_row_id > metadata.next_row_id:
        message = (
            f"expected a first-row-id up to next-row-id {metadata.next_row_id}, "
            f"found {manifest.first_row_id} for {manifest.manifest_path}"
        )
        mend = "register an earlier metadata file, and repeat later commits: new rows would get ids that are taken"
        findings.error("row-ids-beyond-next", place, message, mend)


def _check_totals(snapshot: Snapshot, manifests: Sequence[ManifestFile], place: str, findings: Findings) -> None:
    """Compare the totals in a snapshot's summary with its list; lists of v1 may have no counts."""
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    totals = {
        "total-records": _sum(data, "added_rows_count", "existing_rows_count"),
        "total-data-files": _sum(data, "added_files_count", "existing_files_count"),
        "total-delete-files": _sum(deletes, "added_files_count", "existing_files_count"),
    }
    for key, listed in totals.items():
        stated = snapshot.summary.get(key)
        if stated is not None and listed is not None and stated != str(listed):
            message = f"the summary of snapshot {snapshot.snapshot_id} says {key} {stated}, its manifest list {listed}"
            mend = "none is needed for reads; later snapshots continue from the wrong total"
            findings.warning("summary-totals", place, message, mend)


def _sum(manifests: Sequence[ManifestFile], *columns: str) -> int | None:
    values = [getattr(manifest, column) for manifest in manifests for column in columns]
    return None if None in values else sum(values)


def _check_same(before: ManifestFile, now: ManifestFile, snapshot: Snapshot, findings: Findings) -> None:
    """A manifest has the same numbers in every list."""
    for column in ("manifest_length", "partition_spec_id", "content", "sequence_number"):
        known, found = getattr(before, column), getattr(now, column)
        if found != known:
            message = (
                f"expected {column.replace('_', '-')} {known} of {now.manifest_path} in every manifest list, "
                f"found {found} in that of snapshot {snapshot.snapshot_id}"
            )
            place = snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}"
            findings.error("manifest-lists-disagree", place, message, RESTORE, snapshots=[snapshot.snapshot_id])


def _read(io: FileIO, manifest: ManifestFile, needed: set[int], findings: Findings) -> pl.DataFrame | None:
    path = manifest.manifest_path
    if manifest.key_metadata is not None:
        findings.warning("manifest-unsupported", path, "the manifest is encrypted", "check it with its engine")
        return None
    try:
        data = io.read(path, _MOST_BYTES)
        if len(data) != manifest.manifest_length:
            message = f"expected {manifest.manifest_length:,} bytes, found {len(data):,}"
            findings.error("manifest-size", path, message, RESTORE, snapshots=needed)
        return read_manifest_columns(data, path)
    except BerglineError as error:
        findings.unreadable("manifest", path, error, snapshots=needed)
        return None


class _ManifestCheck:
    """One manifest: its row in the lists, its entries, and the snapshots that need it."""

    def __init__(
        self, manifest: ManifestFile, frame: pl.DataFrame, metadata: TableMetadata, needed: set[int], findings: Findings
    ) -> None:
        self._manifest = manifest
        self._frame = frame
        self._metadata = metadata
        self._needed = needed
        self._findings = findings

    def run(self, orders: set[int]) -> None:
        """Add the findings."""
        self._check_counts()
        self._check_content()
        self._check_numbers()
        self._check_partition()
        self._check_ids(orders)

    def live_entries(self, position: int) -> pl.DataFrame:
        """The live entries in the columns that other checks need.

        Where `counts_rows` is true, the first row id counts from that of the manifest in a list.
        """
        number = self._manifest.sequence_number or 0
        known = msgspec.structs.replace(self._manifest, sequence_number=number, first_row_id=0)
        frame = self._frame.with_columns(pl.col("first_row_id").is_null().alias("counts_rows"))
        try:
            frame = inherit_columns([frame], [known]) if frame.height else frame
        except FormatError:  # missing numbers were reported above
            frame = frame.with_columns(pl.col("sequence_number").fill_null(number))
        live = frame.filter(pl.col("status") != int(EntryStatus.DELETED)).with_columns(
            pl.col("content").fill_null(0),
            pl.col("key_metadata").is_not_null().alias("encrypted"),
            pl.lit(position, pl.UInt32).alias("manifest"),
        )
        return live.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())

    def _check_counts(self) -> None:
        manifest = self._manifest
        for status in EntryStatus:
            rows = self._frame.filter(pl.col("status") == int(status))["record_count"]
            name = status.name.lower()
            for stated, found, what in (
                (getattr(manifest, f"{name}_files_count"), rows.len(), "files"),
                (getattr(manifest, f"{name}_rows_count"), int(rows.sum()), "rows"),
            ):
                if stated is not None and stated != found:
                    self._error("manifest-counts", f"expected {stated:,} {name} {what}, found {found:,}", RESTORE)
        if (self._frame["record_count"] < 0).any():
            self._error("record-count", "expected record counts of 0 or more, found a negative one", _RECREATE)

    def _check_content(self) -> None:
        kinds = set(self._frame["content"].fill_null(0).unique())
        is_data = self._manifest.content is ManifestContent.DATA
        wrong = kinds - {int(FileContent.DATA)} if is_data else kinds & {int(FileContent.DATA)}
        if wrong:
            listed = "data" if is_data else "deletes"
            found = ", ".join(FileContent(kind).name.lower().replace("_", " ") for kind in sorted(wrong))
            self._error("manifest-content", f"expected a manifest of {listed}, found entries of {found}", RESTORE)

    def _check_numbers(self) -> None:
        number = self._manifest.sequence_number or 0
        frame = self._frame
        inherits = (pl.col("status") == int(EntryStatus.ADDED)) | (number == 0)
        unnumbered = pl.col("sequence_number").is_null() | pl.col("file_sequence_number").is_null()
        for (path,) in frame.filter(unnumbered & ~inherits).select("file_path").head(1).iter_rows():
            message = f"expected sequence numbers on the carried-forward entry of {path}, found null"
            self._error("sequence-number-missing", message, RESTORE)
        highest = frame["sequence_number"].max()
        if isinstance(highest, int) and highest > number:
            self._error(
                "sequence-number-too-high", f"expected sequence numbers up to {number}, found {highest}", _RECREATE
            )
        live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))["sequence_number"].fill_null(number)
        lowest, minimum = live.min(), self._manifest.min_sequence_number
        if isinstance(lowest, int) and minimum is not None and lowest < minimum:
            message = f"the manifest list says min-sequence-number {minimum}, an entry has {lowest}"
            self._error("sequence-number-too-low", message, _REWRITE)

    def _check_partition(self) -> None:
        try:
            spec = spec_of(self._manifest, self._metadata)
        except FormatError as error:
            mend = "register an earlier metadata file that has the spec, and repeat what was committed since"
            self._error("spec-unknown", str(error), mend)
            return
        try:
            types = partition_types(spec, self._metadata.schema_for(spec))
            check_partition(self._frame, types, self._manifest.manifest_path)
        except BerglineError as error:
            self._error("partition-values", str(error), RESTORE)

    def _check_ids(self, orders: set[int]) -> None:
        live = self._frame.filter(pl.col("status") != int(EntryStatus.DELETED))
        unknown = sorted(set(live["sort_order_id"].drop_nulls().unique()) - orders)
        if unknown:
            message = f"expected a sort-order-id of {sorted(orders)}, found {unknown[0]}"
            mend = "none is needed: engines treat such files as unsorted"
            self._findings.warning("sort-order-unknown", self._manifest.manifest_path, message, mend)
        equality = live.filter(pl.col("content") == int(FileContent.EQUALITY_DELETES))
        if equality.height:
            self._check_equality_ids(equality)
        vectors = live.filter(is_vector())
        places = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        if vectors.height and any(vectors[name].null_count() for name in places):
            message = "expected a data file, an offset and a size for every deletion vector, found null"
            self._error("deletion-vector", message, RESTORE)

    def _check_equality_ids(self, equality: pl.DataFrame) -> None:
        known = set(itertools.chain.from_iterable(schema.ids for schema in self._metadata.schemas))
        for path, ids in equality.select("file_path", "equality_ids").iter_rows():
            if not ids or not known.issuperset(ids):
                message = f"expected ids of columns for the equality deletes of {path}, found {ids or 'none'}"
                self._error("equality-ids", message, RESTORE)
                return

    def _error(self, code: str, message: str, mend: str) -> None:
        self._findings.error(code, self._manifest.manifest_path, message, mend, snapshots=self._needed)


def is_vector() -> pl.Expr:
    """Whether an entry is a deletion vector."""
    is_puffin = pl.col("file_format").str.to_uppercase() == "PUFFIN"
    return is_puffin & (pl.col("content") == int(FileContent.POSITION_DELETES))


def head_entries(
    metadata: TableMetadata, listed: ListedManifests, entries: pl.DataFrame
) -> Iterator[tuple[int, pl.DataFrame]]:
    """The entries of each snapshot that a ref names, by its id, with the row ids that its list gives them."""
    for head in dict.fromkeys(ref.snapshot_id for ref in metadata.refs.values()):
        first = listed.first_row_ids.get(head, {})
        starts = pl.DataFrame(
            {"manifest": list(first), "start": list(first.values())}, {"manifest": pl.UInt32, "start": pl.Int64}
        )
        counted = pl.when(pl.col("counts_rows")).then(pl.col("first_row_id") + pl.col("start"))
        given = pl.when(pl.col("start").is_not_null()).then(counted.otherwise(pl.col("first_row_id")))
        yield head, entries.join(starts, on="manifest").with_columns(given.alias("first_row_id"))
