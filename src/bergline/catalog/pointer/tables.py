"""Tables of a pointer catalog by name; commits to them are in `commits`."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import DroppedTable, LoadedTable
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import table_files
from bergline.catalog.pointer.named_pointers import check_namespace, create_with_file, newest_dropped
from bergline.catalog.pointer.namespaces import PointerNamespaces
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, DroppedPointers, KeptFootprints, PointerSwap
from bergline.catalog.pointer.settle import Verdict, send_swaps, settle_swaps
from bergline.catalog.protection.caller import see_change
from bergline.errors import (
    CommitUnknownError,
    ConflictError,
    FormatError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.protection import rule_scope
else:  # not needed to read
    rule_scope = LazyModule("bergline.catalog.protection.rule_scope")


class PointerTables(PointerNamespaces):
    """Tables over any PointerStore."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table_files = table_files(self.io, self.max_metadata_bytes, self._kept_digests)

    def load_table(self, name: TableName) -> LoadedTable:
        pointer = self.pointer(name)
        return LoadedTable(name, self._table_files.load_for(f"table `{name}`", pointer), pointer)

    def pointer(self, name: TableName) -> str:
        return self._named("table").find(name)

    def metadata_at(self, location: str) -> TableMetadata:
        """Load a table from a metadata file."""
        return self._table_files.load(location)

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """Write the first metadata file, then create the pointer."""
        check_namespace(self.store, name.namespace)
        names = self._named("table", metadata.properties)
        names.check_free(name)
        self.guard.check_new(name, metadata)
        see_change(name, None, metadata)
        location = self._table_files.write(metadata, None)
        found = create_with_file(names, name, location, self._is_same(metadata), self._table_files)
        return LoadedTable(name, metadata if found == location else self._table_files.load(found), found)

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Read the metadata file, then create the pointer to it."""
        check_namespace(self.store, name.namespace)
        metadata = self._table_files.load(metadata_location)
        names = self._named("table", metadata.properties)
        names.check_free(name)  # so that the pointer leads to what was registered
        see_change(name, None, metadata)
        created = names.create(
            name, metadata_location, is_ours=metadata_location.__eq__, is_written=self._table_files.is_written
        )
        names.check_created(name, created)
        return LoadedTable(name, metadata, metadata_location)

    def register_over(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Register a metadata file under a name, replacing the table that had it, if any."""
        metadata = self._table_files.load(metadata_location)
        tries = attempts(f"table `{name}` moved on whenever it was to be registered anew")
        while True:
            next(tries)
            before = self._named("table").pointers.read(name)
            if before is None:
                return self.register_table(name, metadata_location)
            if before == metadata_location or self._replace(PointerSwap(name, before, metadata_location), metadata):
                return LoadedTable(name, metadata, metadata_location)

    def unregister_table(self, name: TableName) -> str:
        return self._drop_table(name, None, "the table unregistered", proven=True)

    def rename_table(self, name: TableName, new: TableName) -> None:
        check_namespace(self.store, new.namespace)
        done = f"the table renamed to `{new}`"
        with self.guard.changing():
            self._named("table").rename(name, new, check=lambda pointer: self._check_allowed(name, pointer, None, done))

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        self._drop_table(name, expected, "the table dropped", proven=expected is not None)

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        return self.guard.refusals(table.name, table.metadata, after)

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        return self.store.dropped_tables(most) if isinstance(self.store, DroppedPointers) else []

    def footprints(self) -> Footprints | None:
        """Where the files of tables and views are, as far as the store keeps it; None if it does not."""
        return self.store.footprints() if isinstance(self.store, KeptFootprints) else None

    @property
    def keeps_dropped_tables(self) -> bool:
        """Never: what is dropped here without a server is gone."""
        return False

    def purge_later(self, name: TableName) -> bool:
        return False

    def rule_levels(self, table: TableName) -> "tuple[rule_scope.RuleLevel, ...]":
        """The rules of the catalog and of namespaces that hold for a table; its own are in its properties."""
        return self.guard.levels(table)

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        """Read the metadata file, then take the pointer out of the trash."""
        dropped = newest_dropped("table", self.dropped_tables(), name)
        new = to or name
        check_namespace(self.store, new.namespace)
        metadata = self._table_files.load(dropped.metadata_location)
        names = self._named("table", metadata.properties)
        names.check_free(new)
        see_change(new, None, metadata)
        assert isinstance(self.store, DroppedPointers)  # noqa: S101  (or it had none)
        try:
            restored = self.store.restore(dropped, new)
        except (*NOTHING_CHANGED, ConflictError):
            raise
        except Exception as error:
            raise CommitUnknownError(
                f"cannot find out whether table `{name}` came back as `{new}`: {error}",
                table=str(new),
                metadata_location=dropped.metadata_location,
            ) from error
        names.check_created(new, dropped.metadata_location if restored else None)
        return LoadedTable(new, metadata, dropped.metadata_location)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        check_namespace(self.store, namespace)
        return self.store.list_names(namespace)

    def _drop_table(self, name: TableName, expected: str | None, done: str, *, proven: bool) -> str:
        with self.guard.changing():
            return self._named("table").drop(
                name, expected, proven=proven, check=lambda pointer: self._check_allowed(name, pointer, None, done)
            )

    def _check_allowed(self, name: TableName, pointer: str, result: TableMetadata | None, done: str) -> None:
        """Ask the guard; a table whose metadata is gone, broken or out of reach has no rules left to keep."""
        try:
            base = self._table_files.load(pointer)
        except (NotFoundError, FormatError, UnsupportedError, RefusedError):
            return
        self.guard.check_change(name, base, result, done)
        see_change(name, base, result)

    def _replace(self, swap: PointerSwap, metadata: TableMetadata) -> bool:
        """Register a table in place of another, if the rules of that one allow it."""
        with self.guard.changing():
            assert swap.expected is not None  # noqa: S101  (or nothing would be replaced)
            self._check_allowed(swap.table, swap.expected, metadata, f"the table registered anew at {swap.new}")
            return self._swapped(swap, metadata)

    def _swapped(self, swap: PointerSwap, metadata: TableMetadata) -> bool:
        try:
            return send_swaps(self._store, (swap,))
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            waits = self._status_check_waits(metadata.properties)
            match settle_swaps(self._store, (swap,), history=lambda *_: Verdict.UNKNOWN, waits=waits):
                case Verdict.LANDED | Verdict.PRESENT:
                    return True
                case Verdict.LOST:
                    return False
                case Verdict.UNKNOWN:
                    raise CommitUnknownError(
                        f"cannot find out whether table `{swap.table}` was registered anew",
                        table=str(swap.table),
                        metadata_location=swap.new,
                    ) from error

    def _is_same(self, metadata: TableMetadata) -> Callable[[str], bool]:
        return lambda pointer: self._table_files.load(pointer).table_uuid == metadata.table_uuid
