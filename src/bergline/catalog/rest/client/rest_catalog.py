"""The catalog over Iceberg's REST protocol."""

import time
from collections.abc import Callable, Mapping

from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.kept_rules import levels_of
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.rest.client.commits import RestCommit, RestTurns
from bergline.catalog.rest.client.rules import listed_rules
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settings import rest_settings
from bergline.catalog.rest.client.views import RestViews
from bergline.catalog.rest.protocol.endpoints import LIST_NAMESPACE_REF_RULES, TAKE_TURN
from bergline.errors import AuthenticationError, NotFoundError, RefusedError, StorageError
from bergline.io.locations import join


class RestCatalog(RestCommit, RestViews):
    """Catalog on any server that speaks the protocol; the server writes the metadata files."""

    metadata_files_stay = False

    def __init__(
        self,
        uri: str,
        properties: Mapping[str, str],
        warehouse: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(RestSession(rest_settings(uri, warehouse, properties), sleep=sleep, clock_s=clock_s))

    @property
    def session(self) -> RestSession:
        """The session with the server, for what is not of tables."""
        return self._session

    def check_location(self, name: TableName, location: str) -> None:
        """Look for metadata, if allowed; the server has its own rules for locations."""
        try:
            found = any(".metadata.json" in file for file in self.io.list(join(location, "metadata")))
        except (NotFoundError, AuthenticationError, RefusedError, StorageError):
            return
        if found:
            raise RefusedError(
                f"cannot create `{name}` at {location}: metadata of another table is there",
                hints=["to have that table, register it by its newest metadata file, or give another location"],
            )

    def rule_levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the server's catalog and namespaces that hold for a table, as far as the caller may see them."""
        if not self._session.calls.has(LIST_NAMESPACE_REF_RULES):
            return ()
        try:
            return levels_of(listed_rules(self._session, table.namespace))
        except (RefusedError, NotFoundError):
            return ()

    def footprints(self) -> Footprints | None:
        """None: the server knows where files are."""
        return None

    @property
    def turns(self) -> RestTurns | None:
        """Turns on tables; None if the server grants none."""
        return RestTurns(self._session) if self._session.calls.has(TAKE_TURN) else None

    def is_own_file(self, location: str) -> bool:
        """Always false: the server's own files are elsewhere."""
        return False

    def close(self) -> None:
        self._session.close()
