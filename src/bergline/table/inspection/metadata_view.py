"""What a metadata table is made from: a table, and the snapshot that it is about."""

from collections.abc import Iterable

import msgspec
import polars as pl

from bergline.format.manifest.manifest import EntryStatus, ManifestContent, ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.paths import unknown_text
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import UnknownTransform
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list, resolved_columns
from bergline.scan.restrictions import check_rows_readable


class MetadataView(msgspec.Struct, frozen=True):
    """A table as loaded; `snapshot` is the requested one, none while the table is empty."""

    io: FileIO
    metadata: TableMetadata
    metadata_location: str
    snapshot: Snapshot | None

    def manifests(self) -> list[ManifestFile]:
        """The manifests of the snapshot; their bounds reveal values, so the catalog's restrictions apply."""
        check_rows_readable(self.metadata)
        return [] if self.snapshot is None else load_manifest_list(self.io, self.snapshot)

    def all_manifests(self) -> list[ManifestFile]:
        """The manifests of all snapshots, each once."""
        check_rows_readable(self.metadata)
        by_path: dict[str, ManifestFile] = {}
        for snapshot in self.metadata.snapshots:
            for manifest in load_manifest_list(self.io, snapshot):
                by_path.setdefault(manifest.manifest_path, manifest)
        return list(by_path.values())

    def entries(self, manifests: Iterable[ManifestFile]) -> dict[int, pl.DataFrame]:
        """All entries of manifests by partition spec, with their numbers filled in."""
        check_rows_readable(self.metadata)
        by_spec = resolved_columns(self.io, list(manifests), self.metadata)
        return {i: _with_own_fields(frame, self.metadata.specs_by_id[i]) for i, frame in by_spec.items()}

    def live_entries(self, manifests: Iterable[ManifestFile]) -> dict[int, pl.DataFrame]:
        """The entries of files that were not removed, by partition spec."""
        by_spec = self.entries(m for m in manifests if m.has_live_files)
        live = pl.col("status") != int(EntryStatus.DELETED)
        return {spec_id: frame.filter(live) for spec_id, frame in by_spec.items()}


def of_content(manifests: Iterable[ManifestFile], content: ManifestContent | None) -> list[ManifestFile]:
    """The manifests of data files or of delete files; None for both."""
    return [m for m in manifests if content is None or m.content is content]


def _with_own_fields(entries: pl.DataFrame, spec: PartitionSpec) -> pl.DataFrame:
    """Entries with only the partition fields of their spec, those of unknown transforms as text."""
    own = {str(f.field_id): f.transform for f in spec.fields}
    unknown = [name for name, t in own.items() if isinstance(t, UnknownTransform) and name in entries.columns]
    texts = [pl.Series(name, map(unknown_text, entries[name].to_list()), pl.String) for name in unknown]
    return entries.drop([n for n in entries.columns if n.isdecimal() and n not in own]).with_columns(texts)
