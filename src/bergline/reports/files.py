"""The files of a state of a table: sizes, partitions, and deletes that wait for compaction."""

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
import polars as pl

from bergline.datafiles.write.write_spec import write_spec
from bergline.errors import BerglineError
from bergline.format.manifest.manifest import FileContent, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import partition_values
from bergline.reports.problem import Problem, attempt, problem_of
from bergline.scan.manifests import load_manifest_list
from bergline.scan.restrictions import check_rows_readable
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.operations.rewrite_options import RewriteOptions
from bergline.table.scans.version import ReadVersion
from bergline.table.table import Table

_KIB, _MIB = 2**10, 2**20
_BOUNDS = (*(n * _KIB for n in (1, 16, 128)), *(n * _MIB for n in (1, 8, 32, 64, 128, 256, 512, 1024)))
_DATA = int(FileContent.DATA)
_POSITIONS, _KEYS = int(FileContent.POSITION_DELETES), int(FileContent.EQUALITY_DELETES)


class SizeBin(msgspec.Struct, frozen=True):
    """The data files from one size up to, but not including, another; the last bin has no upper limit."""

    from_bytes: int
    to_bytes: int | None
    files: int
    bytes: int


class FileCounts(msgspec.Struct, frozen=True):
    """Data files, and the delete files that readers must apply to them."""

    data_files: int = 0
    data_bytes: int = 0
    rows: int = 0
    """Before deletes."""
    small_files: int = 0
    """The data files that are too small by the rules of compaction."""
    position_delete_files: int = 0
    deletion_vectors: int = 0
    position_deletes: int = 0
    """Positions in position delete files and deletion vectors."""
    equality_delete_files: int = 0
    equality_deletes: int = 0
    delete_bytes: int = 0

    @property
    def delete_files(self) -> int:
        """All delete files that wait for compaction."""
        return self.position_delete_files + self.deletion_vectors + self.equality_delete_files


class PartitionFiles(msgspec.Struct, frozen=True):
    """The files of one partition."""

    partition: str
    """As in file paths; empty for a table without partitions."""
    spec_id: int
    counts: FileCounts


class FilesReport(msgspec.Struct, frozen=True):
    """The files of one snapshot; those in unreadable manifests are missing, and named in the problems."""

    snapshot_id: int | None
    manifests: int
    manifest_bytes: int
    counts: FileCounts
    target_bytes: int | None
    """The size that new files should have."""
    small_bytes: int | None
    """Files below this size are too small by the rules of compaction."""
    histogram: tuple[SizeBin, ...]
    """Without empty bins at its ends."""
    partitions: tuple[PartitionFiles, ...]
    """By name."""
    problems: tuple[Problem, ...]


def files_report(table: Table, version: ReadVersion) -> FilesReport:
    """The files of a state of a table (see `version_at`)."""
    check_rows_readable(table.metadata)
    metadata, problems = table.metadata, list[Problem]()
    sizes = attempt(problems, "the target size of files", lambda: _sizes(metadata))
    target, small = (None, None) if sizes is None else sizes
    manifests: Sequence[ManifestFile] = ()
    snapshot = None if version.snapshot_id is None else metadata.snapshot(version.snapshot_id)
    if snapshot is not None:
        what = f"the files of snapshot {snapshot.snapshot_id}"
        manifests = attempt(problems, what, lambda: load_manifest_list(table.io, snapshot)) or ()
    view = MetadataView(table.io, metadata, table.metadata_location, snapshot)
    frames = _live_files(view, manifests, problems)
    partitions = [
        line
        for spec_id, frame in frames.items()
        for line in attempt(
            problems,
            f"the partitions of spec {spec_id}",
            partial(_partitions, metadata, spec_id, frame, small or 0),
        )
        or ()
    ]
    every = pl.concat([f.select(_NEEDED) for f in frames.values()]) if frames else _NO_FILES
    return FilesReport(
        version.snapshot_id,
        len(manifests),
        sum(m.manifest_length for m in manifests),
        _counts(every, small or 0),
        target,
        small,
        _histogram(every),
        tuple(sorted(partitions, key=lambda line: (line.partition, line.spec_id))),
        tuple(problems),
    )


_NEEDED = ("content", "file_format", "record_count", "file_size_in_bytes", "own_size")
_NO_FILES = pl.DataFrame(
    schema={
        "content": pl.Int32,
        "file_format": pl.String,
        "record_count": pl.Int64,
        "file_size_in_bytes": pl.Int64,
        "own_size": pl.Int64,
    }
)


