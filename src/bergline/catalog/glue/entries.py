"""Tables as entries in AWS Glue: lookup, creation, versioned updates and removal."""

import contextlib
import time
from collections.abc import Callable, Iterator

from bergline.catalog.attempts import attempts
from bergline.catalog.glue.names import database_of, is_name
from bergline.catalog.glue.requests import GlueCalls, GlueResponse
from bergline.catalog.glue.tables import (
    GlueTable,
    is_left,
    is_removed,
    pointer_of,
    removed_by,
    removed_table,
    renamed_from,
    restored_table,
)
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.table_metadata import TableMetadata

_DELETE_WITHIN_S = 60.0


class GlueEntries:
    """Tables of a Glue catalog; `load` returns the metadata of a pointer."""

    def __init__(self, calls: GlueCalls, *, skip_archive: bool, load: Callable[[str], TableMetadata] | None) -> None:
        self._calls = calls
        self._skip_archive = skip_archive
        self._load = load

    def get(self, table: TableName) -> GlueTable | None:
        """The Glue table of this name, whatever it is."""
        database = database_of(table.namespace)
        if database is None or not is_name(table.name):
            return None
        return self._calls.read("get_table", "Table", DatabaseName=database, Name=table.name)

    def visible(self, table: TableName) -> GlueTable | None:
        """The Glue table of this name, unless it is the new name of a rename that is not complete."""
        found = self.get(table)
        return None if found is None or self.waits(found) else found

    def waits(self, found: GlueTable) -> bool:
        """Whether this is the new name of a table that still exists under its old one."""
        source = renamed_from(found)
        old = None if source is None else self.get(TableName(source[:1], source[1]))
        pointers = (pointer_of(found), None if old is None else pointer_of(old))
        return None not in pointers and (pointers[0] == pointers[1] or self._same_table(*pointers))

    def create(self, table: TableName, content: GlueTable) -> bool:
        """True if and only if the name was free and now has this table."""
        response = self._calls.change("create_table", DatabaseName=table.namespace[0], TableInput=content)
        match self._calls.settled(response, f"table `{table}`"):
            case GlueResponse.DONE:
                return True
            case GlueResponse.MISSING:
                name = table.namespace[0]
                raise NotFoundError(f"no namespace `{name}`", kind="namespace", name=name)
        found = self.get(table)
        if found is None or pointer_of(found) is not None:
            return False
        if is_left(found):
            return self.update(table, found, content) is GlueResponse.DONE
        raise _taken(table, found)

    def update(self, table: TableName, found: GlueTable, content: GlueTable) -> GlueResponse:
        """Replace the version that was read."""
        if not found.get("VersionId"):
            raise UnsupportedError(f"expected versions of tables from {self._calls.place}, found none for `{table}`")
        return self._calls.change(
            "update_table",
            DatabaseName=table.namespace[0],
            TableInput=content,
            SkipArchive=self._skip_archive,
            VersionId=found["VersionId"],
        )

    def delete(self, table: TableName) -> GlueResponse:
        """Delete whatever version there is."""
        return self._calls.change("delete_table", DatabaseName=table.namespace[0], Name=table.name)

    def remove(self, table: TableName, found: GlueTable) -> GlueResponse:
        """Delete the version that was read: Glue's delete is unconditional, so an update removes the pointer first."""
        removed = removed_table(found)
        started = time.monotonic()
        try:
            response = self.update(table, found, removed)
        except StorageError:
            if not self._is_removed_by(table, removed):
                raise
            response = GlueResponse.DONE
        if response is GlueResponse.MOVED and self._is_removed_by(table, removed):
            response = GlueResponse.DONE  # our own update was delivered twice, and the second response was a refusal
        if response is GlueResponse.DONE:
            try:
                for number in range(self._calls.max_retries):
                    # after a long pause the name may belong to a new table
                    if time.monotonic() - started > _DELETE_WITHIN_S or self.delete(table) is not GlueResponse.MOVED:
                        break
                    self._calls.wait(number)
            except NOTHING_CHANGED as error:
                self._restore(table, found, error)
                raise
            except StorageError:  # gone, or recognized by `is_removed`
                return response
        return response

    def attempts(self, table: TableName) -> Iterator[None]:
        """Attempts at a change, with waits in between, for as long as others come first."""
        moved = f"nothing was changed: {self._calls.place} changed `{table}` for others first"
        return attempts(moved, self._calls.max_retries + 1, UnavailableError, self._calls.wait)

    def _same_table(self, *pointers: str | None) -> bool:
        """Whether both are the same table; False only if certain: the old name may have been reused since."""
        try:
            uuids = {self._load(p).table_uuid for p in pointers if p and self._load}
        except BerglineError:
            return True
        return len(uuids) < 2  # noqa: PLR2004

    def _is_removed_by(self, table: TableName, removed: GlueTable) -> bool:
        left = self.get(table)
        return left is not None and removed_by(left, removed)

    def _restore(self, table: TableName, found: GlueTable, cause: BerglineError) -> None:
        """Restore the pointer of a table."""
        with half_way(f"`{table}` could neither be deleted ({cause}) nor restored"):
            left = self.get(table)
            if (
                left is None
                or not is_removed(left)
                or self.update(table, left, restored_table(found)) != GlueResponse.DONE
            ):
                raise StorageError("others changed it")


@contextlib.contextmanager
def half_way(what: str) -> Iterator[None]:
    """Errors inside leave a change half done, so none may claim that nothing was changed."""
    try:
        yield
    except BerglineError as error:
        raise StorageError(f"{what}: {error}") from error


def _taken(table: TableName, found: GlueTable) -> AlreadyExistsError:
    if is_removed(found):
        what = "left of a table that was dropped or renamed"
        hints = ["try again in a quarter of an hour, or delete it in AWS Glue"]
    else:
        what, hints = "not an Iceberg table", []
    return AlreadyExistsError(f"AWS Glue has `{table}` already, {what}", kind="table", name=str(table), hints=hints)
