"""Pointers in a PostgreSQL database."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from bergline.catalog.sql.database import SqlDatabase, transaction
from bergline.catalog.sql.layout import NAMESPACE_INDEXES
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import InvalidInputError, RefusedError, StorageError, UnavailableError, UnsupportedError
from bergline.extras import install_hint

_LAYOUT_LOCK = 0x6265726773  # any number that all versions of bergline agree on
_DIRECTORIES_LOCK = _LAYOUT_LOCK + 1
_MAX_CONNECTIONS = 10
_SESSION = {"lock_timeout": "10s", "statement_timeout": "30s", "idle_in_transaction_session_timeout": "30s"}
_NETWORK = {  # a dead connection is noticed after half a minute
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_VALID_INDEXES = sa.text(
    "SELECT count(*) FROM pg_index JOIN unnest(CAST(:names AS TEXT[])) AS name ON indexrelid = to_regclass(name) "
    "WHERE indisvalid"
)
_IN_ORDER = sa.text("SELECT name FROM unnest(CAST(:names AS TEXT[])) AS name ORDER BY name")
_NOW_MS = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * 1000, sa.BigInteger)
_FORBIDDEN = {"25006", "42501"}  # a read-only transaction; insufficient privilege


class PostgresPointerStore(SqlPointerStore):
    """PointerStore in PostgreSQL, with pooled connections."""

    def __init__(self, url: str, *, catalog_name: str = "lake", create: bool = True) -> None:
        super().__init__(PostgresDatabase(url), catalog_name, create=create)


class PostgresDatabase(SqlDatabase):
    """A PostgreSQL database with a connection pool."""

    collation = ' COLLATE "C"'
    find_function = "strpos"

    def __init__(self, url: str) -> None:
        self._has_byte_order = False
        engine = _engine(url)
        super().__init__(engine, engine.url.set(drivername="postgresql").render_as_string(hide_password=True))
        sa.event.listen(engine, "connect", _opened)
        sa.event.listen(engine, "checkout", _lent)

    @property
    def sorts_by_bytes(self) -> bool:
        """Whether our indexes of the shared tables are there: the primary keys may be in the order of a language."""
        if not self._has_byte_order:
            with self.reading() as connection:
                valid = connection.execute(_VALID_INDEXES, {"names": list(NAMESPACE_INDEXES)}).scalar_one()
            self._has_byte_order = valid == len(NAMESPACE_INDEXES)
        return self._has_byte_order

    def by_bytes(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return column.collate("C")

    def in_order(self, connection: sa.Connection, names: Sequence[str]) -> list[str]:
        """Names as the database sorts them, by its language."""
        return list(connection.execute(_IN_ORDER, {"names": names}).scalars())

    def insert(self, table: sa.Table) -> Any:
        return postgresql.insert(table)

    def lock_layout(self, connection: sa.Connection) -> None:
        """Take an advisory lock: two processes that create the same tables at once would both fail."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LAYOUT_LOCK})

    def lock_directories(self, connection: sa.Connection) -> None:
        """Take another advisory lock: the layout is locked while writers of the shared tables are waited for."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _DIRECTORIES_LOCK})

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with self._unavailable("did not answer"), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def reading_snapshot(self) -> Iterator[sa.Connection]:
        with self.reading() as connection:
            yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @contextlib.contextmanager
    def loading(self, tables: Sequence[sa.Table]) -> Iterator[sa.Connection]:
        """A transaction with these tables locked, in which statements may take long."""
        with super().loading(tables) as connection:
            connection.execute(sa.text("SELECT set_config('statement_timeout', '0', true)"))
            names = ", ".join(table.name for table in tables)
            connection.execute(sa.text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))
            yield connection

    def now_ms(self) -> sa.ColumnElement[int]:
        return _NOW_MS

    def continue_keys(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
        for table in tables:
            if (column := table.autoincrement_column) is not None:
                connection.execute(_move_sequence(table, column))

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction; an error before the commit is certain, one of the commit itself leaves it in doubt."""
        with self._unavailable("refused a change"):
            connection = self.engine.connect()
        with connection, transaction(connection, self._unavailable("refused a change"), self._while_committing):
            yield connection

    def _while_committing(self, error: sa.exc.DBAPIError) -> StorageError:
        return StorageError(f"catalog database {self.name} failed while committing: {error.orig}")

    @contextlib.contextmanager
    def _unavailable(self, what: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
            if getattr(getattr(error, "orig", None), "sqlstate", None) in _FORBIDDEN:
                raise RefusedError(f"catalog database {self.name} {what}: {reason}") from error
            if isinstance(error, sa.exc.DataError):  # no other time would be better
                raise InvalidInputError(f"expected values that the catalog's database can hold: {reason}") from error
            raise UnavailableError(
                f"catalog database {self.name} {what}: {reason}", hints=["nothing was changed; try again"]
            ) from error


def _move_sequence(table: sa.Table, column: sa.Column[Any]) -> sa.Select[Any]:
    """Let the keys that the database gives come after all that there are; nothing where it gives none."""
    sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
    newest = sa.select(sa.func.max(column)).scalar_subquery()
    moved = sa.func.setval(sequence, sa.func.greatest(newest, sa.func.nextval(sequence)))
    return sa.select(moved).where(sequence.is_not(None))


def _opened(connection: Any, record: Any) -> None:
    """Set timeouts, unless the user, role or database has set them."""
    record.info["process"] = os.getpid()
    for name, value in _SESSION.items():
        connection.execute("SELECT set_config(%s, %s, false) WHERE current_setting(%s) = '0'", (name, value, name))
    connection.commit()


def _lent(_connection: Any, record: Any, proxy: Any) -> None:
    """A forked process opens connections of its own: on shared ones, responses would get mixed up."""
    if record.info["process"] != os.getpid():
        record.dbapi_connection = proxy.dbapi_connection = None  # not closed, which would end the parent's
        raise sa.exc.DisconnectionError


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        return sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            pool_size=_MAX_CONNECTIONS,
            max_overflow=0,
            connect_args={k: v for k, v in _NETWORK.items() if k not in parsed.query},
        )
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "cannot connect to PostgreSQL without psycopg", hints=[install_hint("postgres")]
        ) from error
    except (sa.exc.ArgumentError, ValueError) as error:
        raise InvalidInputError("expected a catalog like `postgresql://user@host:5432/database`") from error
