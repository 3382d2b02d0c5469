"""The pointer store in a SQL database, in the layout shared with Java's JDBC catalog and PyIceberg's SQL catalog."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from bergline.arguments import check_no_nul
from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import MAX_NAME_LENGTH, Namespace, TableName, check_lengths
from bergline.catalog.pointer.pointer_store import CATALOG_NAME, missing_catalog
from bergline.catalog.protection.guard import RefGuard
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.digests import SqlDigests
from bergline.catalog.sql.layout import (
    BEHIND_THE_DOT,
    EXISTS_KEY,
    MAX_VALUE_LENGTH,
    NAMESPACES,
    TABLES,
    RowKind,
    join_namespace,
    next_children,
    next_namespaces,
    starts_with,
)
from bergline.catalog.sql.layout_version import CONTENTION_VERSION, RECORDS_VERSION
from bergline.catalog.sql.migrations import find_layout
from bergline.catalog.sql.pointers import SqlPointers, name_values
from bergline.catalog.turns import Turn
from bergline.errors import InvalidInputError, RefusedError
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.sql import footprints as sql_footprints
    from bergline.catalog.sql import records_layout
    from bergline.catalog.sql import turns as sql_turns
    from bergline.catalog.sql.rules import ref_guard
    from bergline.catalog.sql.trash import dropped_tables, dropped_views
else:  # connecting needs none of them
    dropped_tables = LazyModule("bergline.catalog.sql.trash.dropped_tables")
    sql_footprints = LazyModule("bergline.catalog.sql.footprints")
    records_layout = LazyModule("bergline.catalog.sql.records_layout")
    dropped_views = LazyModule("bergline.catalog.sql.trash.dropped_views")
    ref_guard = LazyModule("bergline.catalog.sql.rules.ref_guard")
    sql_turns = LazyModule("bergline.catalog.sql.turns")

_EXISTS = {EXISTS_KEY: "true"}
_MOST_SHOWN = 10
_MAX_PROPERTIES = 5000  # per call: limited by the size of a statement
_NEXT, _PREVIOUS = next_namespaces(), next_namespaces(descending=True)
_READ_AT_ONCE = 1000
_LEAST_CHARACTER = "\x01"  # names have no NUL

NamespaceMark = tuple[bool, str]
"""The end of a page: whether the last namespace has rows of its own, and its name."""

_OWN_ROW = (
    sa.select(sa.literal(1))
    .where(NAMESPACES.c.catalog_name == sa.bindparam("catalog"), NAMESPACES.c.namespace == sa.bindparam("namespace"))
    .limit(1)
)
"""Made once: composing a query takes longer than running it."""


class NamespacePage(NamedTuple):
    """Some namespaces directly below one, and where to continue; None at the end."""

    namespaces: list[Namespace]
    mark: NamespaceMark | None


class SqlPointerStore(SqlPointers):
    """PointerStore on the shared layout; `catalog_name` distinguishes catalogs in one database.

    NotFoundError if `create` is not set and there is no layout, or only catalogs of other names, unless `any_name` is.
    """

    def __init__(
        self, database: SqlDatabase, catalog_name: str, *, create: bool = True, any_name: bool = False
    ) -> None:
        check_lengths(catalog_name)
        check_no_nul(catalog_name, "the catalog's name")
        try:
            found = database.open_layout(create=create)
            if not create and not any_name:
                _check_name(database, catalog_name, found.version)
        except BaseException:
            database.close()
            raise
        digests = SqlDigests(database, catalog_name, typed=found.typed)
        super().__init__(database, catalog_name, RowKind.TABLE if found.typed else RowKind.UNTYPED, digests)
        self.views = SqlPointers(database, catalog_name, RowKind.VIEW, digests) if found.typed else None
        self.branch_tables = SqlPointers(database, catalog_name, RowKind.ON_BRANCH, digests) if found.typed else None

    @cached_property
    def table_trash(self) -> "dropped_tables.SqlDroppedTables":
        """The tables that a server dropped."""
        return dropped_tables.SqlDroppedTables(self.database, self.catalog_name, self.digests)

    @cached_property
    def view_trash(self) -> "dropped_views.SqlDroppedViews":
        """The views in the trash."""
        return dropped_views.SqlDroppedViews(self.database, self.catalog_name, self.digests)

    def listing(
        self, tables: Collection[TableName], of_branches: Collection[TableName] = ()
    ) -> contextlib.AbstractContextManager[None]:
        """Have tables in lists, and those of branches not, with the change that this thread makes in the block."""

        def run(connection: sa.Connection, _: object) -> None:
            self.list_in(connection, tables, RowKind.TABLE)
            self.list_in(connection, of_branches, RowKind.ON_BRANCH)

        return self.before_commit(run)

    def footprints(self) -> Footprints | None:
        """Where files are, as the database keeps it; None in a database of an older layout."""
        with self.database.reading() as connection:
            found = find_layout(connection)
        if found.version < CONTENTION_VERSION:
            return None
        return sql_footprints.SqlFootprints(self.database, self.catalog_name, typed=found.typed)

    @cached_property
    def _turns(self) -> "sql_turns.SqlTurns":
        return sql_turns.SqlTurns(self.database, self.catalog_name, self._kind)

    def read_with_turn(self, table: TableName) -> tuple[str | None, Turn | None]:
        """Both by one query; where the table of turns is missing, or not readable, nobody has a turn."""
        if self.database.has_turns:
            try:
                row = self.database.first_row(self._turns.pointer_and_turn, name_values(table))
                return self._pointer(table, row), self._turns.of_row(row)
            except RefusedError:
                self.database.has_turns = False
        return self.read(table), None

    def take_turn(self, tables: Collection[TableName], holder: str, lease_ms: int) -> bool:
        return self._turns.take(tables, holder, lease_ms)

    def give_back_turn(self, tables: Collection[TableName], holder: str) -> None:
        self._turns.give_back(tables, holder)

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        return self.table_trash.tables(most)

    def make_guard(self) -> RefGuard:
        return ref_guard.SqlRefGuard(self.database, self.catalog_name)

    def restore(self, dropped: DroppedTable, name: TableName) -> bool:
        return self.table_trash.restore(self, dropped, name)

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        return self.view_trash.views(most)

    def restore_view(self, dropped: DroppedView, name: TableName) -> bool:
        assert self.views is not None  # noqa: S101  (or it was never dropped)
        return self.view_trash.restore(self.views, dropped, name)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """Insert the properties, with the marker row that Java and PyIceberg use for "exists"."""
        rows = self._rows(namespace, _EXISTS | dict(properties))
        try:
            with self.database.changing() as connection:
                if self._exists(connection, namespace):
                    return False
                connection.execute(sa.insert(NAMESPACES), rows)
                self.database.run_hooks(connection)
        except sa.exc.IntegrityError:  # created by another process meanwhile
            return False
        return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        with self.database.changing() as connection:
            if connection.execute(sa.select(sa.or_(*self._contents(namespace)))).scalar_one():
                return False
            dropped = connection.execute(sa.delete(NAMESPACES).where(self._of(namespace))).rowcount > 0
            if dropped:
                self.database.run_hooks(connection)
            return dropped

    def namespace_exists(self, namespace: Namespace) -> bool:
        with self.database.reading() as connection:
            return self._exists(connection, namespace)

    def existing_namespaces(self, namespaces: Collection[Namespace]) -> set[Namespace]:
        """Those of some namespaces that exist: most have a row of their own."""
        names = {".".join(levels): levels for levels in namespaces if not any("." in level for level in levels)}
        of_catalog = NAMESPACES.c.catalog_name == self._catalog
        query = sa.select(NAMESPACES.c.namespace).where(of_catalog, NAMESPACES.c.namespace.in_(names)).distinct()
        with self.database.reading() as connection:
            found = {names[name] for name in connection.execute(query).scalars()}
            return found | {one for one in names.values() if one not in found and self._exists(connection, one)}

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        """The properties of the namespace, without the marker."""
        query = sa.select(NAMESPACES.c.property_key, NAMESPACES.c.property_value).where(self._of(namespace))
        with self.database.reading() as connection:
            found = {str(k): str(v) for k, v in connection.execute(query) if v is not None}
            if not found and not self._exists(connection, namespace):
                return None
        return {k: v for k, v in found.items() if k != EXISTS_KEY}

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """Upsert and delete rows; the marker keeps a namespace whose last property is removed."""
        insert = self.database.insert(NAMESPACES).values(self._rows(namespace, _EXISTS | dict(changes)))
        upsert = insert.on_conflict_do_update(
            index_elements=[c.name for c in NAMESPACES.primary_key],
            set_={"property_value": insert.excluded.property_value},
        )
        _check_count(removals)
        for key in removals:
            check_no_nul(key, "the name of a property")
        removed = sa.delete(NAMESPACES).where(self._of(namespace), NAMESPACES.c.property_key.in_(removals))
        with self.database.changing() as connection:
            if not self._exists(connection, namespace):
                return False
            connection.execute(removed)
            connection.execute(upsert)
            self.database.run_hooks(connection)
            return True

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces below one, including the parents of namespaces with rows."""
        names = list(self._names_below(below))
        return sorted(n for n in _levels(names) if len(n) > len(below))

    def namespaces_after(self, below: Namespace, after: NamespaceMark | None, most: int) -> NamespacePage:
        """The next namespaces directly below one, by indexes alone; in the order of bytes, unless an index is missing.

        Those that exist only by their descendants come in the place of these.
        """
        if not self.database.sorts_by_bytes:
            return self._children_sorted(below, after, most)
        start = f"{join_namespace(below)}." if below else ""
        if after is not None:
            start = f"{after[1]}{_LEAST_CHARACTER if after[0] else BEHIND_THE_DOT}"
        values = self._between(below, start, most + 1)
        values |= {"skipped": len(join_namespace(below)) + 1 if below else 0, "behind": _LEAST_CHARACTER}
        find, collation = self.database.find_function, self.database.collation
        query = next_children(find=find, is_nested=bool(below), collation=collation)
        with self.database.reading() as connection:
            rows = connection.execute(query, values).all()
        mark = (bool(rows[most - 1][1]), str(rows[most - 1][0])) if len(rows) > most else None
        return NamespacePage([_split(name) for name, _ in rows[:most]], mark)

    def namespaces_around(self, namespace: Namespace, most: int) -> list[Namespace]:
        """The namespaces next to one, by the primary keys, and their parents."""
        values = {"catalog": self._catalog, "start": join_namespace(namespace), "most": most}
        with self.database.reading() as connection:
            sides = [connection.execute(query, values).scalars().all() for query in (_NEXT, _PREVIOUS)]
        return sorted(_levels([name for side in sides for name in side]))

    def close(self) -> None:
        self.database.close()

    def _rows(self, namespace: Namespace, properties: Mapping[str, str]) -> list[dict[str, str]]:
        name = join_namespace(namespace)
        check_lengths(name)
        _check_count(properties)
        for key, value in properties.items():
            check_no_nul(key, "the name of a property")
            check_no_nul(value, f"property `{key}`")
            if len(key) > MAX_NAME_LENGTH or len(value) > MAX_VALUE_LENGTH:
                raise InvalidInputError(
                    f"expected a property of up to {MAX_NAME_LENGTH} characters with a value of up to "
                    f"{MAX_VALUE_LENGTH}, found `{key[:40]}` of {len(key)} with {len(value)}"
                )
        return [
            {"catalog_name": self._catalog, "namespace": name, "property_key": k, "property_value": v}
            for k, v in properties.items()
        ]

    def _of(self, namespace: Namespace) -> sa.ColumnElement[bool]:
        """A condition for the properties of a namespace."""
        return sa.and_(NAMESPACES.c.catalog_name == self._catalog, NAMESPACES.c.namespace == join_namespace(namespace))

    def _exists(self, connection: sa.Connection, namespace: Namespace) -> bool:
        """Whether the namespace has a row of its own, which most have, or any contents."""
        names = {"catalog": self._catalog, "namespace": join_namespace(namespace)}
        if connection.execute(_OWN_ROW, names).first() is not None:
            return True
        return bool(connection.execute(sa.select(sa.or_(*self._contents(namespace)))).scalar_one())

    def _contents(self, namespace: Namespace) -> tuple[sa.ColumnElement[bool], ...]:
        """Whether a namespace contains names or namespaces."""
        by_bytes, prefix = self.database.by_bytes, f"{join_namespace(namespace)}."
        return (
            sa.exists().where(self._in(namespace)),
            sa.exists().where(
                TABLES.c.catalog_name == self._catalog, starts_with(by_bytes(TABLES.c.table_namespace), prefix)
            ),
            sa.exists().where(
                NAMESPACES.c.catalog_name == self._catalog, starts_with(by_bytes(NAMESPACES.c.namespace), prefix)
            ),
        )

    def _children_sorted(self, below: Namespace, after: NamespaceMark | None, most: int) -> NamespacePage:
        """A page of the children, for which all namespaces below are looked up."""
        children = {levels[: len(below) + 1] for levels in map(_split, self._names_below(below))}
        last = after[1] if after else ""
        found = sorted(n for n in children if len(n) > len(below) and join_namespace(n) > last)
        return NamespacePage(found[:most], (True, join_namespace(found[most - 1])) if len(found) > most else None)

    def _names_below(self, namespace: Namespace) -> Iterator[str]:
        """The namespaces of all rows below this one, each looked up in an index after the one before."""
        prefix = f"{join_namespace(namespace)}." if namespace else ""
        in_order = self.database.sorts_by_bytes
        query, bounds, last = _NEXT, namespace if in_order else (), prefix if in_order else ""
        if in_order:
            query = next_namespaces(collation=self.database.collation, is_nested=bool(namespace))
        with self.database.reading() as connection:
            while True:
                names = connection.execute(query, self._between(bounds, last, _READ_AT_ONCE)).scalars().all()
                yield from (name for name in names if name.startswith(prefix))
                if len(names) < _READ_AT_ONCE:
                    return
                last = names[-1]

    def _between(self, below: Namespace, start: str, most: int) -> dict[str, str | int]:
        """The values of a query for so many namespaces from a start to the end of those below one."""
        values: dict[str, str | int] = {"catalog": self._catalog, "start": start, "most": most}
        return values | ({"end": f"{join_namespace(below)}{BEHIND_THE_DOT}"} if below else {})


