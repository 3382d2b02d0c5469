"""The other tables and views of a catalog, checked before deleting files that one of them may use.

Locations are compared first: manifests are read only of tables whose directories overlap, or whose metadata shows that
they may have files outside of their own. An unreadable table blocks the deletion only if it may be one of those. If the
catalog records the directories of its tables, metadata is read only of such tables and of unknown ones.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Protocol, runtime_checkable

from bergline.catalog.attempts import looks
from bergline.catalog.catalog import Catalog, LoadedTable, LoadedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import table_files, view_files
from bergline.catalog.table_locations import may_have_files_elsewhere, table_directories
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    FormatError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.table.orphans.catalog_tables import every_table, load_listed
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.footprints import NearOwners, find_near
from bergline.table.orphans.referenced_files import referenced_files, referenced_in_metadata

_METADATA = "metadata"
_UNREADABLE = (AuthenticationError, NotFoundError, FormatError, UnsupportedError, RefusedError, StorageError)


class OtherTables:
    """All tables and views but one, including those in the trash, that may use files in some directories.

    The excluded one may itself be in the trash. RefusedError, which names the operation, if the files of one of them
    cannot be determined. With `read_all` the manifests of all tables are read.
    """

    def __init__(
        self, catalog: Catalog, table: LoadedTable, directories: DirectorySet, operation: str, *, read_all: bool
    ) -> None:
        self._catalog = catalog
        self._table = table
        self._files = table_files(catalog.io)
        self._in_trash: set[str] = set()
        self._directories = directories
        self._operation = operation
        self._read_all = read_all

    @property
    def _is_live(self) -> bool:
        """Whether the excluded table still has its name, which no later table has taken."""
        return not self._is_in_bin(self._table.metadata_location)

    def tables(self) -> Iterator[LoadedTable]:
        """The other tables, without unreadable ones that are outside of the directories; those in the trash last."""
        yield from self._live_tables()
        yield from self._dropped_tables()

    @cached_property
    def _near(self) -> NearOwners | None:
        """The tables and views that may have files in the directories; None if all must be checked."""
        footprints = None if self._read_all else self._catalog.footprints()
        if footprints is None:
            return None
        return find_near(self._catalog.io, footprints, self._directories, self._table.metadata.table_uuid)

    def _table_names(self) -> Iterable[TableName]:
        return every_table(self._catalog) if self._near is None else self._near.tables

    def _view_names(self) -> Iterator[TableName]:
        if self._near is not None:
            yield from self._near.views
            return
        for namespace in self._catalog.list_namespaces():
            try:
                yield from self._catalog.list_views(namespace)
            except NotFoundError:  # dropped since it was listed
                continue

    def _live_tables(self) -> Iterator[LoadedTable]:
        for other in self._table_names():
            if other == self._table.name and self._is_live:
                continue
            try:
                loaded = load_listed(self._catalog, other)
            except UnavailableError:  # the catalog did not respond, which says nothing about the table
                raise
            except BerglineError as error:
                if self._is_elsewhere(other, self._catalog.pointer):
                    continue
                raise self._unreadable(other, error) from error
            if loaded is not None:
                yield loaded
            elif self._is_listed(other):
                raise UnavailableError(
                    f"cannot {self._operation}: the catalog lists table `{other}`, but does not find it"
                )

    def files_of(self, other: LoadedTable) -> Iterator[str]:
        """Every location that another table references and that may be in the directories, some twice."""
        table = other
        if other.metadata_location in self._in_trash:
            yield from self._files_of_dropped(other)
            return
        for _ in looks(f"table `{other.name}` kept changing while its files were listed"):
            try:
                yield from self._read_files(table)
            except _UNREADABLE as error:
                newest = self._newest(other.name)
                if newest is None:  # dropped meanwhile
                    return
                if newest.metadata_location == table.metadata_location:
                    raise self._unreadable(other.name, error) from error
                table = newest  # the table moved on, and expiry was allowed to delete the file
            else:
                return

    def views(self) -> Iterator[LoadedView]:
        """All views, without unreadable ones that are outside of the directories; those in the trash last."""
        yield from self._live_views()
        yield from self._dropped_views()

    def _live_views(self) -> Iterator[LoadedView]:
        for name in self._view_names():
            try:
                yield self._catalog.load_view(name)
            except UnavailableError:
                raise
            except BerglineError as error:
                if isinstance(error, NotFoundError) and error.kind != "file":  # dropped since it was listed
                    continue
                catalog = self._catalog
                if isinstance(catalog, _ViewPointers) and self._is_elsewhere(name, catalog.view_pointer):
                    continue
                raise self._unreadable(name, error) from error

    def _dropped_views(self) -> Iterator[LoadedView]:
        """The views in the trash, which need their metadata file to be restored; without those whose file is gone."""
        files = view_files(self._catalog.io)
        for dropped in self._catalog.dropped_views():
            location = dropped.metadata_location
            try:
                metadata = files.load(location)
            except UnavailableError:
                raise
            except BerglineError as error:
                if isinstance(error, NotFoundError) or self._is_at_another_place(location):
                    continue
                raise self._unreadable(dropped.name, error) from error
            yield LoadedView(dropped.name, metadata, location)

    def _dropped_tables(self) -> Iterator[LoadedTable]:
        """The tables in the trash: they may be restored, and need their files until then."""
        for dropped in self._catalog.dropped_tables():
            location = dropped.metadata_location
            if dropped.purge_begun or location == self._table.metadata_location:
                continue
            if self._near is not None and not self._near.has_dropped(dropped.name, location):
                continue
            try:
                metadata = self._files.load(location)
            except UnavailableError:
                raise
            except BerglineError as error:
                if self._is_at_another_place(location) or not self._is_in_bin(location):
                    continue
                raise self._unreadable(dropped.name, error) from error
            self._in_trash.add(location)
            yield LoadedTable(dropped.name, metadata, location)

    def _files_of_dropped(self, other: LoadedTable) -> Iterator[str]:
        try:
            yield from self._read_files(other)
        except _UNREADABLE as error:
            if self._is_in_bin(other.metadata_location):
                raise self._unreadable(other.name, error) from error

    def _is_in_bin(self, location: str) -> bool:
        return any(dropped.metadata_location == location for dropped in self._catalog.dropped_tables())

    def _read_files(self, table: LoadedTable) -> Iterator[str]:
        if self._matters(table):
            return iter(referenced_files(self._catalog.io, table))
        return iter(referenced_in_metadata(table))

    def _is_listed(self, name: TableName) -> bool:
        try:
            return name in self._catalog.list_tables(name.namespace)
        except NotFoundError:
            return False

    def _matters(self, table: LoadedTable) -> bool:
        """Whether the manifests must be read to know which files a table has in the directories."""
        return (
            self._read_all
            or self._directories.may_overlap(table_directories(table.metadata))
            or may_have_files_elsewhere(table, referenced_in_metadata(table))
        )

    def _is_elsewhere(self, name: TableName, pointer_of: "_PointerOf") -> bool:
        """Whether the pointer alone, in `<location>/metadata`, shows that a table or view is elsewhere."""
        try:
            return self._is_at_another_place(pointer_of(name))
        except BerglineError:
            return False

    def _is_at_another_place(self, pointer: str) -> bool:
        location, _, last = pointer.rpartition("/")[0].rpartition("/")
        return not self._read_all and last == _METADATA and not self._directories.may_overlap([location])

    def _newest(self, name: TableName) -> LoadedTable | None:
        try:
            return load_listed(self._catalog, name)
        except _UNREADABLE as error:
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: TableName, error: BerglineError) -> BerglineError:
        if not isinstance(error, _UNREADABLE):
            return error
        way_out = f"make `{name}` readable again, or drop it without purging it if it is no longer needed"
        return RefusedError(
            f"cannot {self._operation}: what `{name}` uses cannot be read: {error}",
            hints=[*error.hints, way_out],
        )


class _PointerOf(Protocol):
    def __call__(self, name: TableName, /) -> str: ...


@runtime_checkable
class _ViewPointers(Protocol):
    """A catalog that returns a view's metadata location without reading it."""

    def view_pointer(self, name: TableName) -> str:
        """The location."""
        ...
