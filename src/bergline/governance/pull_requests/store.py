"""Pull requests in the catalog's database: a row for each, and its history."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.attempts import attempts
from bergline.catalog.protection.caller import see_made
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import PULL_REQUEST_HISTORY, PULL_REQUESTS
from bergline.errors import AlreadyExistsError
from bergline.governance.pull_requests.model import (
    PULL_REQUEST,
    EntryKind,
    ProposedTable,
    PublishMethod,
    PullRequestEntry,
    PullRequestRecord,
    PullRequestState,
    TableHead,
    missing_pull_request,
)

_COLUMNS = [PULL_REQUESTS.c[name] for name in PullRequestRecord.__struct_fields__]
_HISTORY = [PULL_REQUEST_HISTORY.c[name] for name in PullRequestEntry.__struct_fields__]

Act = Callable[[sa.Connection, PullRequestRecord], PullRequestRecord]
"""Turns a pull request whose row is locked into the changed one."""
First = Callable[[sa.Connection], None]
"""Runs before the row is locked: everybody locks reviews first, so that nobody deadlocks."""


class SqlPullRequests:
    """The pull requests of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._mine = PULL_REQUESTS.c.catalog_name == catalog_name

    def add(self, new: PullRequestRecord) -> PullRequestRecord:
        """Add one under the next number; AlreadyExistsError if one of the same branch, target and tables is open.

        One for other tables does not prevent it: otherwise callers who may not see it would learn that it exists.
        """
        newest = sa.select(sa.func.max(PULL_REQUESTS.c.number)).where(self._mine)
        tries = attempts("others kept opening pull requests at the same time")
        while True:
            next(tries)
            try:
                with self._database.changing() as connection:
                    number = (connection.execute(newest).scalar_one() or 0) + 1
                    self._check_alone(connection, new)
                    record = msgspec.structs.replace(new, number=number)
                    connection.execute(
                        sa.insert(PULL_REQUESTS).values({"catalog_name": self._catalog, **_values(record)})
                    )
                    self._note(connection, number, PullRequestEntry(record.created_ms, record.author, EntryKind.OPENED))
                    see_made(record)
                    self._database.run_hooks(connection)
                    return record
            except sa.exc.IntegrityError:  # somebody else took the number first
                continue

    def page(self, state: PullRequestState | None, before: int | None, most: int) -> list[PullRequestRecord]:
        """Some of them, newest first; none if the database has no pull requests yet."""
        query = sa.select(*_COLUMNS).where(self._mine)
        if state is not None:
            query = query.where(PULL_REQUESTS.c.state == state.value)
        if before is not None:
            query = query.where(PULL_REQUESTS.c.number < before)
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(PULL_REQUESTS.name):
                return []
            found = connection.execute(query.order_by(PULL_REQUESTS.c.number.desc()).limit(most))
            return [_record(tuple(row)) for row in found]

    def find(self, number: int) -> PullRequestRecord:
        """One by its number; NotFoundError if there is none."""
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(PULL_REQUESTS.name):
                raise missing_pull_request(number)
            return self._find(connection, number, lock=False)

    def history(self, number: int) -> tuple[PullRequestEntry, ...]:
        """What happened to one, oldest first."""
        query = (
            sa.select(*_HISTORY)
            .where(PULL_REQUEST_HISTORY.c.catalog_name == self._catalog, PULL_REQUEST_HISTORY.c.number == number)
            .order_by(PULL_REQUEST_HISTORY.c.id)
        )
        with self._database.reading() as connection:
            return tuple(_entry(tuple(row)) for row in connection.execute(query))

    def change(
        self, number: int, entry: PullRequestEntry, act: Act, first: First = lambda _: None
    ) -> PullRequestRecord:
        """Change one in a transaction of its own; AlreadyExistsError if another is open in its place."""
        with self._database.changing() as connection:
            first(connection)
            record = self.change_in(connection, number, entry, act)
            self._database.run_hooks(connection)
            return record

    def change_in(self, connection: sa.Connection, number: int, entry: PullRequestEntry, act: Act) -> PullRequestRecord:
        """Change one in a transaction; it stays locked until the end."""
        before = self._find(connection, number, lock=True)
        after = msgspec.structs.replace(act(connection, before), updated_ms=entry.at_ms, version=before.version + 1)
        if after.state is PullRequestState.OPEN is not before.state:
            self._check_alone(connection, after)
        mine = sa.and_(self._mine, PULL_REQUESTS.c.number == number)
        connection.execute(sa.update(PULL_REQUESTS).where(mine).values(_values(after)))
        self._note(connection, number, entry)
        see_made(after)
        return after

    def _find(self, connection: sa.Connection, number: int, *, lock: bool) -> PullRequestRecord:
        query = sa.select(*_COLUMNS).where(self._mine, PULL_REQUESTS.c.number == number)
        row = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise missing_pull_request(number)
        return _record(tuple(row))

    def _note(self, connection: sa.Connection, number: int, entry: PullRequestEntry) -> None:
        row = {"catalog_name": self._catalog, "number": number, **_values(entry)}
        connection.execute(sa.insert(PULL_REQUEST_HISTORY).values(row))

    def _check_alone(self, connection: sa.Connection, record: PullRequestRecord) -> None:
        newest = sa.select(PULL_REQUESTS.c.number).where(self._mine).order_by(PULL_REQUESTS.c.number.desc()).limit(1)
        connection.execute(newest.with_for_update())  # those who open pull requests wait here for each other
        query = sa.select(PULL_REQUESTS.c.number).where(
            self._mine,
            PULL_REQUESTS.c.branch == record.branch,
            PULL_REQUESTS.c.target == record.target,
            PULL_REQUESTS.c.tables == _values(record)["tables"],
            PULL_REQUESTS.c.state == PullRequestState.OPEN.value,
        )
        number = connection.execute(query).scalars().first()
        if number is not None:
            raise AlreadyExistsError(
                f"pull request {number} is already open to publish `{record.branch}` "
                f"of the same tables into `{record.target}`",
                kind=PULL_REQUEST,
                name=str(number),
                hints=["close it, or use it for both"],
            )


_DECODED: dict[str, Callable[[str], Any]] = {
    "tables": msgspec.json.Decoder(tuple[ProposedTable, ...]).decode,
    "published": msgspec.json.Decoder(tuple[TableHead, ...]).decode,
    "heads": msgspec.json.Decoder(tuple[TableHead, ...]).decode,
    "state": PullRequestState,
    "method": PublishMethod,
    "what": EntryKind,
}


def _values(value: PullRequestRecord | PullRequestEntry) -> dict[str, object]:
    """The columns of a value."""
    found = msgspec.structs.asdict(value).items()
    return {name: msgspec.json.encode(v).decode() if isinstance(v, tuple) else v for name, v in found}


def _record(row: Sequence[Any]) -> PullRequestRecord:
    return PullRequestRecord(**_fields(PullRequestRecord.__struct_fields__, row))


def _entry(row: Sequence[Any]) -> PullRequestEntry:
    return PullRequestEntry(**_fields(PullRequestEntry.__struct_fields__, row))


def _fields(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: value if value is None or name not in _DECODED else _DECODED[name](value)
        for name, value in zip(names, row, strict=True)
    }
