"""Which reader gets which files of a plan, and why: Spark's own Parquet reader, or the reader in `datafiles`.

Spark's reader matches columns by name and knows nothing of Iceberg, so it gets a file only where the file's physical
schema is known, from its manifest or its footer. Files of one layout, which store the columns of a read alike, are read
together. Deletes become joins, as long as they are small enough to send to every executor.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import polars as pl

from bergline.format.manifest.columns import PHYSICAL_SCHEMA
from bergline.format.manifest.manifest import FileContent
from bergline.format.partition.transforms import Identity
from bergline.format.schema.physical_schema import number_of, physical_schema, schema_of
from bergline.format.schema.reserved import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    RESERVED_IDS,
    ROW_ID,
    SPEC_ID,
)
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
)
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan, columns_to_read
from bergline.scan.planned_files import FileGroup, PlannedFiles, paths_of, records_of, sizes_of
from bergline.spark.reads.native_columns import (
    KNOWS_NEW_ANNOTATIONS,
    NativeColumn,
    NativeColumns,
    NotNativeError,
    annotation_refusal,
    native_columns,
)
from bergline.spark.runtime.backend import NO_SESSION

MOST_DELETED_ROWS = 1_000_000
"""More than so many deleted rows are not sent to every executor."""
MOST_MARKED_ROWS = 64 << 20
"""Bits for so many rows are: 8 MiB, however many of these rows are deleted."""
MOST_LAYOUTS = 16
"""Spark's reader gets files of so many layouts in one plan: each is a scan of its own."""

_FEW_ROWS, _FEW_FILES = 1_000_000, 1000
_HIDDEN = ("_", ".")
_OWN_NAMES = "bergline "
_UNFINISHED = "._COPYING_"
_NATIVE = "names and types are those of the table"
_NO_COLUMNS = NativeColumns((), ())
_UNKNOWN = -1
_MOST_NAMED = 3
_PLAIN_PATH = r"^(?:SCHEMES)(?:/[A-Za-z0-9=%+-][A-Za-z0-9=%+_.-]*)+\.parquet$"
_SCHEME = re.compile(r"^\w+://")
_LOCAL, _S3 = "file://", "s3a?://[A-Za-z0-9.-]+"
_LINEAGE = {ROW_ID.id, LAST_UPDATED_SEQUENCE_NUMBER.id}
"""What files may store, and have of their manifests where they do not."""
_FROM_SPARK = {FILE.id, POS.id, SPEC_ID.id, *_LINEAGE}
# what Spark's <=> compares as Iceberg does: it takes -0.0 for 0.0
_COMPARABLE: tuple[IcebergType, ...] = (BOOLEAN, INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY)


class ReadGroup(msgspec.Struct, frozen=True):
    """Files that one reader gets, and what spoke for or against Spark's own."""

    reader: Literal["native", "arrow"]
    reason: str
    files: Sequence[PlannedFile]
    has_deletes: bool = False
    layout: NativeColumns = _NO_COLUMNS
    """How files store the columns that are read, and those that deletes compare, for Spark's own reader."""

    @property
    def columns(self) -> tuple[NativeColumn, ...]:
        """The columns of that layout."""
        return self.layout.columns

    @property
    def paths(self) -> list[str]:
        """Where the files are."""
        return paths_of(self.files)

    @property
    def sizes(self) -> list[int]:
        """How many bytes they have."""
        return sizes_of(self.files)


Find = Callable[[Sequence[str]], Mapping[str, int]]
"""Finds the numbers of files' physical schemas by their paths; files of which nothing is known are left out."""


def read_groups(plan: ScanPlan, find: Find, s3_refusal: str | None = NO_SESSION) -> list[ReadGroup]:
    """All files of a plan, each in one group; `s3_refusal` says why Spark cannot open those on S3."""
    refusal = plan_refusal(plan)
    if refusal is not None:
        return [ReadGroup("arrow", refusal, plan.files, has_deletes=True)] if plan.files else []
    parts = _without_many_deletes(file_parts(plan, find, s3_refusal))
    return _grouped(parts if plan.key_columns else _few_with_others(parts))


