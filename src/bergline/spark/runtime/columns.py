"""Columns by their names, whatever is in these."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)


def quoted(name: str) -> str:
    """A name in back-quotes, as Spark takes it."""
    return f"`{name.replace('`', '``')}`"


def column_at(path: Iterable[str]) -> Column:
    """A column, or a field inside structs, by the names on the way to it."""
    return F.col(".".join(map(quoted, path)))