def _split(name: str) -> Namespace:
    return tuple(name.split("."))


def _levels(names: Iterable[str]) -> set[Namespace]:
    """The namespaces with their parents, which exist too."""
    return {levels[: i + 1] for levels in map(_split, names) for i in range(len(levels))}


def _check_name(database: SqlDatabase, name: str, version: int) -> None:
    """Refuse a catalog name without rows if the database has other catalogs: it may be misspelled."""
    columns = [TABLES.c.catalog_name, NAMESPACES.c.catalog_name]
    with database.reading() as connection:
        if any(connection.execute(sa.select(c).where(c == name).limit(1)).first() for c in columns):
            return
        names = {other for column in columns for other in _catalog_names(connection, column)}
    if version >= RECORDS_VERSION:
        with (
            contextlib.suppress(RefusedError),
            database.reading() as connection,
        ):  # the table of tokens may not be readable
            names.update(connection.execute(sa.select(records_layout.TOKENS.c.catalog_name).distinct()).scalars())
    if names and name not in names:
        found = ", ".join(f"`{other}`" for other in sorted(names)[:_MOST_SHOWN])
        message = f"no catalog `{name}` in {database.name}, which has {found}"
        raise missing_catalog(message, name, kind=CATALOG_NAME, known=names)


def _catalog_names(connection: sa.Connection, column: sa.ColumnElement[str]) -> Iterator[str]:
    """The catalogs with rows in a table, each looked up in its primary key after the one before."""
    name = connection.execute(sa.select(sa.func.min(column))).scalar()
    while name is not None:
        yield name
        name = connection.execute(sa.select(sa.func.min(column)).where(column > name)).scalar()


def _check_count(properties: Collection[str]) -> None:
    if len(properties) > _MAX_PROPERTIES:
        raise InvalidInputError(f"expected up to {_MAX_PROPERTIES} properties at once, found {len(properties)}")