def file_parts(plan: ScanPlan, find: Find, s3_refusal: str | None) -> "list[FilesOfOneLayout]":
    """All files of a plan, each in one part, whatever the other files are."""
    checks, layouts = _FileChecks(plan, s3_refusal), _Layouts(plan, find)
    parts: list[FilesOfOneLayout] = []
    others: Iterable[PlannedFile] = plan.files
    if isinstance(plan.files, PlannedFiles):
        plain, others = plan.files.split(checks.surely_native)
        parts += layouts.of_columns(plain)
    parts += layouts.of_files([(planned, checks.refusal(planned)) for planned in others])
    return parts


def layout_of_new_files(plan: ScanPlan) -> NativeColumns | None:
    """The layout of files written from now on; None if Spark's own reader does not get them."""
    wanted = [f for f in columns_to_read(plan).fields if f.id not in RESERVED_IDS or f.id in _LINEAGE]
    if plan_refusal(plan) is not None:
        return None
    try:
        return native_columns(wanted, physical_schema(plan.table_schema.fields), None, ())
    except NotNativeError:
        return None


def plan_refusal(plan: ScanPlan) -> str | None:
    """Why no file of a plan can go to Spark's own reader; None if some may."""
    for field in plan.schema.fields:
        if field.id in RESERVED_IDS and field.id not in _FROM_SPARK:
            return f"Spark's reader knows no `{field.name}`"
    names: dict[str, str] = {}
    for field in columns_to_read(plan).fields:
        if field.name.casefold().startswith(_OWN_NAMES):
            return f"column `{field.name}` may be one that bergline adds"
        other = names.setdefault(field.name.casefold(), field.name)
        if other != field.name:  # whether Spark takes them for one is for a setting to say
            return f"columns `{other}` and `{field.name}` differ by case alone"
    return None


class FilesOfOneLayout(msgspec.Struct, frozen=True):
    """Files of one physical schema and partition spec, or of which one thing is wrong."""

    files: Sequence[PlannedFile]
    layout: NativeColumns | str
    """How they store their columns, or why Spark's reader does not get them."""
    has_deletes: bool