def _sizes(metadata: TableMetadata) -> tuple[int, int]:
    rules = RewriteOptions().sizes(write_spec(metadata).target_file_size)
    return rules.target, rules.least


def _live_files(
    view: MetadataView, manifests: Sequence[ManifestFile], problems: list[Problem]
) -> dict[int, pl.DataFrame]:
    """The files by partition spec, of all manifests that can be read."""
    try:
        frames = view.live_entries(manifests)
    except BerglineError:
        readable = [m for m in manifests if _is_readable(view, m, problems)]
        frames = view.live_entries(readable) if readable else {}
    return {spec_id: _with_needed(frame) for spec_id, frame in frames.items()}


def _is_readable(view: MetadataView, manifest: ManifestFile, problems: list[Problem]) -> bool:
    try:
        view.live_entries([manifest])
    except BerglineError as error:
        problems.append(problem_of(f"the files of manifest {manifest.manifest_path}", error))
        return False
    return True


def _with_needed(frame: pl.DataFrame) -> pl.DataFrame:
    own = pl.col("file_size_in_bytes")
    if "content_size_in_bytes" in frame.columns:  # several deletion vectors share one file
        own = pl.coalesce(pl.col("content_size_in_bytes"), own)
    return frame.with_columns(
        pl.col("content").cast(pl.Int32).fill_null(_DATA),
        pl.col("file_format").cast(pl.String).str.to_uppercase(),
        pl.col("record_count").cast(pl.Int64),
        pl.col("file_size_in_bytes").cast(pl.Int64),
        own.cast(pl.Int64).alias("own_size"),
    )


def _sums(small: int) -> dict[str, pl.Expr]:
    content, is_vector = pl.col("content"), pl.col("file_format") == "PUFFIN"
    data, positions, keys = (content == kind for kind in (_DATA, _POSITIONS, _KEYS))
    size, rows = pl.col("file_size_in_bytes"), pl.col("record_count")
    return {
        "data_files": data.sum(),
        "data_bytes": size.filter(data).sum(),
        "rows": rows.filter(data).sum(),
        "small_files": (data & (size < small)).sum(),
        "position_delete_files": (positions & ~is_vector).sum(),
        "deletion_vectors": (positions & is_vector).sum(),
        "position_deletes": rows.filter(positions).sum(),
        "equality_delete_files": keys.sum(),
        "equality_deletes": rows.filter(keys).sum(),
        "delete_bytes": pl.col("own_size").filter(~data).sum(),
    }


def _counts(files: pl.DataFrame, small: int) -> FileCounts:
    return FileCounts(**files.select(**_sums(small)).row(0, named=True))


def _partitions(metadata: TableMetadata, spec_id: int, files: pl.DataFrame, small: int) -> list[PartitionFiles]:
    spec = metadata.specs_by_id[spec_id]
    schema = metadata.schema_for(spec)
    fields = spec.partition_type(schema).fields
    keys = [str(f.id) for f in fields if str(f.id) in files.columns]
    if not keys:
        grouped = files.select(**_sums(small)) if files.height else files.select(**_sums(small)).clear()
    else:
        grouped = files.group_by(keys, maintain_order=True).agg(**_sums(small))
    columns = [partition_values(grouped, f.id, f.type) for f in fields]
    values: Iterable[tuple[object, ...]] = zip(*columns, strict=True) if columns else [()] * grouped.height
    counts = grouped.select(FileCounts.__struct_fields__).iter_rows()
    return [
        PartitionFiles(spec.partition_path(schema, one), spec_id, FileCounts(*row))
        for one, row in zip(values, counts, strict=True)
    ]


def _histogram(files: pl.DataFrame) -> tuple[SizeBin, ...]:
    sizes = files.filter(pl.col("content") == _DATA)["file_size_in_bytes"]
    if sizes.is_empty():
        return ()
    bins = []
    for low, high in zip((0, *_BOUNDS), (*_BOUNDS, None), strict=True):
        inside = sizes.filter((sizes >= low) & (sizes < high) if high is not None else sizes >= low)
        bins.append(SizeBin(low, high, len(inside), int(inside.sum())))
    filled = [n for n, one in enumerate(bins) if one.files]
    return tuple(bins[filled[0] : filled[-1] + 1])
