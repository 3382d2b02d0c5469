"""Tables of the engine's own catalog, which imports read: what they are, and which files they have."""

from typing import Protocol

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.sql.text.tokens import Name

SESSION_CATALOG = "spark_catalog"
_PARQUET = "parquet"


class SessionTable(msgspec.Struct, frozen=True):
    """A table of the session catalog."""

    name: Name
    """Database and table."""
    provider: str
    location: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    is_managed: bool = False
    """Whether its files are moved when it is renamed, and deleted when it is dropped."""
    is_bucketed: bool = False
    survives_rename: bool = True
    """Whether it has its partitions after a rename: Spark's catalog in memory moves their files, and loses them."""

    def __str__(self) -> str:
        """The name as users write it."""
        return ".".join((SESSION_CATALOG, *self.name))

    def check_importable(self) -> None:
        """UnsupportedError if a lake table cannot have its files."""
        if self.provider.lower() != _PARQUET:
            raise UnsupportedError(f"expected a table of Parquet files, found `{self.provider}` for `{self}`")
        if self.is_bucketed:
            raise UnsupportedError(f"expected a table without buckets, found some in `{self}`")


class SessionCatalog(Protocol):
    """What the session catalog says of a table, and what becomes of a table that was migrated."""

    def table(self, name: Name) -> SessionTable:
        """A table, given by database and name; NotFoundError if there is none."""
        ...

    def files(self, table: SessionTable) -> dict[str, dict[str, str]]:
        """The files of a table, each with the texts of its partition values by column."""
        ...

    def rename(self, table: SessionTable, new: str) -> SessionTable:
        """Give a table another name in its database; AlreadyExistsError if it is taken."""
        ...

    def drop(self, table: SessionTable) -> None:
        """Drop a table."""
        ...


def session_table_name(name: Name, text: str) -> Name:
    """Database and table of a name in the session catalog; InvalidInputError for a table of another catalog."""
    parts = name[1:] if name[0].lower() == SESSION_CATALOG else name
    if len(parts) != 2:  # noqa: PLR2004
        raise InvalidInputError(
            f"expected a table of the session catalog like `{SESSION_CATALOG}.db.orders`, found `{text}`"
        )
    return parts
