"""Commits to `main` as it is seen at a ref of the lake, put into what they mean for the table itself.

History, location and format version belong to the whole table, and so does its schema: columns may be added from a
branch, and whatever would change what others read is refused.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import msgspec

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef, LakeRefKind
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata.refs import CREATED_ON, MAIN, SnapshotRefType
from bergline.format.metadata.requirements import AssertRefRetention, AssertRefSnapshotId, Requirement
from bergline.format.metadata.table_metadata import TableMetadata, changed, strip_trailing_slash
from bergline.format.metadata.updates import (
    AddSchema,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetCurrentSchema,
    SetLocation,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, ListType, MapType, NestedField, StructType

_LAST_ADDED = -1
_OF_THE_TABLE = {
    RemoveSnapshots: "expire snapshots",
    RemoveSchemas: "remove schemas",
    RemovePartitionSpecs: "remove partition specs",
    SetLocation: "set the location",
    UpgradeFormatVersion: "upgrade the format version",
}


def created_at(metadata: TableMetadata, ref: LakeRef) -> TableMetadata:
    """A new table on a branch alone, with the rows that it was to have on `main`."""
    refs = {ref.name if name == MAIN else name: found for name, found in metadata.refs.items()}
    properties = metadata.properties | {CREATED_ON: ref.name}
    return changed(metadata, refs=refs, properties=properties, current_snapshot_id=None, snapshot_log=())


def published(before: TableMetadata, after: TableMetadata) -> TableMetadata:
    """A table after a change: it is not on its branch alone any more once it has a `main`, and only then."""
    branch, said = before.properties.get(CREATED_ON), after.properties.get(CREATED_ON)
    if said not in {None, branch}:
        raise InvalidInputError(f"expected no change of property `{CREATED_ON}`: it says where a table was created")
    if MAIN in after.refs:
        branch = None
    if said == branch:
        return after
    properties = {k: v for k, v in after.properties.items() if k != CREATED_ON}
    return changed(after, properties=properties if branch is None else properties | {CREATED_ON: branch})


class LandingChange(msgspec.Struct, frozen=True):
    """What a commit requires of a table, and what it does to it."""

    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]


def check_writable(ref: LakeRef, table: TableName) -> None:
    """Refuse commits where nothing can be written."""
    if ref.kind is not LakeRefKind.BRANCH:
        _refuse_read_only(table, str(ref))


def landing(
    base: TableMetadata, ref: LakeRef, table: TableName, change: LandingChange, check_joins: Callable[[TableName], None]
) -> LandingChange:
    """A commit to what is seen at a ref, as it lands; RefusedError for what cannot be changed from a branch.

    The first commit creates the branch where its author has read `main`, if that is still in its history, and
    `check_joins` raises if the branch of the lake does not take the table, or is gone.
    """
    check_writable(ref, table)
    own = base.refs.get(ref.name)
    if own is not None and not own.is_branch:
        _refuse_read_only(table, f"tag `{ref.name}`")
    landed = LandingChange(
        tuple(_requirements(base, ref.name, change.requirements)),
        tuple(_updates(base, ref, table, change.updates)),
    )
    if own is None and any(isinstance(u, SetSnapshotRef) and u.ref_name == ref.name for u in landed.updates):
        check_joins(table)
    return landed


def moves_main(table: TableName, ref: LakeRef) -> RefusedError:
    """The error for a change to the real `main` from a ref."""
    return _refused(table, ref, "move the real `main`")


def _requirements(base: TableMetadata, branch: str, requirements: Iterable[Requirement]) -> Iterator[Requirement]:
    begins = branch not in base.refs
    for requirement in requirements:
        match requirement:
            case AssertRefSnapshotId(ref="main", snapshot_id=head):
                yield AssertRefSnapshotId(branch, None if begins and _was_main(base, head) else head)
            case AssertRefRetention(ref="main"):
                if not begins:
                    yield msgspec.structs.replace(requirement, ref=branch)
            case AssertRefSnapshotId(ref=name) | AssertRefRetention(ref=name) if _is_lake_main(base, name):
                yield msgspec.structs.replace(requirement, ref=MAIN)
            case _:
                yield requirement


def _was_main(base: TableMetadata, head: int | None) -> bool:
    """Whether `main` is or was at a snapshot; one to which it was rolled back since is not in its history."""
    main = base.refs.get(MAIN)
    if head is None or main is None:
        return head is None and main is None
    return base.is_ancestor(head, of=main.snapshot_id)


def _updates(base: TableMetadata, ref: LakeRef, table: TableName, updates: Iterable[Update]) -> Iterator[Update]:
    added: list[Schema] = []
    empties = False
    is_its_own = base.properties.get(CREATED_ON) == ref.name
    for update in updates:
        what = None if is_its_own or _changes_nothing(base, update) else _OF_THE_TABLE.get(type(update))
        if what is not None:
            _refuse(table, ref, f"{what}, which belongs to the whole table")
        match update:
            case AddSchema(schema=schema):
                added.append(schema)
            case SetCurrentSchema(schema_id=schema_id) if not is_its_own:
                _check_only_adds(base, ref, table, _schema(base, added, schema_id))
            case SetSnapshotRef(ref_name="main"):
                if update.type is not SnapshotRefType.BRANCH:
                    _refuse(table, ref, "make a tag of its `main`")
                empties = False
                yield msgspec.structs.replace(update, ref_name=ref.name)
                continue
            case RemoveSnapshotRef(ref_name="main"):
                if ref.name in base.refs:
                    yield RemoveSnapshotRef(ref.name)
                empties = MAIN in base.refs
                continue
            case SetSnapshotRef(ref_name=name) | RemoveSnapshotRef(ref_name=name) if _is_lake_main(base, name):
                raise moves_main(table, ref)
        yield update
    if empties:
        _refuse(table, ref, "be without rows by dropping its `main`: delete all rows instead")


def _changes_nothing(base: TableMetadata, update: Update) -> bool:
    """Whether an update sets what is set; a table that is replaced says all of it again."""
    match update:
        case UpgradeFormatVersion(format_version=version):
            return version == base.format_version
        case SetLocation(location=location):
            return strip_trailing_slash(location) == base.location
        case _:
            return False


def _is_lake_main(base: TableMetadata, name: str) -> bool:
    return name == LAKE_MAIN and name not in base.refs


def _schema(base: TableMetadata, added: list[Schema], schema_id: int) -> Schema:
    if schema_id == _LAST_ADDED and added:
        return added[-1]
    return next((s for s in added if s.schema_id == schema_id), None) or base.schema_by_id(schema_id)


def _check_only_adds(base: TableMetadata, ref: LakeRef, table: TableName, schema: Schema) -> None:
    before, after = base.schema, schema
    found = next(_differences("", before.fields, after.fields), None)
    if found is None and before.identifier_field_ids != after.identifier_field_ids:
        found = "set other identifier fields"
    if found is not None:
        _refuse(table, ref, f"{found}: readers of `main` have the same columns; optional ones may be added at the end")


def _differences(path: str, before: tuple[NestedField, ...], after: tuple[NestedField, ...]) -> Iterator[str]:
    for place, old in enumerate(before):
        name = f"{path}{old.name}"
        new = after[place] if place < len(after) else None
        if new is None or new.id != old.id:
            moved = any(f.id == old.id for f in after)
            yield f"move column `{name}`" if moved else f"drop column `{name}`"
            return
        if new.name != old.name:
            yield f"rename column `{name}`"
        if new.required != old.required:
            yield f"make column `{name}` {'required' if new.required else 'optional'}"
        if new.initial_default != old.initial_default:
            yield f"change the initial default of column `{name}`"
        yield from _type_differences(name, old.type, new.type)
    for new in after[len(before) :]:
        if new.required:
            yield f"add the required column `{path}{new.name}`"


def _type_differences(name: str, before: IcebergType, after: IcebergType) -> Iterator[str]:
    match before, after:
        case StructType(old), StructType(new):
            yield from _differences(f"{name}.", old, new)
        case ListType(), ListType() if (before.element_id, before.element_required) == (
            after.element_id,
            after.element_required,
        ):
            yield from _type_differences(f"{name}.element", before.element, after.element)
        case MapType(), MapType() if before.key == after.key and (
            before.key_id,
            before.value_id,
            before.value_required,
        ) == (after.key_id, after.value_id, after.value_required):
            yield from _type_differences(f"{name}.value", before.value, after.value)
        case _:
            if before != after:
                yield f"change the type of column `{name}` from {before} to {after}"


def _refuse(table: TableName, ref: LakeRef, what: str) -> NoReturn:
    raise _refused(table, ref, what)


def _refused(table: TableName, ref: LakeRef, what: str) -> RefusedError:
    return RefusedError(
        f"a commit to `{table}` at {ref} cannot {what}",
        hints=["make this change to the table on `main`, through the lake without a ref"],
    )


def _refuse_read_only(table: TableName, what: str) -> NoReturn:
    raise RefusedError(
        f"`{table}` is read at {what}, where nothing can be written",
        hints=["write to a branch of the lake: `bergline branch create staging`, then `lake@staging`"],
    )
