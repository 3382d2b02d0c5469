"""Which executor reads which files of a plan, and why: Spark's own Parquet reader, or the one reader in `parquet`.

Spark's reader matches columns by name and knows nothing of Iceberg, so it gets a file only where names are enough.
Deletes it gets as joins, while they are small enough to send to every executor.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
import polars as pl

from bergline.format.manifest import FileContent
from bergline.format.reserved import FILE, POS, RESERVED_IDS, SPEC_ID
from bergline.format.transforms import Identity
from bergline.format.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    walk_fields,
)
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.scan.file_metrics import values_of
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan, columns_to_read
from bergline.scan.planned_files import FileGroup, PlannedFiles, paths_of
from bergline.spark.read_stores import NO_SESSION

MOST_DELETED_ROWS = 1_000_000
"""More than so many deleted rows are not sent to every executor."""
MOST_MARKED_ROWS = 64 << 20
"""Bits for so many rows are: 8 MiB, however many of these rows are deleted."""

_HIDDEN = ("_", ".")
_UNFINISHED = "._COPYING_"
_METADATA = "_metadata"
_NATIVE = "names and types are those of the table"
_PLAIN_PATH = r"^(?:SCHEMES)(?:/[A-Za-z0-9=%+-][A-Za-z0-9=%+_.-]*)+\.parquet$"
_SCHEME = re.compile(r"^\w+://")
_LOCAL, _S3 = "file://", "s3a?://[A-Za-z0-9.-]+"
_FROM_SPARK = {FILE.id, POS.id, SPEC_ID.id}
# what Spark's <=> compares as Iceberg does: it takes -0.0 for 0.0
_COMPARABLE: tuple[IcebergType, ...] = (BOOLEAN, INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY)


class ReadGroup(msgspec.Struct, frozen=True):
    """Files that one executor reads, and what spoke for or against Spark's own."""

    executor: Literal["native", "arrow"]
    reason: str
    files: Sequence[PlannedFile]
    has_deletes: bool = False

    @property
    def paths(self) -> list[str]:
        """Where the files are."""
        return paths_of(self.files)


def read_groups(plan: ScanPlan, s3_refusal: str | None = NO_SESSION) -> list[ReadGroup]:
    """All files of a plan, each in one group; `s3_refusal` is what `s3a_refusal` says of the session."""
    refusal = plan_refusal(plan)
    if refusal is not None:
        return [ReadGroup("arrow", refusal, plan.files, has_deletes=True)] if plan.files else []
    judge = _Judge(plan, s3_refusal)
    if not isinstance(plan.files, PlannedFiles):
        return [*_judged(plan.files, judge)]
    plain, others = plan.files.split(judge.surely_native)
    return [*([ReadGroup("native", _NATIVE, plain)] if plain else ()), *_judged(others, judge)]


def _judged(planned_files: Iterable[PlannedFile], judge: "_Judge") -> Iterator[ReadGroup]:
    """Files one by one, brought together by executor."""
    files: dict[tuple[bool, bool], list[PlannedFile]] = {}
    reasons: dict[tuple[bool, bool], str] = {}
    for planned in planned_files:
        why_not = judge.refusal(planned)
        key = (why_not is None, bool(planned.deletes))
        files.setdefault(key, []).append(planned)
        reasons.setdefault(key, why_not or _NATIVE)
    for (native, deleted), found in files.items():
        if native and deleted and (rows := deleted_rows(found)) > MOST_DELETED_ROWS:
            yield ReadGroup("arrow", f"{rows:,} deleted rows are too many to send to every executor", found, deleted)
        else:
            yield ReadGroup("native" if native else "arrow", reasons[native, deleted], found, deleted)


def native_refusal(plan: ScanPlan, s3_refusal: str | None = NO_SESSION) -> str | None:
    """Why some file of a plan does not go to Spark's own reader; None if all do."""
    return next((group.reason for group in read_groups(plan, s3_refusal) if group.executor == "arrow"), None)


def plan_refusal(plan: ScanPlan) -> str | None:
    """Why no file of a plan can go to Spark's own reader; None if some may."""
    if plan.by_id_only is not None:
        return plan.by_id_only
    for field in plan.schema.fields:
        if field.id in RESERVED_IDS and field.id not in _FROM_SPARK:
            return f"Spark's reader knows no `{field.name}`"
    for name, field in walk_fields(columns_to_read(plan).fields):
        if field.type in (UUID, UNKNOWN):
            return f"Spark's reader knows no `{field.type}`, as column `{name}` has"
    if any(f.name.casefold() == _METADATA for f in plan.table_schema.fields):
        return f"column `{_METADATA}` hides what Spark says of files"
    return None


