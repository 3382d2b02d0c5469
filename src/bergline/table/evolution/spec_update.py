"""Partition spec changes of a table: collected in a `with` block, committed together when it ends."""

from collections.abc import Callable, Sequence
from typing import Self, assert_never

from bergline.arguments import check_text
from bergline.format.evolution.partition_evolution import AddField, RemoveField, RenameField, SpecChange, evolve_spec
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.terms import parse_term
from bergline.table.commits.operation import Change, Operation
from bergline.table.evolution.layout_change import change_spec
from bergline.table.evolution.pending_update import (
    PendingUpdate,
    check_same_column,
    conflict,
    conflict_if_refused,
    is_settled,
)

_FIELD = "the name of a partition field"


class SpecUpdate(PendingUpdate[SpecChange]):
    """One commit of changes; existing files keep the partitions that they were written in."""

    def __init__(self, loaded: TableMetadata, commit: Callable[[Operation], object]) -> None:
        super().__init__(loaded, commit)
        self.spec = loaded.spec
        """The spec with the changes so far."""

    def add_field(self, term: str, *, name: str | None = None) -> Self:
        """Add a partition field for a term such as `day(ts)`, `bucket(16, id)`, `truncate(4, name)` or `region`."""
        check_text(term, "text for a partition term")
        return self._change(AddField(term, name if name is None else check_text(name, _FIELD)))

    def remove_field(self, name_or_term: str) -> Self:
        """Remove the partition field with a name, or for a term."""
        return self._change(RemoveField(check_text(name_or_term, _FIELD)))

    def rename_field(self, name: str, new_name: str) -> Self:
        """Rename a partition field."""
        return self._change(RenameField(check_text(name, _FIELD), check_text(new_name, _FIELD)))

    def _change(self, change: SpecChange) -> Self:
        after = _evolved(self._loaded, [*self._requested, change])
        self._request(change)
        self.spec = after
        return self

    def _check_all(self) -> None:
        """Each change was checked with those before it."""

    def _apply(self, base: TableMetadata) -> Change:
        with conflict_if_refused(self._loaded, base):
            for request in self._requested:
                _check_same_field(request, self._loaded, base)
            return change_spec(base, _evolved(base, self._requested))


def _evolved(base: TableMetadata, changes: Sequence[SpecChange]) -> PartitionSpec:
    evolved, _ = evolve_spec(
        base.spec,
        changes,
        schema=base.schema,
        format_version=base.format_version,
        known=base.partition_specs,
        last_partition_id=base.last_partition_id,
    )
    return evolved


def _check_same_field(change: SpecChange, loaded: TableMetadata, base: TableMetadata) -> None:
    """Refuse fields that others have removed or redefined, and terms whose column is a different one now."""
    match change:
        case AddField(term):
            _check_same_source(term, loaded, base)
        case RemoveField(name) | RenameField(name):
            field, now = _named(loaded.spec, name), _named(base.spec, name)
            if field is None:
                _check_same_source(name, loaded, base)
            elif now is None:
                raise conflict(f"partition field `{name}` was removed or renamed", loaded, base)
            elif now.transform != field.transform or (
                now.source_id != field.source_id and is_settled(field.source_id, loaded, base)
            ):
                raise conflict(f"partition field `{name}` is a different one now", loaded, base)
        case _:
            assert_never(change)


def _check_same_source(term: str, loaded: TableMetadata, base: TableMetadata) -> None:
    check_same_column(parse_term(term)[1], loaded.schema, base.schema, loaded, base)


def _named(spec: PartitionSpec, name: str) -> PartitionField | None:
    return next((f for f in spec.fields if f.name == name), None)
