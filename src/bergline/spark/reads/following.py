"""Reads by a table's name, whose frames have the rows of the table whenever they are run.

Spark asks for the files of a relation each time it plans a query on it. What a frame was made with stays, so it can
only be given files of the layouts that it knows: else it must be made anew, and says so.
"""

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec

from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.expressions.predicate import Predicate
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY
from bergline.format.schema.schema import Schema
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.restrictions import check_rows_readable
from bergline.spark.reads.errors import remember_scan
from bergline.spark.reads.evidence import FileEvidence
from bergline.spark.reads.groups import FilesOfOneLayout, ReadGroup, are_marked, file_parts, layout_of_new_files
from bergline.spark.reads.native import spark_location
from bergline.spark.reads.native_columns import NativeColumns
from bergline.spark.runtime.backend import KnownFiles, SparkBackend
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table, load_again, place_of

Describe = Callable[[ScanPlan, Sequence[PlannedFile]], KnownFiles]
"""Makes files of a plan known to Spark as those that a relation was made with."""
_CHANGED = "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS"
_MERGE_ON_READ = "merge-on-read"
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")
_MOST_PLANS = 4


class FollowedName(msgspec.Struct, frozen=True, eq=False):
    """The name of a table in a lake: equal to others that mean the same."""

    table: Table
    """As it was."""

    @property
    def key(self) -> Hashable:
        """What names that mean the same have in common."""
        return place_of(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FollowedName) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def following(scan: TableScan, table: Table) -> TableScan:
    """The same read of a table, by its name, for frames that have the rows that it means when they are run."""
    by_name = copy.copy(scan)
    by_name.followed = FollowedName(table)
    return by_name


class Place(NamedTuple):
    """One of the relations of a frame: how its files are read, and whether rows of them may be deleted."""

    layout: NativeColumns
    takes_deletes: bool


