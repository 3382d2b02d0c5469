"""The pointer store of the Hadoop catalog: the newest `vN.metadata.json` in a directory is the table, as in Java.

A pointer is the name of a file that the swap itself creates, so its content is handed over first: `stage`.
"""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence

from bergline.catalog.hadoop.namespaces import METADATA, DirectoryNamespaces
from bergline.catalog.hadoop.version_files import Version, VersionFiles
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from bergline.io.directories import Directories
from bergline.io.fileio import FileIO
from bergline.io.locations import join, scheme_of

SINGLE_WRITER_PROPERTY = "version-hint.single-writer"
_STAGED_FILES = 16


class HadoopPointerStore:
    """PointerStore over version files, without views and renames, which the layout does not support.

    Concurrent writers are decided by who creates the next file. On a store without conditional creates writing is
    refused, unless `single_writer` says that there is only one writer.
    """

    atomic_tables = False
    views = None

    def __init__(self, io: FileIO, directories: Directories, warehouse: str, *, single_writer: bool = False) -> None:
        self._io = io
        self._warehouse = warehouse
        self._versions = VersionFiles(io, directories)
        self._namespaces = DirectoryNamespaces(io, directories, warehouse, self._versions)
        self._may_write = single_writer or scheme_of(warehouse) == "file"
        self._staged = _Staged()

    def table_directory(self, table: TableName) -> str:
        """The fixed directory of a table."""
        return self._namespaces.directory(*table.namespace, table.name)

    def is_foreign(self, table: TableName) -> bool:
        """Whether another catalog's metadata is in the table's directory."""
        return self._versions.is_foreign(self._metadata(table))

    def read(self, table: TableName) -> str | None:
        version = self._newest(table)
        return version.location if version else None

    def stage(self, table: TableName, expected: str | None, data: bytes) -> str:
        """Stage the content of a new version on this thread; returns the pointer that a swap or create will set."""
        return self.stage_file(self._metadata(table), expected, lambda _: data)

    def stage_file(self, directory: str, expected: str | None, render: Callable[[str], bytes]) -> str:
        """The same in a metadata directory, for content that depends on the name."""
        location = self._versions.next_location(directory, expected)
        self._staged.files[location] = render(location)
        if len(self._staged.files) > _STAGED_FILES:
            self._staged.files.popitem(last=False)
        return location

    def unstage(self, pointer: str) -> None:
        """Discard staged content."""
        self._staged.files.pop(pointer, None)

    def landed(self, pointer: str) -> bool | None:
        """Whether the file of this name has the staged content; None if there is no such file."""
        return self._versions.holds(pointer, self._staged_data(pointer))

    def create(self, table: TableName, pointer: str) -> bool:
        return self._add(table, None, pointer)

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Create the next version after the expected one."""
        return self._add(table, expected, new)

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Only one table at a time."""
        if len(swaps) != 1:
            raise UnsupportedError(
                f"expected a change to one table, found {len(swaps)}: version files move one at a time"
            )
        return self._add(swaps[0].table, swaps[0].expected, swaps[0].new)

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        """Add a tombstone version; a new table of this name continues with higher numbers."""
        self._check_may_write()
        while (version := self._newest(table)) and expected in {None, version.location}:
            if self._versions.drop(self._metadata(table), version):
                return True
        return False

    def rename(self, table: TableName, new: TableName) -> bool:
        """Unsupported: the name is the directory."""
        raise UnsupportedError(
            f"cannot rename `{table}` to `{new}`: tables of a version-hint catalog are their directories"
        )

    def list_names(self, namespace: Namespace) -> list[TableName]:
        """The directories with versions."""
        return [TableName(namespace, name) for name in self._namespaces.list_tables(namespace)]

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        self._check_may_write()
        return self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Remove the directory, if only its properties are in it."""
        self._check_may_write()
        return self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self._namespaces.exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        """The properties in the directory's hidden file."""
        return self._namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """Replace the hidden file."""
        self._check_may_write()
        return self._namespaces.update(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All directories that are not tables."""
        return self._namespaces.list_below(below)

    def close(self) -> None:
        """Nothing to close."""

    def _metadata(self, table: TableName) -> str:
        return join(self.table_directory(table), METADATA)

    def _newest(self, table: TableName) -> Version | None:
        return self._versions.newest(self._metadata(table))

    def _add(self, table: TableName, expected: str | None, new: str) -> bool:
        data = self._staged_data(new)
        self._check_may_write()
        directory = self._metadata(table)
        if self.read(table) != expected or new != self._versions.next_location(directory, expected):
            return False
        if not self._versions.add(directory, expected, new, data):
            return False
        self.unstage(new)
        return True

    def _staged_data(self, pointer: str) -> bytes:
        try:
            return self._staged.files[pointer]
        except KeyError:
            raise InvalidInputError(
                f"expected the name of a file whose bytes were handed over, found `{pointer}`"
            ) from None

    def _check_may_write(self) -> None:
        """Check once that the store refuses to create a file twice."""
        if self._may_write:
            return
        probe = join(self._warehouse, f".check-{uuid.uuid4()}")
        self._io.create(probe, b"1")
        try:
            self._io.create(probe, b"2")
        except AlreadyExistsError:
            self._may_write = True
        finally:
            self._io.delete([probe])
        if not self._may_write:
            raise UnsupportedError(
                f"expected a store that never creates a file twice for {self._warehouse}, found one that does",
                hints=[f"if nobody else writes there, set the property {SINGLE_WRITER_PROPERTY} to true"],
            )


class _Staged(threading.local):
    """Staged content by thread: two threads with the same pointer each have their own."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, bytes] = OrderedDict()
