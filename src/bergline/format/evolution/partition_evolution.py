"""Partition evolution: add, remove and rename fields; a field id is never reused for another field.

In v1 field ids follow from positions, so a removed field stays in place as `void`. From v2 on it is removed, and gets
its old id back if it is added again.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import msgspec

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.encoding.integers import next_int
from bergline.format.partition.compatibility import check_partition_names, check_spec_fits
from bergline.format.partition.spec import PartitionField, PartitionSpec, check_transforms
from bergline.format.partition.terms import parse_term
from bergline.format.partition.transforms import (
    VOID,
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
)
from bergline.format.schema.schema import Schema

_V2: Final = 2


class AddField(msgspec.Struct, frozen=True):
    """Add a partition field for a term such as `day(ts)`; without a name it gets the default one."""

    term: str
    name: str | None = None


class RemoveField(msgspec.Struct, frozen=True):
    """Remove the partition field with this name or for a term such as `day(ts)`."""

    name_or_term: str


class RenameField(msgspec.Struct, frozen=True):
    """Rename a partition field."""

    name: str
    new_name: str


SpecChange = AddField | RemoveField | RenameField


def evolve_spec(
    spec: PartitionSpec,
    changes: Iterable[SpecChange],
    *,
    schema: Schema,
    format_version: int,
    known: Sequence[PartitionSpec],
    last_partition_id: int,
) -> tuple[PartitionSpec, int]:
    """Apply changes to a spec as one step; also returns the highest partition field id.

    `known` are all specs of the table: an equal spec is reused, and fields of earlier specs keep their ids.
    """
    work = _SpecBuilder(spec, schema, format_version, known, last_partition_id)
    for change in changes:
        match change:
            case AddField(term, name):
                work.add(term, name)
            case RemoveField(name_or_term):
                work.remove(name_or_term)
            case RenameField(name, new_name):
                work.rename(name, new_name)
            case _:
                assert_never(change)
    fields = work.fields()
    evolved = PartitionSpec(_spec_id(fields, known), fields)
    check_partition_names(evolved, schema)
    check_spec_fits(evolved, schema)
    return evolved, work.last_partition_id


def evolution_name(column: str, transform: Transform) -> str:
    """The default name of a field added to an existing table, as in Java."""
    match transform:
        case Identity():
            return column
        case Bucket(count):
            return f"{column}_bucket_{count}"
        case Truncate(width):
            return f"{column}_trunc_{width}"
    return f"{column}_{transform}"


def _spec_id(fields: tuple[PartitionField, ...], known: Sequence[PartitionSpec]) -> int:
    content = [(f.source_id, f.transform, f.name) for f in fields]
    for spec in known:
        if [(f.source_id, f.transform, f.name) for f in spec.fields] == content:
            return spec.spec_id
    return next_int("spec id", max((s.spec_id for s in known), default=-1))


class _SpecBuilder:
    """Collects the changes; the fields of the base stay untouched until `fields` builds the result."""

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        format_version: int,
        known: Sequence[PartitionSpec],
        last_partition_id: int,
    ) -> None:
        for field in spec.fields:
            if isinstance(field.transform, UnknownTransform):
                raise InvalidInputError(
                    f"expected known transforms in a spec that changes, found `{field.transform}` in `{field.name}`"
                )
        self.last_partition_id = last_partition_id
        self._spec, self._schema, self._format_version, self._known = spec, schema, format_version, known
        self._by_name = {f.name: f for f in spec.fields}
        self._by_term = {(f.source_id, f.transform): f for f in spec.fields}
        self._added: list[PartitionField] = []
        self._removed: set[int] = set()
        self._renamed: dict[str, str] = {}

    def add(self, term: str, name: str | None) -> None:
        transform, source_id = self._resolve(term)
        existing = self._by_term.get((source_id, transform))
        if existing is not None and existing.field_id in self._removed:
            self._removed.discard(existing.field_id)
            if name is not None and name != existing.name:
                self.rename(existing.name, name)
            return
        if existing is not None or any((f.source_id, f.transform) == (source_id, transform) for f in self._added):
            raise AlreadyExistsError(f"partition field `{term}` exists already", kind="partition field", name=term)
        if isinstance(transform, TimeTransform) and any(
            f.source_id == source_id and isinstance(f.transform, TimeTransform) for f in self._added
        ):
            raise InvalidInputError(f"expected one unit of time for each column, found `{term}` as a second one")
        field = self._earlier(source_id, transform, name) or self._new(source_id, transform, name)
        self._make_room(field.name, term)
        self._added.append(field)

    def remove(self, name_or_term: str) -> None:
        self._check_not_new("remove", name_or_term)
        field = self._by_name.get(name_or_term)
        if field is None:
            transform, source_id = self._resolve(name_or_term)
            field = self._by_term.get((source_id, transform))
        if field is None:
            raise self._not_found(name_or_term)
        if field.name in self._renamed:
            raise InvalidInputError(f"cannot both rename and remove partition field `{field.name}`")
        self._removed.add(field.field_id)

    def rename(self, name: str, new_name: str) -> None:
        taken = self._by_name.get(new_name)
        if taken is not None and isinstance(taken.transform, Void):
            self.rename(taken.name, f"{taken.name}_{taken.field_id}")
        self._check_not_new("rename", name)
        field = self._by_name.get(name)
        if field is None:
            raise self._not_found(name)
        if field.field_id in self._removed:
            raise InvalidInputError(f"cannot both remove and rename partition field `{name}`")
        self._renamed[name] = new_name

    def fields(self) -> tuple[PartitionField, ...]:
        fields = []
        for field in self._spec.fields:
            removed = field.field_id in self._removed
            if removed and self._format_version >= _V2:
                continue
            transform = VOID if removed else field.transform
            name = self._renamed.get(field.name, field.name)
            fields.append(msgspec.structs.replace(field, name=name, transform=transform))
        return (*fields, *self._added)

    def _resolve(self, term: str) -> tuple[Transform, int]:
        transform, column = parse_term(term)
        source = self._schema.find(column)
        check_transforms(transform, source.type, self._schema.names_by_id[source.id])
        return transform, source.id

    def _earlier(self, source_id: int, transform: Transform, name: str | None) -> PartitionField | None:
        """The same field in the latest earlier spec that has it; never in v1, which does not keep ids."""
        if self._format_version < _V2:
            return None
        for spec in reversed(self._known):
            for field in spec.fields:
                if (field.source_id, field.transform) == (source_id, transform) and name in (None, field.name):
                    return field
        return None

    def _new(self, source_id: int, transform: Transform, name: str | None) -> PartitionField:
        self.last_partition_id += 1
        usual = evolution_name(self._schema.names_by_id[source_id], transform)
        return PartitionField(source_id, self.last_partition_id, usual if name is None else name, transform)

    def _make_room(self, name: str, term: str) -> None:
        """Rename a removed (`void`) field that has the name of the new one."""
        taken = self._by_name.get(name)
        if any(f.name == name for f in self._added):
            raise AlreadyExistsError(f"partition field `{name}` exists already", kind="partition field", name=name)
        if taken is None:
            return
        if taken.field_id in self._removed:
            self._renamed[name] = f"{name}_{taken.field_id}"
        elif isinstance(taken.transform, Void):
            self.rename(name, f"{name}_{taken.field_id}")
        else:
            raise AlreadyExistsError(
                f"partition field `{name}` exists already, expected another name for `{term}`",
                kind="partition field",
                name=name,
            )

    def _check_not_new(self, what: str, name: str) -> None:
        if any(f.name == name for f in self._added):
            raise InvalidInputError(f"cannot {what} partition field `{name}`: it was only just added")

    def _not_found(self, name: str) -> NotFoundError:
        return NotFoundError(
            f"no partition field `{name}`", kind="partition field", name=name, known=list(self._by_name)
        )
