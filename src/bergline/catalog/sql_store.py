"""The pointer store in an SQL database, in the layout shared with Java's JDBC catalog and PyIceberg's SQL catalog."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from bergline.catalog.identifiers import MAX_NAME_LENGTH, Namespace, check_lengths
from bergline.catalog.sql_database import SqlDatabase
from bergline.catalog.sql_layout import (
    EXISTS_KEY,
    MAX_VALUE_LENGTH,
    NAMESPACES,
    TABLES,
    RowKind,
    join_namespace,
    namespace_or_below,
)
from bergline.catalog.sql_pointers import SqlPointers
from bergline.errors import InvalidInputError
from bergline.format.arguments import check_no_nul

_EXISTS = {EXISTS_KEY: "true"}
_MAX_PROPERTIES = 5000  # of one call: a statement has no room for more


class SqlPointerStore(SqlPointers):
    """PointerStore on the shared layout; `catalog_name` tells catalogs in one database apart."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        check_lengths(catalog_name)
        check_no_nul(catalog_name, "the catalog's name")
        try:
            typed = database.open_layout().typed
        except BaseException:
            database.close()
            raise
        super().__init__(database, catalog_name, RowKind.TABLE if typed else RowKind.UNTYPED)
        self.views = SqlPointers(database, catalog_name, RowKind.VIEW) if typed else None

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """Insert the properties, with the mark that Java and PyIceberg use for "exists"."""
        rows = self._rows(namespace, _EXISTS | dict(properties))
        try:
            with self.database.changing() as connection:
                if self._names_below(connection, namespace):
                    return False
                connection.execute(sa.insert(NAMESPACES), rows)
                self.database.note(connection)
        except sa.exc.IntegrityError:  # another process created it meanwhile
            return False
        return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Delete an empty namespace."""
        name = join_namespace(namespace)
        with self.database.changing() as connection:
            if any(n != name for n in self._names_below(connection, namespace)) or self._has_names(connection, name):
                return False
            dropped = connection.execute(sa.delete(NAMESPACES).where(self._of(namespace))).rowcount > 0
            if dropped:
                self.database.note(connection)
            return dropped

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        with self.database.reading() as connection:
            return bool(self._names_below(connection, namespace))

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        """The rows of the namespace, without the mark."""
        query = sa.select(NAMESPACES.c.property_key, NAMESPACES.c.property_value).where(self._of(namespace))
        with self.database.reading() as connection:
            found = {str(k): str(v) for k, v in connection.execute(query) if v is not None}
            if not found and not self._names_below(connection, namespace):
                return None
        return {k: v for k, v in found.items() if k != EXISTS_KEY}

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """Upsert and delete rows; the mark keeps a namespace whose last property goes."""
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
            if not self._names_below(connection, namespace):
                return False
            connection.execute(removed)
            connection.execute(upsert)
            self.database.note(connection)
            return True

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces below one; the levels above a row's namespace exist too."""
        with self.database.reading() as connection:
            names = [tuple(n.split(".")) for n in self._names_below(connection, below)]
        levels = {n[: i + 1] for n in names for i in range(len(n))}
        return sorted(n for n in levels if len(n) > len(below))

    def close(self) -> None:
        """Let go of the database."""
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
        """Picks the rows of a namespace's properties."""
        return sa.and_(NAMESPACES.c.catalog_name == self._catalog, NAMESPACES.c.namespace == join_namespace(namespace))

    def _has_names(self, connection: sa.Connection, name: str) -> bool:
        query = sa.select(sa.func.count()).where(
            TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == name
        )
        return connection.execute(query).scalar_one() > 0

    def _names_below(self, connection: sa.Connection, namespace: Namespace) -> list[str]:
        """The namespaces of all rows in this namespace and below it."""
        tables = sa.select(TABLES.c.table_namespace).where(
            TABLES.c.catalog_name == self._catalog, namespace_or_below(TABLES.c.table_namespace, namespace)
        )
        namespaces = sa.select(NAMESPACES.c.namespace).where(
            NAMESPACES.c.catalog_name == self._catalog, namespace_or_below(NAMESPACES.c.namespace, namespace)
        )
        return list(connection.execute(sa.union(tables, namespaces)).scalars())


def _check_count(properties: Collection[str]) -> None:
    if len(properties) > _MAX_PROPERTIES:
        raise InvalidInputError(f"expected up to {_MAX_PROPERTIES} properties at once, found {len(properties)}")
