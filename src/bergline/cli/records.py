"""A server's records, for those with access to its database."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from bergline.catalog.sql.records import Records, records_of
from bergline.cli.opening import LakeOptions, open_lake
from bergline.errors import UnsupportedError
from bergline.lake.opening import is_server


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
