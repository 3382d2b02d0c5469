"""Whether the manifests of a snapshot in the making fit the partition specs of its base."""

from collections.abc import Iterable, Mapping

from bergline.errors import ConflictError
from bergline.format.manifest import ManifestFile
from bergline.format.metadata import TableMetadata
from bergline.format.partition import PartitionSpec
from bergline.scan.manifests import spec_of


def spec_to_write(base: TableMetadata, spec_id: int) -> PartitionSpec:
    """The spec of files that were written for it; ConflictError if it is there no longer."""
    spec = base.specs_by_id.get(spec_id)
    if spec is None:
        raise _removed(base, spec_id)
    return spec


def check_specs(base: TableMetadata, manifests: Iterable[ManifestFile], written: Mapping[str, PartitionSpec]) -> None:
    """Refuse a list that no reader could follow.

    `written` has the spec of each manifest that was written for the snapshot, by path: if it went or became another one
    between two attempts that is a ConflictError. A manifest of the parent without spec is a FormatError.
    """
    for manifest in manifests:
        spec = written.get(manifest.manifest_path)
        if spec is None:
            spec_of(manifest, base)
        elif base.specs_by_id.get(spec.spec_id) != spec:
            raise _removed(base, spec.spec_id)


def _removed(base: TableMetadata, spec_id: int) -> ConflictError:
    return ConflictError(
        f"expected partition spec {spec_id}, for which files were written, found it removed meanwhile: "
        f"there are {sorted(base.specs_by_id)} as they are now",
        hints=["load the table again, and write the rows again"],
    )
