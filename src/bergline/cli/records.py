"""A server's records, for those with access to its database."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from bergline.catalog.sql.records import Records, records_of
from bergline.cli.opening import open_lake
from bergline.errors import UnsupportedError
from bergline.lake.lake import DEFAULT_NAME
from bergline.lake.opening import is_server

ServedNameOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--name", help="The catalog's name, as `bergline serve --name` has it. \\[default: lake]"),
]


@contextmanager
def open_records(
    catalog: str | None,
    warehouse: str | None,
    properties: Sequence[str] | None,
    name: str | None,
    *,
    create: Collection[str] = (),
) -> Iterator[Records]:
    """Open the records of the catalog that `bergline serve` serves."""
    if catalog is not None and is_server(catalog):
        raise UnsupportedError(
            "expected the database that the server serves, found the address of a server",
            hints=["give --catalog as `bergline serve` has it: sqlite:///path/catalog.db or postgresql://…"],
        )
    with open_lake(catalog, warehouse, properties, name or DEFAULT_NAME, create=create) as lake:
        yield records_of(lake.catalog)