class _Layouts:
    """Finds the layout of files from their physical schema, once for each schema."""

    def __init__(self, plan: ScanPlan, find: Find) -> None:
        self._find = find
        self._mapping = plan.name_mapping
        self._partition_columns = {
            spec_id: frozenset(f.source_id for f in spec.fields if isinstance(f.transform, Identity))
            for spec_id, spec in plan.specs.items()
        }
        read = tuple(f for f in columns_to_read(plan).fields if f.id not in RESERVED_IDS or f.id in _LINEAGE)
        ids = {f.id for f in read}
        keys = tuple(c.column for c in plan.key_columns if len(c.path) == 1 and c.field_id not in ids)
        self._wanted = {False: read, True: (*read, *keys)}
        self._layouts: dict[tuple[int, int, bool], NativeColumns | str] = {}

    @staticmethod
    def _looks_at(wanted: tuple[NestedField, ...]) -> bool:
        """Whether it matters what columns files have: where none are read, only if Spark may not open some files."""
        return bool(wanted) or not KNOWS_NEW_ANNOTATIONS

    def of_columns(self, files: PlannedFiles) -> Iterator[FilesOfOneLayout]:
        """Files without deletes, by what their manifests say or else by their footers."""
        if not self._looks_at(self._wanted[False]):
            yield from [FilesOfOneLayout(files, _NO_COLUMNS, False)] if files else []
            return
        unknown = [
            path
            for group in files.groups
            for path in group.frame.filter(_known(group).is_null())["file_path"].to_list()
        ]
        found = self._find(unknown) if unknown else {}

        def numbers(group: FileGroup) -> pl.Series:
            known = _known(group)
            if found:
                pairs = zip(group.frame["file_path"].to_list(), known.to_list(), strict=True)
                known = pl.Series(
                    [found.get(path) if number is None else number for path, number in pairs], dtype=pl.Int64
                )
            return known.fill_null(_UNKNOWN)

        for number, some in files.parts(numbers).items():
            for group in some.groups:
                layout = self._layout(number, group.spec_id, group.frame["file_path"][0], has_deletes=False)
                yield FilesOfOneLayout(PlannedFiles([group]), layout, False)

    def of_files(self, files: Sequence[tuple[PlannedFile, str | None]]) -> Iterator[FilesOfOneLayout]:
        """Files one by one, each with what speaks against it already."""
        unknown = [p.file.file_path for p, why_not in files if why_not is None and p.file.physical_schema is None]
        found = self._find(unknown) if unknown and self._looks_at(self._wanted[True]) else {}
        parts: dict[tuple[int, int, bool], list[PlannedFile]] = {}
        for planned, why_not in files:
            file, deleted = planned.file, bool(planned.deletes)
            if why_not is not None:
                yield FilesOfOneLayout([planned], why_not, deleted)
                continue
            known = file.physical_schema
            number = found.get(file.file_path, _UNKNOWN) if known is None else number_of(known)
            parts.setdefault((number, file.spec_id, deleted), []).append(planned)
        for (number, spec_id, deleted), some in parts.items():
            layout = self._layout(number, spec_id, some[0].file.file_path, has_deletes=deleted)
            yield FilesOfOneLayout(some, layout, deleted)

    def _layout(self, number: int, spec_id: int, path: str, *, has_deletes: bool) -> NativeColumns | str:
        wanted, key = self._wanted[has_deletes], (number, spec_id, has_deletes)
        if not self._looks_at(wanted):
            return _NO_COLUMNS
        if key not in self._layouts:
            schema = None if number == _UNKNOWN else schema_of(number)
            if schema is None:
                return f"nothing is known of the columns in {path}"
            if not wanted:
                return annotation_refusal(schema) or _NO_COLUMNS
            try:
                self._layouts[key] = native_columns(
                    wanted, schema, self._mapping, self._partition_columns.get(spec_id, ())
                )
            except NotNativeError as error:
                self._layouts[key] = str(error)
        return self._layouts[key]


def _grouped(parts: Sequence[FilesOfOneLayout]) -> list[ReadGroup]:
    """Files of one layout brought together; Spark's reader gets those of a few layouts."""
    parts = sorted(parts, key=lambda part: -len(part.files))
    layouts: dict[bool, list[NativeColumns]] = {False: [], True: []}
    files: dict[tuple[int | None, bool], list[Sequence[PlannedFile]]] = {}
    refusals: dict[bool, str] = {}
    for part in parts:
        deleted, refusal, number = part.has_deletes, part.layout, None
        if not isinstance(part.layout, str):
            refusal = f"Spark's reader gets files that store their columns in {MOST_LAYOUTS} ways, and there are more"
            number = _joined(layouts[deleted], part.layout)
        if number is None:
            refusals.setdefault(deleted, str(refusal))
        files.setdefault((number, deleted), []).append(part.files)
    groups = []
    for (number, deleted), found in files.items():
        if number is None:
            groups.append(ReadGroup("arrow", refusals[deleted], _together(found), deleted))
        else:
            layout = layouts[deleted][number]
            groups.append(ReadGroup("native", _native_reason(layout.columns), _together(found), deleted, layout))
    return sorted(groups, key=lambda g: (g.reader == "arrow", g.has_deletes))


def _joined(layouts: list[NativeColumns], layout: NativeColumns) -> int | None:
    """The number of the layout that covers this one, too; None if it would be one too many."""
    for number, known in enumerate(layouts):
        both = known.with_also(layout)
        if both is not None:
            layouts[number] = both
            return number
    if len(layouts) == MOST_LAYOUTS:
        return None
    layouts.append(layout)
    return len(layouts) - 1


def _few_with_others(parts: Sequence[FilesOfOneLayout]) -> Sequence[FilesOfOneLayout]:
    """Where some files have deletes, a few rows of files without any are read with those: that saves a relation."""
    native = [part for part in parts if not isinstance(part.layout, str)]
    plain = [part for part in native if not part.has_deletes]
    if len(plain) == len(native) or sum(records_of(part.files) for part in plain) > _FEW_ROWS:
        return parts
    if sum(len(part.files) for part in plain) > _FEW_FILES:
        return parts
    return [p if isinstance(p.layout, str) else msgspec.structs.replace(p, has_deletes=True) for p in parts]


