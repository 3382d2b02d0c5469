"""Which backend a session has: the one place where the two kinds of Spark are distinguished."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bergline.errors import InvalidInputError
from bergline.spark.backends.classic.backend import ClassicBackend
from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.backends.connect.classes import connect_classes
from bergline.spark.runtime.backend import SparkBackend

_CONNECT = "pyspark.sql.connect."


def backend_of(owner: Any) -> SparkBackend:
    """The backend for a session, or for the session of a frame, reader, writer or catalog."""
    return backend_class(owner)(_session_of(owner))


def backend_class(thing: object) -> type[ClassicBackend | ConnectBackend]:
    """The kind of backend for an object of Spark's, such as a column, which knows no session."""
    return ConnectBackend if _is_of_connect(thing) else ClassicBackend


def session_backend(spark: object) -> SparkBackend:
    """The backend for a session; InvalidInputError for what is no session."""
    if not _is_session(spark):
        raise InvalidInputError(f"expected a SparkSession, found {type(spark).__module__}.{type(spark).__name__}")
    return backend_of(spark)


def _is_of_connect(thing: object) -> bool:
    """By the names of classes: Spark Connect's need packages that may not be installed."""
    return any(owner.__module__.startswith(_CONNECT) for owner in type(thing).__mro__)


def _is_session(thing: object) -> bool:
    return isinstance(thing, connect_classes().session if _is_of_connect(thing) else SparkSession)


def _session_of(owner: Any) -> Any:
    if _is_session(owner):
        return owner
    if isinstance(owner, DataFrame):
        return owner.sparkSession
    # Spark names it differently in readers (Connect, classic), writers and catalogs
    names = ("_client", "_spark", "_sparkSession", "_session")
    return next(vars(owner)[name] for name in names if name in vars(owner))
