"""What a server's database records beside the tables: only those who reach the database may look."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from bergline.catalog.records import Records, records_of
from bergline.cli.opening import is_server, open_lake
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.lake import DEFAULT_NAME

ServedNameOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--name", help="The catalog's name, as `bergline serve --name` has it. \\[default: lake]"),
]
_MOST_SHOWN = 10


@contextmanager
def open_records(
    catalog: str | None,
    warehouse: str | None,
    properties: Sequence[str] | None,
    name: str | None,
    *,
    may_create: bool = False,
) -> Iterator[Records]:
    """The records of the catalog that `bergline serve` serves; the usual one must be there if others are."""
    if catalog is not None and is_server(catalog):
        raise UnsupportedError(
            "expected the database that the server serves, found the address of a server",
            hints=["give --catalog as `bergline serve` has it: sqlite:///path/catalog.db or postgresql://…"],
        )
    with open_lake(catalog, warehouse, properties, name or DEFAULT_NAME, may_create=may_create) as lake:
        records = records_of(lake.catalog)
        if name is None and (others := records.catalog_names()) and DEFAULT_NAME not in others:
            found = ", ".join(f"`{other}`" for other in others[:_MOST_SHOWN])
            raise InvalidInputError(
                f"expected a catalog `{DEFAULT_NAME}` in the database, found {found}",
                hints=[f"name the one that is served: --name {shlex.quote(others[0])}"],
            )
        yield records
