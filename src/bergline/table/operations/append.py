"""Append: add files to a branch. Conflicts with nothing."""

from collections.abc import Mapping, Sequence

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import (
    ROW_FORMATS,
    DataFile,
    FileContent,
    ManifestContent,
    ManifestFile,
    is_deletion_vector,
)
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.manifests.removal import file_key


class Append(SnapshotProducer):
    """New manifests, then those of the parent; a fast one takes them all as they are."""

    def __init__(
        self,
        io: FileIO,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
        discard_on_failure: bool = False,
        starts_branch: bool = True,
        written_schema: Schema | None = None,
        seen_snapshots: frozenset[int] | None = None,
    ) -> None:
        super().__init__(
            io,
            branch,
            summary or {},
            files=files,
            discard_on_failure=discard_on_failure,
            merges=not fast,
            starts_branch=starts_branch,
            written_schema=written_schema,
            seen_snapshots=seen_snapshots,
        )
        self.can_rebase = discard_on_failure or not files  # given ones were looked for in the base
        self._added = AddedFiles(self, files)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The added files in front of what is there."""
        carried_forward = load_manifest_list(self._io, parent) if parent else []
        return Draft(
            SnapshotOperation.APPEND, (*self._added.manifests(base), *carried_forward), added=self._added.files
        )


class AddedFiles:
    """New files and their manifests: for each kind and partition spec, written once and the same in all attempts.

    With a `sequence_number` they have that one instead of the commit's: their
    rows were there before.
    """

    def __init__(
        self, producer: SnapshotProducer, files: Sequence[DataFile], *, sequence_number: int | None = None
    ) -> None:
        self.files = tuple(files)
        self._producer = producer
        self._sequence_number = sequence_number
        self._written: dict[bool, tuple[ManifestFile, ...]] = {}

    def manifests(self, base: TableMetadata) -> tuple[ManifestFile, ...]:
        """The manifests that name the files, those of delete files last."""
        numbered = base.format_version > 1 and self._sequence_number is not None
        if numbered not in self._written:
            _check_fit(base, self.files)
            kinds = sorted({(_content(f), f.spec_id) for f in self.files})
            self._written[numbered] = tuple(m for kind in kinds for m in self._write(base, *kind, numbered=numbered))
        return self._written[numbered]

    def _write(
        self, base: TableMetadata, content: ManifestContent, spec_id: int, *, numbered: bool
    ) -> tuple[ManifestFile, ...]:
        entries = [
            self._producer.added_entry(base, f) for f in self.files if (_content(f), f.spec_id) == (content, spec_id)
        ]
        if numbered:
            entries = [msgspec.structs.replace(e, sequence_number=self._sequence_number) for e in entries]
        return self._producer.write_manifests(base, spec_id, entries, content)


def _content(file: DataFile) -> ManifestContent:
    return ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES


def _check_fit(base: TableMetadata, files: Sequence[DataFile]) -> None:
    checked = set()
    for file in files:
        if file_key(file) in checked:
            raise InvalidInputError(f"expected each file once, found {file.file_path} twice")
        checked.add(file_key(file))
        if file.file_format not in ROW_FORMATS and not (is_deletion_vector(file) and file.file_format == "PUFFIN"):
            raise InvalidInputError(
                f"expected the format {', '.join(ROW_FORMATS)}, found `{file.file_format}` for {file.file_path}"
            )
        spec = base.specs_by_id.get(file.spec_id)
        if spec is None or len(spec.fields) != len(file.partition):
            known = {s.spec_id: len(s.fields) for s in base.partition_specs}
            raise InvalidInputError(
                f"expected a partition spec of {sorted(known)} with {known.get(file.spec_id, 'its number of')} values, "
                f"found {file.spec_id} with {len(file.partition)} for {file.file_path}"
            )
