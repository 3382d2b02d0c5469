"""Position delete files and deletion vectors with other paths: they reference data files by path."""

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.datafiles.file.schema import by_field_id
from bergline.datafiles.formats.data_input import open_data_file
from bergline.errors import InvalidInputError
from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.deletes.puffin import parse_puffin, replace_footer
from bergline.format.manifest.manifest import DataFile, FileContent, is_deletion_vector
from bergline.io.fileio import FileIO
from bergline.table.relocation.path_prefix import PathPrefix

_REFERENCED = "referenced-data-file"
_Bounds = dict[int, bytes] | None


def names_paths(file: DataFile) -> bool:
    """Whether a file contains paths of other files."""
    return file.content is FileContent.POSITION_DELETES


def rewritten_content(io: FileIO, file: DataFile, prefix: PathPrefix) -> bytes:
    """The content of a delete file for the same data files in another location."""
    return _vectors(io, file, prefix) if is_deletion_vector(file) else _positions(io, file, prefix)


def moved_file(file: DataFile, prefix: PathPrefix, size: int | None) -> DataFile:
    """A file as manifests describe it at its new location, with the size of its new content if it has any."""
    referenced = file.referenced_data_file
    moved = msgspec.structs.replace(
        file,
        file_path=prefix.moved(file.file_path),
        file_size_in_bytes=file.file_size_in_bytes if size is None else size,
        referenced_data_file=None if referenced is None else prefix.moved(referenced),
    )
    if not names_paths(file):
        return moved
    lower, upper = (_bounds(bounds, prefix) for bounds in (file.lower_bounds, file.upper_bounds))
    # positions are written as Parquet, whatever format they were read from
    file_format = file.file_format if is_deletion_vector(file) else "PARQUET"
    return msgspec.structs.replace(moved, lower_bounds=lower, upper_bounds=upper, file_format=file_format)


def _bounds(bounds: _Bounds, prefix: PathPrefix) -> _Bounds:
    """Bounds of paths that are truncated within the prefix are dropped: a missing bound claims nothing."""
    if bounds is None or FILE_PATH_ID not in bounds:
        return bounds
    path = bounds[FILE_PATH_ID].decode(errors="replace")
    others = {key: value for key, value in bounds.items() if key != FILE_PATH_ID}
    return others | {FILE_PATH_ID: prefix.moved(path).encode()} if prefix.contains(path) else others


def _vectors(io: FileIO, file: DataFile, prefix: PathPrefix) -> bytes:
    data = io.read(file.file_path)
    footer = parse_puffin(data, file.file_path)
    blobs = [
        msgspec.structs.replace(b, properties=b.properties | {_REFERENCED: prefix.moved(b.properties[_REFERENCED])})
        if _REFERENCED in b.properties
        else b
        for b in footer.blobs
    ]
    return replace_footer(data, msgspec.structs.replace(footer, blobs=tuple(blobs)), file.file_path)


def _positions(io: FileIO, file: DataFile, prefix: PathPrefix) -> bytes:
    output = pa.BufferOutputStream()
    with open_data_file(io, file) as deletes:
        schema = deletes.schema
        place = by_field_id(schema)[FILE_PATH_ID]
        with pq.ParquetWriter(output, schema, compression="zstd") as writer:
            for _, batch in deletes.batches(schema.names):
                rows = pa.Table.from_batches([batch])
                paths = _moved_paths(rows.column(place), prefix, file.file_path).cast(schema.field(place).type)
                writer.write_table(rows.set_column(place, schema.field(place), paths))
    return output.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _moved_paths(column: pa.ChunkedArray, prefix: PathPrefix, place: str) -> pa.ChunkedArray:
    """Paths keep their order: all of them begin alike before and after."""
    texts = column.cast(pa.string())
    inside = pc.starts_with(texts, f"{prefix.source}/")
    if not pc.all(pc.fill_null(inside, False), min_count=0).as_py():
        raise InvalidInputError(f"expected paths of data files below {prefix.source}, found others in {place}")
    rest = pc.utf8_slice_codeunits(texts, len(prefix.source))
    return pc.binary_join_element_wise(prefix.target, rest, "")
