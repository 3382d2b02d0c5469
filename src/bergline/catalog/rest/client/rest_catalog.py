"""The catalog over Iceberg's REST protocol."""

import time
from collections.abc import Callable, Mapping

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.commits import RestCommit
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settings import rest_settings
from bergline.catalog.rest.client.views import RestViews
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
        """The session with the server, for its endpoints that are no part of a catalog."""
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

    def is_own_file(self, location: str) -> bool:
        """Always false: the server's own files are elsewhere."""
        return False

    def close(self) -> None:
        self._session.close()
