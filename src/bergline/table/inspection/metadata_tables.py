"""Metadata tables by name, as Arrow, with the columns of the official runtime."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from bergline.arguments import check_text
from bergline.errors import NotFoundError, UnsupportedError
from bergline.format.manifest.manifest import ManifestContent
from bergline.table.inspection.files import all_entries_table, all_files_table, entries_table, files_table
from bergline.table.inspection.history import history_table, metadata_log_table, refs_table, snapshots_table
from bergline.table.inspection.manifests import all_manifests_table, manifests_table
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.inspection.partitions import partitions_table
from bergline.table.inspection.position_deletes import position_deletes_table

METADATA_TABLES: dict[str, Callable[[MetadataView], pa.Table]] = {
    "refs": refs_table,
    "snapshots": snapshots_table,
    "history": history_table,
    "metadata_log_entries": metadata_log_table,
    "files": files_table,
    "data_files": partial(files_table, content=ManifestContent.DATA),
    "delete_files": partial(files_table, content=ManifestContent.DELETES),
    "entries": entries_table,
    "manifests": manifests_table,
    "partitions": partitions_table,
    "position_deletes": position_deletes_table,
    "all_files": all_files_table,
    "all_data_files": partial(all_files_table, content=ManifestContent.DATA),
    "all_delete_files": partial(all_files_table, content=ManifestContent.DELETES),
    "all_entries": all_entries_table,
    "all_manifests": all_manifests_table,
}


def metadata_table(view: MetadataView, name: str, *, at_version: bool = False) -> pa.Table:
    """One of the metadata tables; names ignore case. Those about all snapshots cannot be read at a version."""
    known = check_text(name, "the name of a metadata table").lower()
    build = METADATA_TABLES.get(known)
    if build is None:
        raise NotFoundError(f"no metadata table `{name}`", kind="metadata table", name=name, known=METADATA_TABLES)
    if at_version and known.startswith("all_"):
        raise UnsupportedError(
            f"expected no version for `{known}`, which is about all snapshots, found one",
            hints=[f"`{known.removeprefix('all_')}` is about one snapshot"],
        )
    return build(view)