class FollowedRead:
    """What the relations of one frame have in common; their places are fixed when its files are first read."""

    def __init__(self, scan: TableScan, name: FollowedName, backend: SparkBackend) -> None:
        self.scan = scan
        self._name = name
        self._backend = backend
        self._made = time.monotonic()
        self._columns: tuple[str, ...] = ()
        self._places: tuple[Place, ...] | None = None
        self._lock = threading.Lock()
        self._plans: OrderedDict[Hashable, tuple[ScanPlan, list[list[PlannedFile]]]] = OrderedDict()

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What the files that it finds depend on, beside the state of the table and the conditions of a query."""
        return self._name.key, _state(self.scan), self.scan.row_filter, self._columns, self._places

    def settle(self, plan: ScanPlan, groups: Sequence[ReadGroup]) -> list[ReadGroup] | None:
        """The groups that the frame reads, one for each place; None if it can only tell that the table has changed.

        Files that are written from now on have a place too, empty as it may be.
        """
        self._columns = tuple(field.name for field in plan.schema.fields)
        new = layout_of_new_files(plan)
        if new is None or any(not _can_follow(group, plan) for group in groups):
            return None
        joined = [group.layout.with_also(new) for group in groups]
        found = [
            group if layout is None else msgspec.structs.replace(group, layout=layout)
            for group, layout in zip(groups, joined, strict=True)
        ]
        if all(layout is None for layout in joined):
            found.append(ReadGroup("native", "for files to come", (), layout=new))
            joined.append(new)
        may_delete = any(self.scan.metadata.properties.get(mode) == _MERGE_ON_READ for mode in _MODES)
        if may_delete and not any(group.has_deletes for group in found):
            place = next(number for number, layout in enumerate(joined) if layout is not None)
            found[place] = msgspec.structs.replace(found[place], has_deletes=True)
        self._places = tuple(Place(group.layout, group.has_deletes) for group in found)
        return found

    def relation(self, number: int, describe: Describe) -> "FollowedRelation":
        """The relation of a place."""
        return FollowedRelation(self, number, describe)

    def guard(self) -> "FollowedRelation":
        """A relation without files beside others that stay as they were made: a query sees no other state then."""
        return FollowedRelation(self, None, None)

    def files_of(
        self, number: int | None, query: str | None, condition: Callable[[Schema], Predicate]
    ) -> tuple[ScanPlan, Sequence[PlannedFile]] | None:
        """The files of a place; None if the table is as it was."""
        if query is None:  # nothing says what belongs together, so all of it is as it was when the frame was made
            return None
        seen = self._seen_by(query, is_fixed=number is None or self._places is None)
        scan = self.scan if seen is self._name.table else self._scan_of(seen)
        if _state(scan) == _state(self.scan):
            return None
        if number is None or self._places is None:
            raise self._stale("how its files are stored")
        stored = [c.field for c in self._places[number].layout.columns if c.stored is not None and c.is_as_stored]
        asked = condition(Schema(fields=tuple(stored)))
        key = _state(scan), asked
        with self._lock:
            found = self._plans.get(key)
        if found is None:
            found = self._placed(scan, asked)
            with self._lock:
                self._plans[key] = found
                while len(self._plans) > _MOST_PLANS:
                    self._plans.popitem(last=False)
        plan, files = found
        return plan, files[number]

    def growth(self, query: str | None) -> int:
        """How many bytes of files the table has more than when the frame was made, as summaries of snapshots say."""
        if query is None or self._places is None:
            return 0
        now, before = self._seen_by(query, is_fixed=False).metadata, self.scan.metadata
        branch = self.scan.version.branch or MAIN
        sizes = [_size(metadata, branch if branch in metadata.refs else MAIN) for metadata in (now, before)]
        return max(0, sizes[0] - sizes[1])

    def _seen_by(self, query: str, *, is_fixed: bool) -> Table:
        return STATES.find(query, self._name, self._made, self._backend.is_running, stays=is_fixed)

    def _scan_of(self, table: Table) -> TableScan:
        """The same read of a table as it is now."""
        before, metadata = self.scan, table.metadata
        check_rows_readable(metadata)
        if before.metadata.table_uuid != metadata.table_uuid:
            raise self._error("TABLE_ID_MISMATCH", "it is another table of this name")
        self._check_columns(before.table_schema, table.schema)
        branch = before.version.branch
        is_there = branch in metadata.refs
        scan = table.scan(before.row_filter, ref=branch if is_there else None, columns=self._columns or None)
        return scan if is_there or branch is None else scan.as_branch(branch)

    def _check_columns(self, before: Schema, now: Schema) -> None:
        found = {field.name: field for field in now.fields}
        for field in before.fields:
            if field.name not in found:
                raise self._error("COLUMNS_MISMATCH", f"column `{field.name}` is gone")
            types = [str(one.type) for one in (field, found[field.name])]
            if types[0] != types[1]:
                what = f"column `{field.name}` is of type {types[1]}, expected {types[0]}"
                raise self._error("COLUMNS_MISMATCH", what)

    def _placed(self, scan: TableScan, asked: Predicate) -> tuple[ScanPlan, list[list[PlannedFile]]]:
        remember_scan(scan)
        # what a query asks for chooses files; only what the frame asks for chooses rows here
        plan = msgspec.structs.replace(scan.where(asked).plan(), filter=scan.outline().filter)
        places = self._places or ()
        files: list[list[PlannedFile]] = [[] for _ in places]
        for part in file_parts(plan, FileEvidence(scan.io, self._backend).look_up, self._backend.s3a_refusal()):
            number = next((number for number, place in enumerate(places) if _fits(part, place)), None)
            if number is None or (part.has_deletes and plan.key_columns):
                raise self._stale("how its files are stored or rows of them are deleted")
            files[number].extend(part.files)
        if not all(are_marked(some) for some in files):
            raise self._stale("how many rows of its files are deleted")
        return plan, files

    def _stale(self, what: str) -> BerglineError:
        return UnsupportedError(
            f"cannot read table `{self._name.table.name}` by what was made before it changed: {what} is not what "
            "such a DataFrame or view can read",
            hints=["read the table anew, from its name on", "VERSION AS OF reads one state of it, whatever comes"],
        )

    def _error(self, kind: str, what: str) -> BerglineError:
        return InvalidInputError(
            f"table `{self._name.table.name}` has changed since this DataFrame or view was made: {what}",
            condition=f"{_CHANGED}.{kind}",
            hints=["read the table anew, from its name on"],
        )


class FollowedRelation:
    """One relation of a frame, as Spark's planner sees it: see `FollowedFiles`."""

    def __init__(self, read: FollowedRead, number: int | None, describe: Describe | None) -> None:
        self._read = read
        self._number = number
        self._describe = describe

    @property
    def key(self) -> Hashable:
        """What relations have in common that read the same whenever they do."""
        return (*self._read.key, self._number)

    @property
    def location(self) -> str:
        """Where Spark finds the table."""
        return spark_location(self._read.scan.metadata.location)

    def files(self, query: str | None, condition: Callable[[Schema], Predicate]) -> KnownFiles | None:
        """The files that the rows of a query may be in; None if they are those that the frame was made with."""
        found = self._read.files_of(self._number, query, condition)
        return None if found is None or self._describe is None else self._describe(*found)

    def growth(self, query: str | None) -> int:
        """How many bytes the table of a query has more than that of which the frame was made."""
        return self._read.growth(query)


