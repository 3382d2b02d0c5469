"""Compaction: which data files are rewritten, in which groups and in which order, and what replaces them.

Rows keep their row ids. New files have the sequence number of the snapshot that was read, unless rows move to another
partition spec: whoever deletes by equality meanwhile deletes their rows too.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from bergline.arguments import check_list, shown
from bergline.datafiles.write.write_spec import write_spec
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.manifest.manifest import DataFile, is_deletion_vector
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.sort_order import UNSORTED, parse_sort_by
from bergline.format.partition.transforms import Identity
from bergline.format.types.types import child_fields
from bergline.io.fileio import FileIO
from bergline.quoting import without_back_quotes
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planned_files import PlannedFiles
from bergline.table.engine.file_groups import SizeRules, in_job_order, packed, trimmed
from bergline.table.engine.plans import GroupLayout, RowOrder
from bergline.table.engine.row_engine import FileChanges
from bergline.table.engine.z_order import ZOrder, check_z_type
from bergline.table.operations.dangling_deletes import dangling_deletes
from bergline.table.operations.rewrite_candidates import RewriteCandidates, find_candidates
from bergline.table.operations.rewrite_files import Rewritten
from bergline.table.operations.rewrite_options import RewriteOptions

_FIRST_WITH_NUMBERS: Final = 2
_STRATEGIES: Final = ("binpack", "sort")
_Z_ORDER: Final = "zorder"
_LOG = logging.getLogger("bergline.table")


class CompactionResult(msgspec.Struct, frozen=True):
    """What was rewritten; all zero if there was nothing to gain."""

    rewritten_data_files: int = 0
    added_data_files: int = 0
    rewritten_bytes: int = 0
    removed_delete_files: int = 0
    failed_data_files: int = 0
    """Those of groups that could not be rewritten or committed, where partial progress is enabled."""

    def __add__(self, other: "CompactionResult") -> "CompactionResult":
        return CompactionResult(*(getattr(self, f) + getattr(other, f) for f in self.__struct_fields__))


class CompactionRequest(msgspec.Struct, frozen=True):
    """Which files, in what order, and Iceberg's options."""

    row_filter: Predicate = ALWAYS_TRUE
    order: RowOrder | None = None
    options: RewriteOptions = RewriteOptions()
    only_fewer: bool = False
    """Whether files are rewritten only where they become fewer, or have deletes."""


class RewrittenGroup(msgspec.Struct, frozen=True):
    """A group of data files, and the files that hold their rows now."""

    layout: GroupLayout
    changes: FileChanges

    @property
    def removed(self) -> tuple[DataFile, ...]:
        """The data files that are replaced."""
        return tuple(planned.file for planned in self.layout.files)


def rewrite_kind(strategy: Any, sort_order: Any) -> str:
    """What is asked for: binpack, sort or zorder; a sort order alone means to sort."""
    if strategy is not None and (not isinstance(strategy, str) or strategy.lower() not in _STRATEGIES):
        raise InvalidInputError(f"expected the strategy binpack or sort, found {shown(strategy)}")
    name = "sort" if strategy is None and sort_order is not None else (strategy or _STRATEGIES[0]).lower()
    if name == "binpack" and sort_order is not None:
        raise InvalidInputError(f"expected no sort order for the strategy binpack, found {shown(sort_order)}")
    return _Z_ORDER if sort_order is not None and any(map(_is_z_term, _terms(sort_order))) else name


def parse_order(kind: str, sort_order: Any, metadata: TableMetadata, options: RewriteOptions) -> RowOrder | None:
    """The order of rows, as text (`id desc, region`), as a list of terms, `zorder(a, b)`, or the table's own."""
    if kind == "binpack":
        return None
    terms = () if sort_order is None else _terms(sort_order)
    if kind == _Z_ORDER:
        return _z_order(terms, metadata, options)
    if sort_order is not None and not terms:
        raise InvalidInputError("expected columns to sort by, found none")
    if terms:
        return parse_sort_by(terms, metadata.schema)
    own = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), UNSORTED)
    if not own.fields:
        raise InvalidInputError("expected a sort order, found none in the table and none given")
    return own


class CompactionPlan:
    """The files that are worth rewriting, in groups, which are given as objects only when their turn has come."""

    def __init__(
        self,
        read: ScanPlan,
        files: PlannedFiles,
        groups: Sequence[Sequence[int]],
        rules: SizeRules,
        request: CompactionRequest,
    ) -> None:
        self.read = read
        """How files are read; it has none."""
        self._files = files
        self._groups = groups
        self._rules = rules
        self._request = request

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._groups)

    @property
    def files(self) -> PlannedFiles:
        """All files of the groups, in columns, without metrics."""
        return self._files.only_at(sorted(place for group in self._groups for place in group))

    def layouts(self, start: int, stop: int) -> list[GroupLayout]:
        """Some of the groups, and how they are written."""
        groups = self._groups[start:stop]
        files = iter(self._files.picked([place for group in groups for place in group]))
        return [_layout(list(islice(files, len(group))), self._rules, self._request) for group in groups]


def plan_compaction(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    request: CompactionRequest,
    skip: Collection[str] = (),
) -> CompactionPlan:
    """The files of a snapshot that are worth rewriting, but for those to skip, in groups."""
    options = request.options
    rules = options.sizes(write_spec(metadata).target_file_size, only_fewer=request.only_fewer)
    read, files, candidates = find_candidates(
        io, metadata, snapshot, request.row_filter, rules=rules, options=options, skip=skip
    )
    return CompactionPlan(read, files, plan_groups(candidates, rules, options), rules, request)


