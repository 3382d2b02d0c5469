"""A client whose first commit comes late."""

from collections.abc import Callable
from typing import Any

from bergline.catalog.catalog import Catalog, Outcome, TableChange
from bergline.catalog.rest.client.rest_catalog import RestCatalog


class Late:
    """A catalog whose first commit comes after what a rival does; with `silent` its client says nothing about moves."""

    def __init__(self, catalog: Catalog, rival: Callable[[], object], *, silent: bool = False) -> None:
        self._catalog = catalog
        self._rivals = [rival]
        if silent:
            assert isinstance(catalog, RestCatalog)
            catalog.session.rebases_appends = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        if self._rivals:
            self._rivals.pop()()
        return self._catalog.commit(changes)
