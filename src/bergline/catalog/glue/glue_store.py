"""Pointers in AWS Glue: a parameter of each Glue table, swapped by updates that name the table's version."""

import contextlib
import importlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

from bergline.catalog.glue.entries import GlueEntries, half_way
from bergline.catalog.glue.errors import mark_response
from bergline.catalog.glue.names import check_new_table, database_of
from bergline.catalog.glue.namespaces import GlueNamespaces
from bergline.catalog.glue.requests import GlueCalls, GlueResponse
from bergline.catalog.glue.settings import GlueSettings
from bergline.catalog.glue.tables import (
    GlueTable,
    is_renamed,
    moved_table,
    new_table,
    pointer_of,
    removed_table,
    renamed_from,
    renamed_table,
)
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, PointerSwap
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    StorageError,
    UnsupportedError,
)
from bergline.extras import install_hint
from bergline.format.metadata.table_metadata import TableMetadata


class GluePointerStore:
    """PointerStore in a Glue catalog; tables that are not Iceberg tables are neither listed nor changed.

    `load` returns the metadata of a pointer, for the columns shown in Glue; without it they stay unchanged.
    """

    atomic_tables = False
    views = None

    def __init__(
        self,
        settings: GlueSettings,
        *,
        load: Callable[[str], TableMetadata] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._calls = GlueCalls(
            partial(open_client, settings),
            catalog_id=settings.catalog_id,
            max_retries=settings.max_retries,
            sleep=sleep,
        )
        self._entries = GlueEntries(self._calls, skip_archive=settings.skip_archive, load=load)
        self._namespaces = GlueNamespaces(self._calls, any_name=settings.any_name)
        self._any_name = settings.any_name
        self._load = load

    def read(self, table: TableName) -> str | None:
        found = self._entries.visible(table)
        return None if found is None else pointer_of(found)

    def create(self, table: TableName, pointer: str) -> bool:
        """Create the Glue table, atomically."""
        name = check_new_table(table, any_name=self._any_name)
        return self._with_columns(
            pointer, lambda metadata: self._entries.create(table, new_table(name, pointer, metadata))
        )

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Update the version that was read; retry if only other parameters changed since."""
        return self._with_columns(new, lambda metadata: self._swap(table, expected, new, metadata))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Glue has no transactions."""
        raise UnsupportedError(f"expected a change to one table, found {len(swaps)}: AWS Glue moves one at a time")

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        """Delete the Glue table; with an expected pointer, first remove it so that nobody can commit any more."""
        tries = self._entries.attempts(table)
        while True:
            next(tries)
            found = self._entries.visible(table)
            pointer = None if found is None else pointer_of(found)
            if found is None or pointer is None or expected not in {None, pointer}:
                return False
            match self._entries.delete(table) if expected is None else self._entries.remove(table, found):
                case GlueResponse.DONE:
                    return True
                case GlueResponse.MISSING:
                    return False

    def rename(self, table: TableName, new: TableName) -> bool:
        """Create the new name, then remove the old one if nobody committed to it since; otherwise start over.

        The new name counts only once the old one is gone, so there is no moment at which both accept commits. A rename
        that was interrupted is completed.
        """
        name = check_new_table(new, any_name=self._any_name)
        tries = self._entries.attempts(table)
        while True:
            next(tries)
            found = self._entries.visible(table)
            pointer = None if found is None else pointer_of(found)
            if found is None or pointer is None or table == new:
                return False
            if not self._entries.create(new, renamed_table(found, name)) and not self._resume(table, new, found):
                return False
            try:
                if self._entries.remove(table, found) is GlueResponse.DONE:
                    return True
            except NOTHING_CHANGED:
                self._take_back(table, new, pointer)
                raise
            except StorageError as error:
                raise StorageError(f"{_both(table, new)}: {error}") from error
            self._take_back(table, new, pointer)

    def list_names(self, namespace: Namespace) -> list[TableName]:
        if (database := database_of(namespace)) is None:
            return []
        tables = self._calls.pages("get_tables", "TableList", DatabaseName=database)
        return sorted(
            TableName(namespace, t["Name"]) for t in tables if pointer_of(t) is not None and not self._entries.waits(t)
        )

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        return self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> bool:
        return self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self._namespaces.exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        return self._namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        return self._namespaces.update(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self._namespaces.list_below(below)

    def close(self) -> None:
        self._calls.close()

    def _resume(self, table: TableName, new: TableName, found: GlueTable) -> bool:
        """Take over what an interrupted rename of the table left under the new name."""
        there = self._entries.get(new)
        if there is None:
            return False
        if is_renamed(there, found):
            return True
        if renamed_from(there) != (*table.namespace, table.name) or not self._entries.waits(there):
            return False
        return self._entries.update(new, there, renamed_table(found, there["Name"])) is GlueResponse.DONE

    def _swap(self, table: TableName, expected: str, new: str, metadata: TableMetadata | None) -> bool:
        tries, is_repeated = self._entries.attempts(table), False
        while True:
            next(tries)
            found = self._entries.visible(table)
            if is_repeated and found is not None and pointer_of(found) == new:
                return True  # our own update was delivered twice, and the second response was a refusal
            if found is None or pointer_of(found) != expected:
                return False
            match self._entries.update(table, found, moved_table(found, new, metadata)):
                case GlueResponse.DONE:
                    return True
                case GlueResponse.MISSING:
                    return False
            is_repeated = True

    def _take_back(self, table: TableName, new: TableName, pointer: str) -> None:
        """Undo the first half of a rename; at worst, an entry is left that `is_removed` recognizes."""
        with half_way(_both(table, new)):
            found = self._entries.get(new)
            if found is None:
                return
            if (
                pointer_of(found) != pointer
                or self._entries.update(new, found, removed_table(found)) != GlueResponse.DONE
            ):
                raise StorageError("others changed the new one")
            with contextlib.suppress(BerglineError):
                self._entries.delete(new)

    def _with_columns(self, pointer: str, change: Callable[[TableMetadata | None], bool]) -> bool:
        """The change with the columns of a pointer's metadata, or without them if they cannot be read or shown."""
        metadata = None
        with contextlib.suppress(BerglineError):
            metadata = self._load(pointer) if self._load else None
        if metadata is not None:
            with contextlib.suppress(InvalidInputError):
                return change(metadata)
        return change(None)


def _both(table: TableName, new: TableName) -> str:
    return f"renaming `{table}` to `{new}` stopped half way; rename it again"


_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 30


def open_client(settings: GlueSettings) -> Any:
    """A client without retries of its own: a retried request could report our own change as a conflict."""
    try:
        boto3, botocore, config = map(importlib.import_module, ("boto3", "botocore.session", "botocore.config"))
    except ImportError:
        raise UnsupportedError(
            "expected the package boto3 for AWS Glue, found none", hints=[install_hint("glue")]
        ) from None
    key, secret, token = settings.credentials or (None, None, None)
    try:
        core = botocore.get_session()
        core.register_component("data_loader", _loader())
        session = boto3.Session(
            botocore_session=core,
            profile_name=settings.profile,
            region_name=settings.region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
        )
        client = session.client(
            "glue",
            endpoint_url=settings.endpoint,
            config=config.Config(
                retries={"mode": "standard", "total_max_attempts": 1},
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_ANSWER_SECONDS,
                user_agent_extra="bergline",
            ),
        )
        client.meta.events.register("response-received.glue", mark_response)
    except Exception as error:  # noqa: BLE001  (boto3 raises its own and ValueError; none may escape)
        hints = ["write glue://us-east-1, or set glue.region"] if type(error).__name__ == "NoRegionError" else []
        raise InvalidInputError(f"cannot open AWS Glue: {error}", hints=hints) from None
    return client


@cache
def _loader() -> Any:
    """Glue's service description, loaded once because that is slow."""
    return importlib.import_module("botocore.loaders").create_loader()
