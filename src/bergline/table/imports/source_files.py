"""Which files are imported, and into which partitions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bergline.arguments import check_list, check_text, check_texts
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.hive_paths import is_hidden, parse_partition_text, split_partition_path
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import Identity
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.table.engine.imported_files import SourceFile


class PartitionedFile(msgspec.Struct, frozen=True):
    """A file and the partition values that its source has for it, as text, in order."""

    location: str
    values: tuple[tuple[str, str], ...] = ()


def source_files(io: FileIO, source: Any, spec: PartitionSpec) -> list[PartitionedFile]:
    """The files of a caller's source; `spec` says how many directories above a file name partition values."""
    if isinstance(source, str):
        return _listed(io, source)
    if isinstance(source, Mapping):
        values = {check_text(path, "the location of a file"): check_texts(v, "value") for path, v in source.items()}
        return [PartitionedFile(path, tuple(texts.items())) for path, texts in values.items()]
    depth = len(spec.fields)
    return [
        PartitionedFile(path, _values("/".join(path.split("/")[-depth - 1 : -1]), path) if depth else ())
        for path in check_list(source, "file")
    ]


def _listed(io: FileIO, location: str) -> list[PartitionedFile]:
    """The files at or below a location, without hidden ones; the directories in between name their partitions."""
    base = normalized(location).rstrip("/")
    if io.exists(location):
        return [PartitionedFile(location)]
    found = []
    for path in io.list(location):
        below = normalized(path).removeprefix(f"{base}/")
        if not is_hidden(below):
            found.append(PartitionedFile(path, _values(below.rpartition("/")[0], path)))
    if not found:
        raise NotFoundError(f"no files to import in {location}", kind="file", name=location)
    return found


def matching_spec(metadata: TableMetadata, names: Sequence[str]) -> PartitionSpec:
    """The table's partition spec, the current one first, with exactly these columns in this order."""
    wanted = [name.lower() for name in names]
    specs = sorted(metadata.partition_specs, key=lambda s: s.spec_id != metadata.default_spec_id)
    for spec in specs:
        if [f.name.lower() for f in spec.fields] == wanted and all(
            isinstance(f.transform, Identity) for f in spec.fields
        ):
            return spec
    have = " or ".join(f"({', '.join(f'{f.transform} {f.name}' for f in spec.fields)})" for spec in specs)
    raise InvalidInputError(
        f"expected files partitioned as a spec of the table, {have}, found ({', '.join(names)})",
        hints=["files can be added to tables partitioned by the same columns, without transforms"],
    )


def pick_files(
    files: Iterable[PartitionedFile], metadata: TableMetadata, spec: PartitionSpec, wanted: Mapping[str, str]
) -> list[SourceFile]:
    """The files of the partitions that a filter selects, with their partition values."""
    types = {f.name.lower(): f.type for f in spec.partition_type(metadata.schema_for(spec)).fields}
    unknown = [name for name in wanted if name.lower() not in types]
    if unknown:
        known = ", ".join(types) or "none"
        raise InvalidInputError(f"expected partition columns in the filter, {known}, found `{unknown[0]}`")
    parsed: dict[tuple[str, str], Any] = {}

    def value(name: str, text: str) -> Any:
        key = (name.lower(), text)
        if key not in parsed:
            parsed[key] = parse_partition_text(types[key[0]], text, name)
        return parsed[key]

    asked = {name.lower(): value(name, text) for name, text in wanted.items()}
    picked = []
    for file in files:
        names = [name.lower() for name, _ in file.values]
        if names != list(types):
            raise InvalidInputError(
                f"expected the partition columns {', '.join(types) or '(none)'}, "
                f"found {', '.join(names) or '(none)'} for {file.location}"
            )
        values = tuple(value(name, text) for name, text in file.values)
        if all(dict(zip(names, values, strict=True))[name] == wish for name, wish in asked.items()):
            picked.append(SourceFile(file.location, values))
    return picked


def _values(directories: str, path: str) -> tuple[tuple[str, str], ...]:
    found = split_partition_path(directories)
    if found is None:
        raise InvalidInputError(f"expected directories like `column=value`, found `{directories}` in {path}")
    return tuple(found)
