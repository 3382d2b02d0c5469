"""A table that is created, or replaced, together with its first content."""

import contextlib
from collections.abc import Iterable, Iterator

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.locations import absolute_location
from bergline.lake.handle import LakeHandle
from bergline.table.commits.isolation import Isolation, ValidateFrom
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.commits.validate import Validation
from bergline.table.evolution.definition import TableDefinition, new_location
from bergline.table.operations.overwrite import OverwriteChecks
from bergline.table.operations.validate_from import validation_start
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead
from bergline.table.table import Table
from bergline.table.transaction import Transaction, staged_creation


@contextlib.contextmanager
def staged_table(
    lake: LakeHandle,
    name: TableName,
    definition: TableDefinition,
    *,
    replace: bool,
    isolation: str | Isolation | None,
    validate_from: TableScan | int | None,
    reads: Iterable[BranchRead],
) -> Iterator[Table]:
    """The table while the block fills it; nobody else sees it before the block ends.

    AlreadyExistsError, now or at the end, if the name is taken and the table is not to be replaced. ConflictError if
    others have changed `main` of the replaced table since it was read.
    """
    catalog, timing = lake.catalog, lake.timing
    base = _existing(catalog, name)
    if base is None:
        _check_no_view(catalog, name)
        metadata = definition.new_table(new_location(catalog, name, definition.location), timing.clock_ms())
        with staged_creation(catalog, name, metadata, timing) as chain:
            yield Table(catalog, LoadedTable(name, metadata, ""), timing=timing, chain=chain)
        return
    if not replace:
        raise AlreadyExistsError(f"table `{name}` exists already", kind="table", name=str(name))
    home = absolute_location(definition.location) if definition.location else None
    start = validation_start(base.metadata, MAIN, isolation, validate_from, reads)

    def replace_table(now: TableMetadata) -> Change:
        if start is not None:
            _check_unchanged(catalog, now, start)
        return definition.replacement(now, home or now.location)

    with Transaction(catalog, timing) as transaction:
        table = Table(catalog, base, timing=timing, chain=transaction.chain(base))
        table.commit(MetadataOperation(replace_table, needs_validation=start is not None))
        yield table


def _check_unchanged(catalog: Catalog, now: TableMetadata, start: ValidateFrom) -> None:
    """ConflictError if others have changed `main`; the change drops it, which catalogs allow only at this head."""
    checks = OverwriteChecks(start.snapshot_id, start.isolation)
    checks.run(Validation(catalog.io, now, now.head(MAIN), since=start.snapshot_id, branch=MAIN))


def _existing(catalog: Catalog, name: TableName) -> LoadedTable | None:
    try:
        return catalog.load_table(name)
    except NotFoundError as error:
        if error.kind != "table":
            raise
        return None


def _check_no_view(catalog: Catalog, name: TableName) -> None:
    """Refuse the name of a view before anything is written; otherwise the catalog would, but only at the end."""
    try:
        catalog.load_view(name)
    except UnsupportedError:  # no views here
        return
    except NotFoundError as error:
        if error.kind != "file":
            return
    raise AlreadyExistsError(f"view `{name}` exists already", kind="view", name=str(name))