class _Judge:
    """Says of each file why Spark's own reader could give wrong rows."""

    def __init__(self, plan: ScanPlan, s3_refusal: str | None) -> None:
        self._s3_refusal = s3_refusal
        self._plain_path = _PLAIN_PATH.replace("SCHEMES", _LOCAL if s3_refusal else f"{_LOCAL}|{_S3}")
        self._keys = {c.field_id: c for c in plan.key_columns}
        read = {f.id for f in columns_to_read(plan).fields}
        self._partition_columns = {
            spec_id: [f.source_id for f in spec.fields if isinstance(f.transform, Identity) and f.source_id in read]
            for spec_id, spec in plan.specs.items()
        }

    def surely_native(self, files: FileGroup) -> pl.Series:
        """A mask of files without deletes for which `refusal` finds nothing, on columns; it may leave some out."""
        frame = files.frame
        mask = frame["file_format"].str.to_uppercase() == "PARQUET"
        mask &= frame["file_path"].str.contains(self._plain_path)
        if "key_metadata" in frame.columns:
            mask &= frame["key_metadata"].is_null()
        for field_id in self._partition_columns.get(files.spec_id, ()):
            mask &= values_of(frame["value_counts"], field_id).is_not_null()
        return mask & pl.Series([not d for d in files.deletes], dtype=pl.Boolean) if files.deletes else mask

    def refusal(self, planned: PlannedFile) -> str | None:
        """Why not this file; None if its rows come out right."""
        file = planned.file
        path = file.file_path
        if file.file_format.upper() != "PARQUET":
            return f"{path} is a {file.file_format} file"
        if file.key_metadata is not None:
            return f"{path} is encrypted"
        scheme = scheme_of(path)
        if scheme in S3_SCHEMES and self._s3_refusal is not None:
            return self._s3_refusal
        if scheme != "file" and scheme not in S3_SCHEMES:
            return f"Spark may have no access to {path}"
        if why_not := _path_refusal(path):
            return why_not
        stored = file.value_counts or {}
        for field_id in self._partition_columns.get(file.spec_id, ()):
            if field_id not in stored:
                return f"{path} may not store the partition column with id {field_id}"
        return self._deletes_refusal(planned)

    def _deletes_refusal(self, planned: PlannedFile) -> str | None:
        for delete in planned.deletes:
            if delete.content is FileContent.EQUALITY_DELETES:
                for field_id in delete.equality_ids or ():
                    if not _is_comparable(self._keys.get(field_id)):
                        return f"rows of {planned.file.file_path} are deleted by keys that Spark compares otherwise"
        return None


def are_marked(files: Iterable[PlannedFile]) -> bool:
    """Whether a bit for each row, in files some of whose rows are deleted by position, is little enough."""
    return sum(planned.file.record_count for planned in files if planned.position_deletes) <= MOST_MARKED_ROWS


def deleted_rows(files: Sequence[PlannedFile]) -> int:
    """How many positions and keys the deletes of some files have; keys count again for each set of delete files.

    Positions count only if they are not marked by bits.
    """
    positions: dict[tuple[str, int | None], int] = {}
    keys: dict[tuple[str, ...], int] = {}
    for planned in files:
        by_key = [d for d in planned.deletes if d.content is FileContent.EQUALITY_DELETES]
        keys[tuple(d.file_path for d in by_key)] = sum(d.record_count for d in by_key)
        positions |= {(d.file_path, d.content_offset): d.record_count for d in planned.position_deletes}
    return sum(keys.values()) + (0 if are_marked(files) else sum(positions.values()))


def _path_refusal(path: str) -> str | None:
    """Why Spark might pass over a path, or spell it in a way that we do not foresee."""
    name = path.rsplit("/", 1)[-1]
    if name.startswith(_HIDDEN) or name.endswith(_UNFINISHED):
        return f"Spark passes over {path} because of its name"
    if not all(_is_plain(segment) for segment in _SCHEME.sub("", path).split("/")[1:]):
        return f"Spark may spell {path} otherwise, or not open it"
    return None


def _is_plain(segment: str) -> bool:
    """Whether Hadoop takes a part of a path as it is; after a colon it looks for another file system."""
    return (
        segment.strip() == segment and segment not in {"", ".", ".."} and ":" not in segment and segment.isprintable()
    )


def _is_comparable(key: KeyColumn | None) -> bool:
    if key is None or len(key.path) > 1:
        return False
    return key.column.type in _COMPARABLE or isinstance(key.column.type, DecimalType | FixedType)
