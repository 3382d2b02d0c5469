"""Views in the trash: as tables are, but nothing is purged when their time is over, because their files stay anyway."""

import sqlalchemy as sa

from bergline.catalog.catalog import DroppedView
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.digests import SqlDigests
from bergline.catalog.sql.governance_layout import DROPPED_VIEWS
from bergline.catalog.sql.pointers import SqlPointers
from bergline.catalog.sql.trash.dropped_tables import TrashMark, add_to_trash, names_in_trash, newest_first
from bergline.errors import ConflictError

_COLUMNS = [DROPPED_VIEWS.c[name] for name in ("metadata_location", "dropped_ms", "keep_until_ms", "principal", "id")]


class SqlDroppedViews:
    """The dropped views of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str, digests: SqlDigests) -> None:
        self._database = database
        self._digests = digests
        self._catalog = catalog_name
        self._mine = DROPPED_VIEWS.c.catalog_name == catalog_name

    def add(self, connection: sa.Connection, dropped: DroppedView) -> None:
        """Keep a view, in the transaction that drops it."""
        add_to_trash(connection, DROPPED_VIEWS, self._catalog, dropped)

    def views(self, most: int | None = None, after: TrashMark | None = None) -> list[DroppedView]:
        """The dropped views, newest first, all or the next ones; none where the database has no such trash yet."""
        query = sa.select(DROPPED_VIEWS.c.namespace, DROPPED_VIEWS.c.name, *_COLUMNS).where(self._mine)
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(DROPPED_VIEWS.name):
                return []
            rows = connection.execute(newest_first(query, DROPPED_VIEWS, most, after))
            return [DroppedView(TableName(tuple(row[0].split(".")), row[1]), *row[2:]) for row in rows]

    def names_in(self, connection: sa.Connection, namespace: Namespace, name: str | None = None) -> list[TableName]:
        """The names of dropped views: that one, or all in a namespace and below it."""
        return names_in_trash(connection, DROPPED_VIEWS, self._mine, namespace, name)

    def restore(self, pointers: SqlPointers, dropped: DroppedView, name: TableName) -> bool:
        """Make the pointer again, under the same name or another; False if the name is taken.

        ConflictError if the view is no longer in the trash.
        """

        def take(connection: sa.Connection) -> None:
            mine = sa.and_(self._mine, DROPPED_VIEWS.c.id == dropped.bin_id)
            if connection.execute(sa.delete(DROPPED_VIEWS).where(mine)).rowcount != 1:
                raise ConflictError(
                    f"view `{dropped.name}` is no longer in the trash", hints=["list the dropped views again"]
                )

        return pointers.swap_all((PointerSwap(name, None, dropped.metadata_location),), take)

    def forget_due(self, now_ms: int) -> int:
        """Remove the views whose time is over; returns how many."""
        due = sa.and_(self._mine, DROPPED_VIEWS.c.keep_until_ms <= now_ms)
        with self._database.changing() as connection:
            self._digests.forget_all(connection, sa.select(DROPPED_VIEWS.c.metadata_location).where(due))
            return connection.execute(sa.delete(DROPPED_VIEWS).where(due)).rowcount
