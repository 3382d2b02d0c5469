"""Manifest lists and manifests of a snapshot, read and resolved."""

from collections.abc import Iterable, Iterator

from bergline.errors import FormatError
from bergline.format.inheritance import inherit
from bergline.format.manifest import ManifestEntry, ManifestFile
from bergline.format.manifest_avro import parse_manifest, parse_manifest_list
from bergline.format.metadata import TableMetadata
from bergline.format.snapshot import Snapshot
from bergline.io.fileio import FileIO


def load_manifest_list(io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
    """The manifests of a snapshot."""
    return parse_manifest_list(io.read(snapshot.manifest_list), snapshot.manifest_list)


def load_entries(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> list[ManifestEntry]:
    """All entries of a manifest with their numbers filled in."""
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    if spec is None:
        raise FormatError(
            f"expected a partition spec of {sorted(metadata.specs_by_id)}, "
            f"found {manifest.partition_spec_id} for {manifest.manifest_path}"
        )
    entries = parse_manifest(io.read(manifest.manifest_path), spec, manifest.manifest_path)
    _check_count(entries, manifest)
    return list(inherit(entries, manifest))


def live_entries(io: FileIO, manifests: Iterable[ManifestFile], metadata: TableMetadata) -> Iterator[ManifestEntry]:
    """The entries of the files that are in the snapshot."""
    for manifest in manifests:
        if manifest.has_live_files:
            yield from (e for e in load_entries(io, manifest, metadata) if e.is_live)


def _check_count(entries: list[ManifestEntry], manifest: ManifestFile) -> None:
    """A manifest cut off between two blocks still parses; the manifest list knows how many entries it had."""
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    if None not in counts and len(entries) != (expected := sum(c or 0 for c in counts)):
        raise FormatError(f"expected {expected} entries, found {len(entries)} in {manifest.manifest_path}")
