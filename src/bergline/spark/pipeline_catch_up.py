"""A run's branch brought on top of `main`, so that what is audited is what will be published."""

from collections.abc import Mapping

from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.table.table import Table


def tables_behind(tables: Mapping[str, Table], branch: str) -> list[str]:
    """The tables whose `main` has moved on since the branch left it."""
    return [name for name, table in tables.items() if _is_behind(table.metadata, branch)]


def catch_up(tables: Mapping[str, Table], branch: str) -> list[str]:
    """Rebase the branch where `main` has moved on; a conflict with what others did there is an error.

    The tables that were rebased; each moves on to the new state.
    """
    behind = tables_behind(tables, branch)
    for name in behind:
        tables[name].refs.rebase(branch, onto=MAIN)
    return behind


def _is_behind(metadata: TableMetadata, branch: str) -> bool:
    main, own = metadata.head(MAIN), metadata.head(branch)
    if main is None or own is None:
        return False
    return all(snapshot.snapshot_id != main.snapshot_id for snapshot in metadata.ancestors(own.snapshot_id))
