"""A server's records, for those with access to its database."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.records import AuditEntry, Records, find_sql_store, records_of
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.cli.opening import LakeOptions, open_lake
from bergline.errors import UnsupportedError
from bergline.lake.opening import is_server

KeyFileOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Keys, one per line, for encrypting the secrets of webhooks; the first one encrypts. "
        "\\[default: $BERGLINE_SECRETS_KEY]",
    ),
]


@contextmanager
def open_records(options: LakeOptions, *, create: Collection[str] = ()) -> Iterator[Records]:
    """Open the records of the catalog that `bergline serve` serves."""
    settings = options.settings()
    if settings.catalog is not None and is_server(settings.catalog):
        raise UnsupportedError(
            "expected the database that the server serves, found the address of a server",
            hints=["give --catalog as `bergline serve` has it: sqlite:///path/catalog.db or postgresql://…"],
        )
    with open_lake(settings, create=create) as lake:
        yield records_of(lake.catalog)


def note_change(records: Records, operation: str, resource: str) -> None:
    """Write to the audit log what a command has changed other than tables."""
    entry = AuditEntry(time.time_ns() // 1_000_000, current_caller().name, operation, resource)
    with records.database.changing() as connection:
        records.add_audit(connection, entry)


@contextmanager
def open_store(options: LakeOptions, *, create: Collection[str] = ()) -> Iterator[SqlPointerStore]:
    """Open the database of a catalog, whatever the version of its layout."""
    settings = options.settings()
    if settings.catalog is not None and is_server(settings.catalog):
        raise UnsupportedError(
            "expected a catalog's database, found the address of a server",
            hints=["give --catalog as `bergline serve` has it: sqlite:///path/catalog.db or postgresql://…"],
        )
    with open_lake(settings, create=create) as lake:
        store = find_sql_store(lake.catalog)
        if store is None:
            raise UnsupportedError(
                "expected a catalog in SQLite or PostgreSQL, found another",
                hints=["a catalog in files is copied with them"],
            )
        yield store
