"""Files by other writers, described from their footers and appended with the name mapping that they need."""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

from bergline.datafiles.write.write_spec import write_spec
from bergline.errors import ConflictError
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetProperties
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    NameMapping,
    create_name_mapping,
    parse_name_mapping,
    render_name_mapping,
)
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.imported_files import ImportPlan, SourceFile, describe_files
from bergline.table.engine.row_engine import RowEngine
from bergline.table.operations.append import Append

_FEW: Final = 64
"""Up to this many footers, reading them in this process is faster than starting a job."""
_PART: Final = 64


def described_files(
    io: FileIO, metadata: TableMetadata, spec: PartitionSpec, sources: Sequence[SourceFile], engine: RowEngine | None
) -> list[DataFile]:
    """Data files with metrics; the engine reads the footers if there are many."""
    used = ArrowRowEngine() if engine is None or len(sources) <= _FEW else engine
    size = max(1, min(_PART, len(sources) // _FEW))
    parts = [sources[n : n + size] for n in range(0, len(sources), size)]
    plan = ImportPlan(metadata.schema, spec, name_mapping_of(metadata), write_spec(metadata, check_types=False).metrics)
    work = functools.partial(describe_files, plan=plan)
    location = sources[0].location if sources else metadata.location
    found = used.compute(io, f"read {len(sources)} footers for {metadata.location}", work, parts, location)
    return [file for part in found for file in part]


def name_mapping_of(metadata: TableMetadata) -> NameMapping:
    """The table's name mapping, or the one that it will get: by the current names of its columns."""
    text = metadata.properties.get(NAME_MAPPING_PROPERTY)
    return create_name_mapping(metadata.schema) if text is None else parse_name_mapping(text)


class AddFiles(Append):
    """An append of files without field ids: the same commit sets a name mapping, if the table has none."""

    def __init__(
        self,
        io: FileIO,
        files: Sequence[DataFile],
        loaded: TableMetadata,
        *,
        branch: str,
        summary: Mapping[str, str],
    ) -> None:
        """`loaded` is the table that the files were described for."""
        super().__init__(
            io,
            files,
            branch=branch,
            summary=summary,
            written_schema=loaded.schema,
            seen_snapshots=frozenset(loaded.snapshots_by_id),
        )
        self._loaded = loaded

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The append; ConflictError if column names refer to other columns by now."""
        change = super().attempt(base, stamp)
        if not change.updates:
            return change
        if NAME_MAPPING_PROPERTY in base.properties:
            if name_mapping_of(base) != name_mapping_of(self._loaded):
                raise ConflictError("expected the name mapping that files were read with, found another one meanwhile")
            return change
        mapping = render_name_mapping(name_mapping_of(base))
        return Change((SetProperties({NAME_MAPPING_PROPERTY: mapping}), *change.updates), change.requirements)
