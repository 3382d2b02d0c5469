"""Names that a caller may not know are left out of errors."""

import contextlib
import logging
from collections.abc import Iterator

from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.records import sql_store_of
from bergline.errors import BerglineError, NotFoundError
from bergline.governance.grants.securable import SecurableKind
from bergline.server.access.access import Access
from bergline.server.http.request import Request

_LOG = logging.getLogger("bergline.server")
_NEIGHBOURS = 25


class Concealment:
    """What errors tell whom, while there are grants."""

    def __init__(self, catalog: PointerCatalog, access: Access) -> None:
        self._catalog = catalog
        self._access = access

    @contextlib.contextmanager
    def concealing(self, request: Request) -> Iterator[None]:
        """In the block, names that the caller may not know are left out of errors."""
        try:
            yield
        except BerglineError as error:
            told = self.concealed(request, error)
            if told is error:
                raise
            raise told from error

    def concealed(self, request: Request, error: Exception) -> Exception:
        """An error without names that the caller may not know."""
        if not isinstance(error, BerglineError):
            return error
        told = self._access.conceal_neighbour(request.principal, request.groups, error)
        if told is not error:
            _LOG.info("%s was told less than: %s", request.principal, error)
        if not isinstance(told, NotFoundError):
            return told
        return self._access.conceal(request.in_path(told), lambda: self._names_seen(request))

    def _names_seen(self, request: Request) -> list[str]:
        """The tables or views that the caller sees in the namespace of a request for one: all, or the next ones.

        Of names that are not all seen the next ones are not looked for: how many that are would tell of the others.
        """
        is_view = request.kind == "view"
        store = sql_store_of(self._catalog)
        pointers = store.views if is_view else store
        if request.endpoint.method == "HEAD" or request.kind not in request.names or pointers is None:
            return []
        name, kind = request.table, SecurableKind.VIEW if is_view else SecurableKind.TABLE
        seen = self._access.newest(request.principal, request.groups).names_seen(kind, name.namespace)
        if seen is None:
            return list(map(str, pointers.names_around(name, _NEIGHBOURS)))
        return list(map(str, pointers.names_among(name.namespace, seen, None, None)))