class QueryStates:
    """The states of tables that running queries see, by query and table: each is looked up once for a query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, dict[Hashable, tuple[float, Table]]] = {}

    def find(
        self, query: str, name: FollowedName, made: float, is_running: Callable[[str], bool], *, stays: bool = False
    ) -> Table:
        """The table as a query sees it, in a frame that was made at some time; what ended queries saw is forgotten.

        If a frame that `stays` as it was made asks first, the rest of the query sees the same state as that frame.
        """
        key = name.key
        with self._lock:
            is_new, others = query not in self._tables, list(self._tables)
            seen = self._tables.setdefault(query, {})
        for other in others if is_new else ():
            if not is_running(other):
                with self._lock:
                    self._tables.pop(other, None)
        # Frames are made before the query that reads them. One that was made since belongs to another query inside of
        # this one, as those of `foreachBatch` do, and may be newer than what was seen before it.
        if key not in seen or seen[key][0] < made:
            looked_up, now = time.monotonic(), name.table if stays else load_again(name.table)
            with self._lock:  # another thread of the query may have been faster
                if key not in seen or seen[key][0] < made:
                    seen[key] = looked_up, now
        return seen[key][1]

    def __len__(self) -> int:
        """How many queries are known."""
        with self._lock:
            return len(self._tables)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._tables.clear()


STATES = QueryStates()


def _can_follow(group: ReadGroup, plan: ScanPlan) -> bool:
    """Whether files of a group are read by Spark alone, with deleted rows as bits."""
    return group.reader == "native" and not (group.has_deletes and plan.key_columns) and are_marked(group.files)


def _fits(part: FilesOfOneLayout, place: Place) -> bool:
    """Whether the relation of a place reads files of a part right."""
    if isinstance(part.layout, str) or (part.has_deletes and not place.takes_deletes):
        return False
    both = place.layout.with_also(part.layout) if len(part.layout.columns) == len(place.layout.columns) else None
    return both is not None and both.columns == place.layout.columns


def _size(metadata: TableMetadata, branch: str) -> int:
    """How many bytes of data files a branch has; 0 where nothing says so."""
    head = metadata.head(branch)
    size = "0" if head is None else head.summary.get("total-files-size", "0")
    return int(size) if size.isdecimal() else 0


def _state(scan: TableScan) -> Hashable:
    """What tells one state of a table from another, as far as a read is concerned."""
    metadata, version = scan.metadata, scan.version
    specs = tuple(spec.spec_id for spec in metadata.partition_specs)
    return version.snapshot_id, version.schema.schema_id, specs, metadata.properties.get(NAME_MAPPING_PROPERTY)
