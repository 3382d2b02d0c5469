"""Tables of a pointer catalog by name, as the rules about their refs allow; commits to them are in `commits`."""

from contextlib import AbstractContextManager

from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import Committed, DroppedTable, LoadedTable, Unknown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer.named_pointers import NamedPointers, NameKind, check_namespace, newest_dropped
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, BranchTablePointers, PointerSwap
from bergline.catalog.pointer.relations import PointerRelations
from bergline.catalog.pointer.settle import SentSwaps, send_swaps, settle_swaps
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.catalog.protection.caller import see_change
from bergline.errors import CommitUnknownError, FormatError, NotFoundError, RefusedError, UnsupportedError
from bergline.format.metadata.refs import CREATED_ON
from bergline.format.metadata.table_metadata import TableMetadata


class PointerTables(PointerRelations[TableMetadata, LoadedTable]):
    """Tables over any PointerStore."""

    def __init__(self, access: StoreAccess, files: MetadataFiles[TableMetadata]) -> None:
        super().__init__(access, "table", files, LoadedTable)

    def register_over(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Register a metadata file under a name, replacing the table that had it, if any."""
        metadata = self.files.load(metadata_location)
        for _ in attempts(f"table `{name}` moved on whenever it was to be registered anew"):
            before = self._names().pointers.read(name)
            if before is None:
                return self.register(name, metadata_location)
            if before == metadata_location or self._replace(PointerSwap(name, before, metadata_location), metadata):
                break
        return LoadedTable(name, metadata, metadata_location)

    def dropped(self, most: int | None = None) -> list[DroppedTable]:
        """The tables in the trash; none where there is none."""
        return self._trash.dropped_tables(most) if self._trash else []

    def undrop(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        """Take the table that was dropped last under a name out of the trash."""
        dropped, new = newest_dropped("table", self.dropped(), name), to or name
        return self._restored(name, new, dropped.metadata_location, lambda trash: trash.restore(dropped, new))

    def of_branches(self, namespace: Namespace) -> list[TableName]:
        """The tables in a namespace that were created on branches of the lake, and are not published yet."""
        store = self._access.store
        check_namespace(store, namespace)
        pointers = store.branch_tables if isinstance(store, BranchTablePointers) else None
        return [] if pointers is None else pointers.list_names(namespace)

    def _names(self, metadata: TableMetadata | None = None) -> NamedPointers:
        kind: NameKind = "branch table" if metadata is not None and CREATED_ON in metadata.properties else "table"
        return self._access.names(kind, metadata.properties if metadata else None)

    def _changing(self) -> AbstractContextManager[None]:
        return self._access.guard.changing()

    def _listed(self, name: TableName, metadata: TableMetadata) -> AbstractContextManager[None]:
        is_of_branch = CREATED_ON in metadata.properties
        return self._access.listing(() if is_of_branch else (name,), (name,) if is_of_branch else ())

    def _check_new(self, name: TableName, metadata: TableMetadata) -> None:
        self._access.guard.check_new(name, metadata)

    def _check_gone(self, name: TableName, pointer: str, done: str) -> None:
        self._check_allowed(name, pointer, None, done)

    def _see_new(self, name: TableName, metadata: TableMetadata) -> None:
        see_change(name, None, metadata)

    def _check_allowed(self, name: TableName, pointer: str, result: TableMetadata | None, done: str) -> None:
        """Ask the guard; if the metadata cannot be read, the table has no rules that could be kept."""
        try:
            base = self.files.load(pointer)
        except (NotFoundError, FormatError, UnsupportedError, RefusedError):
            return
        self._access.guard.check_change(name, base, result, done)
        see_change(name, base, result)

    def _replace(self, swap: PointerSwap, metadata: TableMetadata) -> bool:
        """Register a table in place of another, if the rules of the other allow that."""
        with self._changing():
            assert swap.expected is not None  # noqa: S101  (or nothing would be replaced)
            self._check_allowed(swap.table, swap.expected, metadata, f"the table registered anew at {swap.new}")
            return self._swapped(swap, metadata)

    def _swapped(self, swap: PointerSwap, metadata: TableMetadata) -> bool:
        pointers = self._access.store_to_settle
        try:
            with self._listed(swap.table, metadata):
                return send_swaps(pointers, (swap,))
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            waits = self._access.waits(metadata.properties)
            outcome = settle_swaps(pointers, SentSwaps((swap,), Committed(())), waits, str(error))
            if isinstance(outcome, Unknown):
                raise CommitUnknownError(
                    f"cannot find out whether table `{swap.table}` was registered anew",
                    table=str(swap.table),
                    metadata_location=swap.new,
                ) from error
            return isinstance(outcome, Committed)