def plan_groups(candidates: RewriteCandidates, rules: SizeRules, options: RewriteOptions) -> list[list[int]]:
    """The places of files that are rewritten together: of one partition each."""
    size = candidates.sizes.__getitem__
    groups = [group for places in candidates.partitions for group in _groups_of(places, candidates, rules)]
    return in_job_order(trimmed(groups, options.max_files_to_rewrite), size, options.rewrite_job_order)


def _groups_of(places: Sequence[int], candidates: RewriteCandidates, rules: SizeRules) -> list[list[int]]:
    size, has_many_deletes = candidates.sizes.__getitem__, candidates.has_many_deletes.__getitem__
    chosen = [p for p in places if rules.rewrite_all or rules.is_off(size(p)) or has_many_deletes(p)]
    groups = packed(chosen, size, rules.largest_group, most_items=rules.most_group_files)
    return [
        group
        for group in groups
        if rules.rewrite_all or rules.is_worth_it([size(p) for p in group]) or any(map(has_many_deletes, group))
    ]


def as_rewritten(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    request: CompactionRequest,
    groups: Sequence[RewrittenGroup],
    *,
    pinned: bool,
    earlier: Iterable[DataFile] = (),
) -> Rewritten:
    """What is to be committed for some groups of a snapshot, after `earlier` files of it were rewritten already.

    New files keep the snapshot's sequence number if they are `pinned`. In a transaction, where it may get another
    number on another base, they are not, and delete files stay, which may then be about rows of others.
    """
    read = tuple(planned for group in groups for planned in group.layout.files)
    removed = tuple(planned.file for planned in read)
    numbered = (
        pinned
        and metadata.format_version >= _FIRST_WITH_NUMBERS
        and request.options.use_starting_sequence_number
        and not any(group.layout.moves_rows for group in groups)
    )
    dangling: tuple[DataFile, ...] = ()
    if pinned and request.options.remove_dangling_deletes:
        # a file without a number gets a higher one than all that the snapshot has
        number = snapshot.sequence_number if numbered else snapshot.sequence_number + 1
        dangling = dangling_deletes(io, metadata, snapshot, (*removed, *earlier), number)
    elif pinned:
        dangling = tuple(d for planned in read for d in planned.deletes if is_deletion_vector(d))
    added = tuple(file for group in groups for file in group.changes.data_files)
    return Rewritten(added, removed, dangling, snapshot.sequence_number if numbered else None, read)


def changed_files(before: Iterable[PlannedFile], now: Iterable[PlannedFile]) -> set[str]:
    """Paths of the data files that are gone, or have other deletes or row ids than before."""
    known = {planned.file.file_path: _state(planned) for planned in now}
    return {p.file.file_path for p in before if known.get(p.file.file_path) != _state(p)}


def _state(planned: PlannedFile) -> tuple[Any, ...]:
    deletes = frozenset((d.file_path, d.content_offset) for d in planned.deletes)
    return planned.file.first_row_id, planned.sequence_number, deletes


def _layout(group: list[PlannedFile], rules: SizeRules, request: CompactionRequest) -> GroupLayout:
    size = sum(planned.file.file_size_in_bytes for planned in group)
    return GroupLayout(
        tuple(group),
        rules.largest_file,
        rules.split_size(size),
        request.options.output_spec_id,
        request.order,
        rules.expected_files(int(size * request.options.compression_factor)),
    )


def _terms(sort_order: Any) -> tuple[str, ...]:
    """The terms of a sort order, split at commas outside parentheses and back-quotes."""
    if not isinstance(sort_order, str):
        return check_list(sort_order, "sort term")
    terms, depth, quoted = [""], 0, False
    for character in sort_order:
        quoted ^= character == "`"
        depth += 0 if quoted else (character == "(") - (character == ")")
        if character == "," and not depth and not quoted:
            terms.append("")
        else:
            terms[-1] += character
    if depth or quoted:
        raise InvalidInputError(f"expected terms with closed brackets and quotes, found `{sort_order[:80]}`")
    return tuple(term.strip() for term in terms) if sort_order.strip() else ()


def _is_z_term(term: str) -> bool:
    name, bracket, _ = term.partition("(")
    return bool(bracket) and name.strip().lower() == _Z_ORDER


def _z_order(terms: Sequence[str], metadata: TableMetadata, options: RewriteOptions) -> ZOrder:
    if not all(map(_is_z_term, terms)):
        raise InvalidInputError(f"expected zorder(…) or columns to sort by, found both in `{', '.join(terms)[:80]}`")
    names = [name for term in terms for name in _terms(term.strip().partition("(")[2].removesuffix(")"))]
    if not names:
        raise InvalidInputError("expected columns in zorder(…), found none")
    constant = {f.source_id for f in metadata.spec.fields if isinstance(f.transform, Identity)}
    chosen = []
    for name in names:
        field = metadata.schema.find(without_back_quotes(name) if name.startswith("`") else name)
        if len(metadata.schema.paths.get(field.id, ())) != 1 or child_fields(field.type):
            raise InvalidInputError(f"expected top-level columns of one value in zorder(…), found `{name}`")
        check_z_type(field.type, field.name)
        if field.id in constant:
            _LOG.warning("zorder: column `%s` is the same in all rows of a partition, and does not count", name)
        else:
            chosen.append(field.name)
    if not chosen:
        raise InvalidInputError(f"expected a column in zorder(…) that differs inside partitions, found {terms[0]}")
    return ZOrder(tuple(chosen), options.var_length_contribution, options.max_output_size)
