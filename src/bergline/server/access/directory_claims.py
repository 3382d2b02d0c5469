"""Which directories are whose: callers get directories for tables and views that are nobody else's."""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from uuid import uuid4

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.directories.reserved_directories import (
    Claim,
    DirectoryKind,
    DirectoryState,
    overlap,
    reserved_spelling,
)
from bergline.catalog.sql.directories.table_directories import TableDirectories, canonical_directory, not_apart
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.catalog.table_locations import directories_of
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.governance.grants.grant import principal
from bergline.governance.grants.securable import CATALOG, Securable, table_of, view_of
from bergline.io.locations import is_absolute
from bergline.server.access.access import Access
from bergline.server.access.locations import Locations

_MAX_NOTED = 10_000
_OWN_FOR_S = 60.0
_UNIQUE = 8


class DirectoryClaims:
    """Decides on claims, where directories are kept apart.

    They are where somebody gets credentials for a directory (`vends`), and where there are grants.
    """

    def __init__(
        self,
        catalog: PointerCatalog,
        locations: Locations,
        access: Access,
        *,
        vends: Callable[[], bool],
        keeps_dropped: Callable[[], bool],
    ) -> None:
        self._catalog = catalog
        self._locations = locations
        self._access = access
        self._vends = vends
        self._keeps_dropped = keeps_dropped
        self._database = records_of(catalog).database
        self._own: dict[tuple[TableName, tuple[str, ...]], float] = {}
        self.directories = TableDirectories(
            records_of(catalog), self._directories_of, typed=sql_store_of(catalog).views is not None
        )

    def new_location(self, name: TableName, location: str | None) -> str:
        """The location of a new table or view: the client's, if that is allowed, or the catalog's default.

        Files that are there already are not looked at: they may be of a table that was dropped.
        """
        if location is None:
            return self._free_location(name, self._catalog.default_location(name))
        if not is_absolute(location):
            raise InvalidInputError(f"expected an absolute location, found `{location[:200]}`")
        self._locations.check_directory(location)
        return location

    def of(self, name: TableName, kind: DirectoryKind = DirectoryKind.TABLE, table_uuid: str | None = None) -> Claim:
        """What the caller of the request that is served wants directories for."""
        caller = requesting_caller()
        if caller is None:
            return Claim(kind, name, table_uuid, frozenset(), administers=True)
        by = frozenset(map(str, self._access.rules().identities(caller.name, caller.groups)))
        return Claim(kind, name, table_uuid, by, administers=caller.administers or not self._access.is_active)

    def check_new(self, claim: Claim, directories: Sequence[str], own: Sequence[str] = ()) -> None:
        """Refuse directories that the caller may not have for a table or view; `own` are those that it has."""
        if self._keeps_apart:
            self._check_home(claim, directories, own)
            with self._hiding_names(claim):
                self.directories.check_apart(claim, directories)
                self._check_trash(claim, directories)

    def check_reserved(
        self, connection: Connection, claim: Claim, directories: Sequence[str], own: Sequence[str] = ()
    ) -> None:
        """The same in the transaction that reserves them, as far as others are reserved."""
        if self._keeps_apart:
            self._check_home(claim, directories, own)
            with self._hiding_names(claim):
                taken = self.directories.reserved.find_taken(connection, claim, directories)
                if taken is not None:
                    raise not_apart(claim, taken.directory, taken.other)

    def reserve_staged(self, name: TableName, metadata: TableMetadata, until_ms: int) -> None:
        """Reserve the directories of a table that is not created yet, for whose files there are credentials now."""
        directories, reserved, caller = table_directories(metadata), self.directories.reserved, requesting_caller()
        if self._keeps_apart and caller is not None:
            claim = self.of(name, table_uuid=metadata.table_uuid)
            with self._database.changing() as connection:
                reserved.lock(connection)
                reserved.begin(connection, claim, directories)
                self.check_reserved(connection, claim, directories)
                reserved.stage(connection, claim, directories, str(principal(caller.name)), until_ms)

    def check_apart(self, name: TableName, directories: Sequence[str]) -> None:
        """Refuse directories of a table, its location first, that have files of others too."""
        if self._keeps_apart:
            claim = Claim(DirectoryKind.TABLE, name)
            with self._hiding_names(claim):
                self.directories.check_apart(claim, directories)
                self._check_trash(claim, directories)

    def check_table(self, name: TableName, metadata: TableMetadata) -> None:
        """Refuse the directories of a table that is to be created."""
        directories = table_directories(metadata)
        for directory in directories:
            self._locations.check_directory(directory)
        self.check_new(self.of(name, table_uuid=metadata.table_uuid), directories)

    def check_namespace_location(self, namespace: Namespace, location: str | None) -> None:
        """Refuse a location of a namespace that is outside, or, where there are grants, not in its own directory."""
        self._locations.check_location(location)
        caller = requesting_caller()
        if location is None or caller is None or caller.administers or not self._access.is_active:
            return
        home = self._catalog.locations.of_namespace(namespace, {})
        if home is None or not f"{reserved_spelling(location)}/".startswith(f"{reserved_spelling(home)}/"):
            raise RefusedError(
                f"expected a location in the directory of namespace `{'.'.join(namespace)}`, found `{location[:200]}`",
                hints=["leave it out, or let an administrator of the catalog choose it"],
            )

    def check_own(self, name: TableName, directories: Sequence[str]) -> None:
        """RefusedError for directories that are not this table's alone; others are not checked again for a minute."""
        if self.owns_certainly(name, directories):
            return
        for directory in directories:
            self._locations.check_directory(directory)
        self.check_apart(name, directories)
        if len(self._own) >= _MAX_NOTED:
            self._own.clear()
        self._own[name, tuple(directories)] = time.monotonic() + _OWN_FOR_S

    def owns_certainly(self, name: TableName, directories: Sequence[str]) -> bool:
        """Whether directories were found to be this table's alone a moment ago."""
        return time.monotonic() < self._own.get((name, tuple(directories)), 0.0)

    def holders(self, directories: Collection[str]) -> list[Securable]:
        """The tables and views whose directories overlap some directories; the catalog for those that are gone."""
        found = self.directories.holders(directories)
        return [_securable(one.kind, one.name) if one.state is DirectoryState.HELD else CATALOG for one in found]

    @property
    def _keeps_apart(self) -> bool:
        """Whether no directory may be of two tables: credentials for one would open the other, as would a grant."""
        return self._vends() or self._access.is_active

    @contextlib.contextmanager
    def _hiding_names(self, claim: Claim) -> Iterator[None]:
        try:
            yield
        except RefusedError as error:
            if not self._access.is_active:
                raise
            raise RefusedError(  # the other table may be hidden from the caller
                f"expected a directory of its own for {claim.kind} `{claim.name}`, found one with files of another "
                "table or view",
                hints=error.hints,
            ) from error

    def _check_trash(self, claim: Claim, directories: Sequence[str]) -> None:
        places = [canonical_directory(d) for d in directories] if self._keeps_dropped() else []
        for dropped in sql_store_of(self._catalog).table_trash.near(places):
            home = canonical_directory(dropped.metadata_location.rpartition("/")[0].removesuffix("/metadata"))
            if shared := next((place for place in places if overlap(place, home)), None):
                raise RefusedError(
                    f"expected a directory of its own for {claim.kind} `{claim.name}`, found `{shared}`, which "
                    f"overlaps the files of table `{dropped.name}`, which was dropped and may come back",
                    hints=["use another directory"],
                )

    def _check_home(self, claim: Claim, directories: Sequence[str], own: Sequence[str]) -> None:
        """Only administrators put files outside of the directory of their namespace, where there are grants."""
        if claim.administers:
            return
        namespace = claim.name.namespace
        home = self._catalog.locations.of_namespace(namespace, self._catalog.namespace_properties(namespace))
        held = [*map(reserved_spelling, own), *self.directories.reserved.former(claim)]
        for place in map(reserved_spelling, directories):
            if any(f"{place}/".startswith(f"{one}/") for one in held):
                continue
            level, inside, rest = place.partition(f"{reserved_spelling(home)}/") if home else (place, "", "")
            child = rest.partition("/")[0]
            if level or not inside or not child or self._catalog.namespace_exists((*namespace, child)):
                raise RefusedError(
                    f"expected a directory below that of namespace `{'.'.join(namespace)}` for {claim.kind} "
                    f"`{claim.name}`, found `{place}`",
                    hints=["leave the location out, or let an administrator of the catalog choose it"],
                )

    def _free_location(self, name: TableName, location: str) -> str:
        """A default location, or one beside it if another has files there, or a namespace its tables."""
        if not self._keeps_apart:
            return location
        with self._database.reading() as connection:
            taken = self.directories.reserved.find_taken(connection, self.of(name), [location])
        if taken is None and not self._catalog.namespace_exists((*name.namespace, name.name)):
            return location
        return f"{location}-{uuid4().hex[:_UNIQUE]}"

    def _directories_of(self, kind: DirectoryKind, name: TableName) -> Sequence[str]:
        if kind is DirectoryKind.VIEW:
            return (self._catalog.load_view(name).metadata.location,)
        return table_directories(self._catalog.load_table(name).metadata)


def table_directories(metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table's files, its location first."""
    return directories_of(metadata.location, metadata.properties)


def _securable(kind: DirectoryKind, name: TableName) -> Securable:
    return view_of(name) if kind is DirectoryKind.VIEW else table_of(name)
