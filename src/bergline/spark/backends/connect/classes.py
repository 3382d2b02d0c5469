"""Spark Connect's own classes, imported only where a session of theirs is at hand.

They need packages that classic sessions do without.
"""

import functools
from typing import Any, NamedTuple


class ConnectClasses(NamedTuple):
    """What Spark Connect has instead of the classic classes."""

    session: type[Any]
    frame: type[Any]
    reader: type[Any]
    writer: type[Any]
    catalog: type[Any]
    plan: type[Any]
    stream_reader: type[Any]
    stream_writer: type[Any]
    formatter: type[Any]


@functools.cache
def connect_classes() -> ConnectClasses:
    """The classes; ImportError where the packages that they need are not installed."""
    from pyspark.sql.connect.catalog import Catalog  # noqa: PLC0415  (see above, as for the others)
    from pyspark.sql.connect.dataframe import DataFrame  # noqa: PLC0415
    from pyspark.sql.connect.plan import LogicalPlan  # noqa: PLC0415
    from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415
    from pyspark.sql.connect.sql_formatter import SQLStringFormatter  # noqa: PLC0415
    from pyspark.sql.connect.streaming.readwriter import DataStreamReader, DataStreamWriter  # noqa: PLC0415

    return ConnectClasses(
        SparkSession,
        DataFrame,
        DataFrameReader,
        DataFrameWriter,
        Catalog,
        LogicalPlan,
        DataStreamReader,
        DataStreamWriter,
        SQLStringFormatter,
    )
