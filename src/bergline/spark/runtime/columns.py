"""Columns by their names, whatever is in these."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.quoting import back_quoted_path


def column_at(path: Iterable[str]) -> Column:
    """A column, or a field inside structs, by the names on the way to it."""
    return F.col(back_quoted_path(path))
