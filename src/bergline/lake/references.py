"""Branches and tags of several tables as one.

Every change is one commit to all its tables, retried when others come first. If it is impossible for one table, none is
changed, and a TablesRefusedError has the reason for each such table.
"""

from collections.abc import Mapping

import msgspec

from bergline.arguments import check_whole, shown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lake.handle import LakeHandle
from bergline.lake.ref_report import RefReport, WatchedRef
from bergline.table.commits.commit import TableWork, commit
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.new_ref import NewRef
from bergline.table.references.publish import Publish, PublishRequest
from bergline.table.references.ref_changes import drop_ref
from bergline.table.scans.version import SnapshotChoice
from bergline.table.table_selection import TableNames, named_tables, selected_tables, tables_with_ref

SnapshotChoices = Mapping[str | TableName, SnapshotChoice | None]


def create_refs(
    lake: LakeHandle,
    new: NewRef,
    tables: TableNames | SnapshotChoices | None,
    namespace: str | Namespace | None,
    at: SnapshotChoice | None,
) -> RefReport:
    """Create a ref of the named tables, or of all in a namespace; a mapping says for each table where it starts."""
    check_ref_name(new.name)
    names = selected_tables(lake.catalog, tables, namespace)
    starts = tuple(tables.values()) if isinstance(tables, Mapping) else (at,) * len(names)
    if isinstance(tables, Mapping) and at is not None:
        raise InvalidInputError(f"expected no `at` beside a snapshot for each table, found {shown(at)}")
    operations = {name: new.operation(lake.catalog.io, start) for name, start in zip(names, starts, strict=True)}
    what = f"{new.kind} `{new.name}`"
    return _commit(lake, f"create {what}", f"created {what}", new.name, operations)


def publish(
    lake: LakeHandle,
    request: PublishRequest,
    tables: TableNames | Mapping[str | TableName, int] | None,
    namespace: str | Namespace | None = None,
) -> RefReport:
    """Publish a branch of the named tables, or of all that have it; a mapping says where each branch must be."""
    check_ref_name(request.branch)
    if request.tag is not None:
        check_ref_name(request.tag)
    heads = _heads(tables) if isinstance(tables, Mapping) else {}
    names = _having(lake, request.branch, list(heads) if heads else tables, namespace)
    operations = {
        table: Publish(lake.catalog.io, msgspec.structs.replace(request, head=heads.get(table))) for table in names
    }
    what = f"`{request.branch}` into `{request.into}`"
    return _commit(lake, f"publish {what}", f"published {what}", request.into, operations)


def drop_refs(
    lake: LakeHandle, name: str, tables: TableNames | None, namespace: str | Namespace | None, *, if_exists: bool
) -> RefReport:
    """Drop a ref in the named tables, or in all that have it."""
    check_ref_name(name)
    operations = {
        table: MetadataOperation(
            lambda base: _drop(base, name, if_exists=if_exists), overwrites=lambda base: base.refs.get(name)
        )
        for table in _having(lake, name, tables, namespace, if_exists=if_exists)
    }
    return _commit(lake, f"drop `{name}`", f"dropped `{name}`", name, operations)


def _having(
    lake: LakeHandle,
    ref: str,
    tables: TableNames | None,
    namespace: str | Namespace | None,
    *,
    if_exists: bool = False,
) -> tuple[TableName, ...]:
    known_refs: set[str] = set()
    names = tables_with_ref(lake.catalog, ref, tables, namespace, known_refs)
    if not names and not if_exists:
        raise NotFoundError(f"no table with a branch or tag `{ref}`", kind="ref", name=ref, known=known_refs)
    return names


def _commit(lake: LakeHandle, to_do: str, done: str, ref: str, operations: Mapping[TableName, Operation]) -> RefReport:
    watched = {name: WatchedRef(operation, ref) for name, operation in operations.items()}
    work = [TableWork(name, None, None, one) for name, one in watched.items()]
    commit(lake.catalog, work, lake.timing, refusal=f"cannot {to_do}")
    return RefReport(done, ref, tuple(one.outcome(str(name)) for name, one in watched.items()))


def _heads(tables: Mapping[str | TableName, int]) -> dict[TableName, int]:
    for table, head in tables.items():
        check_whole(head, f"the snapshot of `{table}`")
    return dict(zip(named_tables(tables), tables.values(), strict=True))


def _drop(base: TableMetadata, name: str, *, if_exists: bool) -> Change:
    if if_exists and name not in base.refs:
        return Change()
    return drop_ref(base, name, base.ref(name).snapshot_ref_type)
