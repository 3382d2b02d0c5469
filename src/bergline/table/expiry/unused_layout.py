"""Partition specs and schemas that nothing in a table uses any more."""

import itertools
from collections.abc import Iterable

import polars as pl

from bergline.format.manifest.manifest import EntryStatus, ManifestContent, ManifestFile
from bergline.format.metadata.requirements import AssertRefSnapshotId, Requirement, same_layout
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemovePartitionSpecs, RemoveSchemas, Update
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.scan.manifest_cache import FreshReads
from bergline.scan.manifests import load_columns, load_manifest_lists


def remove_unused_layout(io: FileIO, metadata: TableMetadata, fresh: FreshReads) -> tuple[Update, ...]:
    """Updates that remove what no snapshot, manifest or equality delete needs.

    These stay: the current schema and the default spec; those with the highest ids, which would otherwise be assigned
    again; and the schemas with the columns of specs and equality deletes, which may have been dropped since.
    """
    manifests = _manifests(io, metadata, fresh)
    specs = {m.partition_spec_id for m in manifests} | {metadata.default_spec_id, max(metadata.specs_by_id)}
    together = [{f.source_id for f in s.fields} for s in metadata.partition_specs if s.spec_id in specs]
    together += [{column} for column in _equality_columns(io, manifests, fresh)]
    schemas = _used_schemas(metadata, together)
    unused_specs = tuple(sorted(metadata.specs_by_id.keys() - specs))
    unused_schemas = tuple(i for s in metadata.schemas if (i := s.schema_id) is not None and i not in schemas)
    updates: list[Update] = []
    if unused_specs:
        updates.append(RemovePartitionSpecs(unused_specs))
    if unused_schemas:
        updates.append(RemoveSchemas(unused_schemas))
    return tuple(updates)


def layout_requirements(base: TableMetadata) -> tuple[Requirement, ...]:
    """The requirements for removing layouts: nobody has begun to use them."""
    heads = tuple(AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in sorted(base.refs.items()))
    return (*same_layout(base), *heads)


def _manifests(io: FileIO, metadata: TableMetadata, fresh: FreshReads) -> list[ManifestFile]:
    lists = load_manifest_lists(io, metadata.snapshots, fresh)
    return list({normalized(m.manifest_path): m for manifests in lists for m in manifests}.values())


def _used_schemas(metadata: TableMetadata, together: Iterable[set[int]]) -> set[int | None]:
    """The schemas of snapshots, the current and the latest one, and those in which columns are looked up."""
    used = {s.schema_id for s in metadata.snapshots} | {metadata.current_schema_id}
    used.add(max(s.schema_id or 0 for s in metadata.schemas))
    for columns in together:
        knowing = (s for s in (metadata.schema, *reversed(metadata.schemas)) if columns <= s.ids.keys())
        used |= {s.schema_id for s in itertools.islice(knowing, 1)}
    return used


def _equality_columns(io: FileIO, manifests: list[ManifestFile], fresh: FreshReads) -> set[int]:
    """The columns that equality deletes compare."""
    of_deletes = [m for m in manifests if m.content is ManifestContent.DELETES and m.has_live_files]
    columns: set[int] = set()
    for frame in load_columns(io, of_deletes, fresh):
        live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
        columns.update(live["equality_ids"].explode().drop_nulls().to_list())
    return columns
