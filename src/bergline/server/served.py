"""What handlers work with: the catalog, the answers it gave, and the server's settings."""

from collections.abc import Callable

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer_catalog import PointerCatalog
from bergline.catalog.records import records_of
from bergline.errors import InvalidInputError
from bergline.io.fenced import FencedFileIO
from bergline.io.locations import is_absolute
from bergline.server.answer import Answer
from bergline.server.cached_loads import CachedLoads
from bergline.server.call import Call
from bergline.server.locks import TableLocks
from bergline.server.metrics import Metrics
from bergline.server.settings import Settings
from bergline.server.tokens import Doorkeeper

Handler = Callable[["Served", Call], Answer]


class Served:
    """One catalog as it is served."""

    def __init__(self, catalog: PointerCatalog, settings: Settings) -> None:
        self.catalog = catalog
        self.settings = settings
        self.loads = CachedLoads(settings.table_config)
        self.locks = TableLocks()
        self.metrics = Metrics()
        self.records = records_of(catalog)
        self.door = Doorkeeper(self.records)

    def new_location(self, name: TableName, wish: str | None) -> str:
        """Where a new table or view goes: where the client wants it, if that is allowed, or where the catalog does.

        The client may know that what lies there is of a table that was dropped: it is not looked at.
        """
        if wish is None:
            return self.catalog.default_location(name)
        if not is_absolute(wish):
            raise InvalidInputError(f"expected an absolute location, found `{wish[:200]}`")
        self.check_place(wish)
        return wish

    def check_place(self, location: str | None) -> None:
        """RefusedError for a location where the server touches nothing."""
        if location is None:
            return
        if not location:
            raise InvalidInputError("expected a location, found an empty text")
        if isinstance(self.catalog.io, FencedFileIO):
            self.catalog.io.check(location)
