"""The classes whose methods attach replaces, classic or of Spark Connect, and what session an object of them has."""

from typing import Any, NamedTuple

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.errors import InvalidInputError
from bergline.spark.runtime.connect import connect_classes, over_connect


class PatchedClasses(NamedTuple):
    """One kind of Spark."""

    session: type[Any]
    frame: type[Any]
    reader: type[Any]
    writer: type[Any]
    catalog: type[Any]


_CLASSIC = PatchedClasses(SparkSession, ClassicDataFrame, DataFrameReader, DataFrameWriter, Catalog)


def patched_classes(spark: SparkSession) -> PatchedClasses:
    """The classes of a session's kind."""
    if not over_connect(spark):
        return _CLASSIC
    theirs = connect_classes()
    return PatchedClasses(theirs.session, theirs.frame, theirs.reader, theirs.writer, theirs.catalog)


def is_session(thing: object) -> bool:
    """Whether it is a session of either kind."""
    return isinstance(thing, SparkSession) or (over_connect(thing) and isinstance(thing, connect_classes().session))


def session_of(owner: Any) -> SparkSession:
    """The session of an object whose method was called; a session itself is its own."""
    if is_session(owner):
        return owner  # type: ignore[no-any-return]
    if isinstance(owner, DataFrame):
        return owner.sparkSession
    # Spark names it differently in readers (Connect, classic), writers and catalogs
    names = ("_client", "_spark", "_sparkSession")
    return next(vars(owner)[name] for name in names if name in vars(owner))  # type: ignore[no-any-return]


def session_id(spark: Any) -> str:
    """What tells sessions apart: several Python objects may stand for one."""
    return str(spark.session_id if over_connect(spark) else spark._jsparkSession.sessionUUID())  # noqa: SLF001


def is_stopped(spark: Any) -> bool:
    """Whether `stop` was called."""
    if over_connect(spark):
        return bool(spark.is_stopped)
    return spark.sparkContext._jsc is None  # noqa: SLF001  (what `stop` leaves behind)


def check_session(spark: object) -> None:
    """InvalidInputError for what is no session."""
    if not is_session(spark):
        raise InvalidInputError(f"expected a SparkSession, found {type(spark).__module__}.{type(spark).__name__}")


def check_running(spark: Any) -> None:
    """InvalidInputError for a session that was stopped."""
    if is_stopped(spark):
        raise InvalidInputError("expected a running Spark session, found one that was stopped")
