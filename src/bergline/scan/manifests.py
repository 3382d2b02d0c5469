"""Manifest lists and manifests of a snapshot, read and resolved."""

from collections.abc import Iterable, Iterator

from bergline.errors import FormatError
from bergline.format.inheritance import inherit
from bergline.format.manifest import ManifestEntry, ManifestFile
from bergline.format.manifest_avro import parse_manifest, parse_manifest_list
from bergline.format.metadata import TableMetadata
from bergline.format.partition import PartitionSpec
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
    return list(inherit(_parse(io, manifest, spec), manifest))


def live_entries(io: FileIO, manifests: Iterable[ManifestFile], metadata: TableMetadata) -> Iterator[ManifestEntry]:
    """The entries of the files that are in the snapshot."""
    for manifest in manifests:
        if manifest.has_live_files:
            yield from (e for e in load_entries(io, manifest, metadata) if e.is_live)


def _parse(io: FileIO, manifest: ManifestFile, spec: PartitionSpec) -> list[ManifestEntry]:
    return parse_manifest(io.read(manifest.manifest_path), spec, manifest.manifest_path)