def _without_many_deletes(parts: Sequence[FilesOfOneLayout]) -> Sequence[FilesOfOneLayout]:
    deleted = [p for part in parts if part.has_deletes and not isinstance(part.layout, str) for p in part.files]
    if not deleted or (rows := deleted_rows(deleted)) <= MOST_DELETED_ROWS:
        return parts
    reason = f"{rows:,} deleted rows are too many to send to every executor"
    return [
        FilesOfOneLayout(part.files, reason, True) if part.has_deletes and not isinstance(part.layout, str) else part
        for part in parts
    ]


def _together(files: Sequence[Sequence[PlannedFile]]) -> Sequence[PlannedFile]:
    if all(isinstance(some, PlannedFiles) for some in files):
        return PlannedFiles([group for some in files if isinstance(some, PlannedFiles) for group in some.groups])
    return [planned for some in files for planned in some]


def _native_reason(columns: Sequence[NativeColumn]) -> str:
    changed = [f"`{c.field.name}` is `{c.stored.name}`" for c in columns if c.stored and not c.is_as_stored]
    if not changed:
        return _NATIVE
    return f"names and types in them are known: {', '.join(changed[:_MOST_NAMED])}"


def _known(files: FileGroup) -> pl.Series:
    """The numbers of physical schemas as manifests have them; null if they have none, or one that was forgotten."""
    numbers = files.frame[PHYSICAL_SCHEMA]
    forgotten = [n for n in numbers.unique().to_list() if n is not None and schema_of(n) is None]
    return numbers.set(numbers.is_in(forgotten).fill_null(True), None) if forgotten else numbers


class _FileChecks:
    """Whether Spark's own reader can open a file, and leave out its deleted rows."""

    def __init__(self, plan: ScanPlan, s3_refusal: str | None) -> None:
        self._s3_refusal = s3_refusal
        self._plain_path = _PLAIN_PATH.replace("SCHEMES", _LOCAL if s3_refusal else f"{_LOCAL}|{_S3}")
        self._keys = {c.field_id: c for c in plan.key_columns}

    def surely_native(self, files: FileGroup) -> pl.Series:
        """A mask of files without deletes that `refusal` would accept, from columns alone; it may miss some."""
        frame = files.frame
        mask = frame["file_format"].str.to_uppercase() == "PARQUET"
        mask &= frame["file_path"].str.contains(self._plain_path)
        if "key_metadata" in frame.columns:
            mask &= frame["key_metadata"].is_null()
        return mask & pl.Series([not d for d in files.deletes], dtype=pl.Boolean) if files.deletes else mask

    def refusal(self, planned: PlannedFile) -> str | None:
        """Why Spark's reader cannot get a file; None if only its columns are left to check."""
        file = planned.file
        path = file.file_path
        if file.file_format.upper() != "PARQUET":
            return f"the format of {path} is {file.file_format}"
        if file.key_metadata is not None:
            return f"{path} is encrypted"
        scheme = scheme_of(path)
        if scheme in S3_SCHEMES and self._s3_refusal is not None:
            return self._s3_refusal
        if scheme != "file" and scheme not in S3_SCHEMES:
            return f"Spark may have no access to {path}"
        return _path_refusal(path) or self._deletes_refusal(planned)

    def _deletes_refusal(self, planned: PlannedFile) -> str | None:
        for delete in planned.deletes:
            if delete.content is FileContent.EQUALITY_DELETES:
                for field_id in delete.equality_ids or ():
                    if not _is_comparable(self._keys.get(field_id)):
                        return f"rows of {planned.file.file_path} are deleted by keys that Spark compares otherwise"
        return None


def are_marked(files: Iterable[PlannedFile]) -> bool:
    """Whether files with positional deletes have few enough rows to keep a bit for each row."""
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
    """Why Spark might skip a path, or spell it in a way that we do not foresee."""
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
