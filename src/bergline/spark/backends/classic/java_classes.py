"""Classes of the JVM, looked up once, and what never changes in a session.

With `jvm.org.apache.…` each part of a name would be a round trip, every time.
"""

import functools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"


class SessionFacts(NamedTuple):
    """What tells a session from others, and its parser."""

    java: str
    session_id: str
    parser: Any


_FACTS: "weakref.WeakKeyDictionary[SparkSession, SessionFacts]" = weakref.WeakKeyDictionary()


def session_facts(spark: SparkSession) -> SessionFacts:
    """What never changes in a session."""
    java: Any = spark._jsparkSession  # noqa: SLF001  (nothing public has these)
    known = _FACTS.get(spark)
    if known is None or known.java != java._target_id:  # noqa: SLF001
        known = SessionFacts(java._target_id, str(java.sessionUUID()), java.sessionState().sqlParser())  # noqa: SLF001
        _FACTS[spark] = known
    return known


def new_object(spark: SparkSession, class_name: str, *args: Any) -> Any:
    """A new object of a class."""
    return java_class(client_of(spark), class_name)(*args)


def static_member(spark: SparkSession, class_name: str, name: str) -> Any:
    """A static method of a class, or the value of a static field that never changes."""
    return java_member(client_of(spark), class_name, name)


def scala_object(spark: SparkSession, class_name: str) -> Any:
    """The only instance of a Scala object."""
    return static_member(spark, f"{class_name}$", "MODULE$")


def scala_list(client: Any, *items: Any) -> Any:
    """A Scala list, by one call for each item."""
    found = java_member(client, "scala.collection.immutable.Nil$", "MODULE$")
    for item in reversed(items):
        found = java_class(client, "scala.collection.immutable.$colon$colon")(item, found)
    return found


def scala_map(spark: SparkSession, pairs: list[tuple[Any, Any]]) -> Any:
    """A Scala map, by one call if it is small."""
    if 0 < len(pairs) <= 4:  # noqa: PLR2004  (Scala has a class for each of these sizes)
        return new_object(
            spark, f"scala.collection.immutable.Map$Map{len(pairs)}", *(one for two in pairs for one in two)
        )
    found = new_object(spark, "java.util.HashMap")
    for key, value in pairs:
        found.put(key, value)
    return static_member(spark, _PYTHON_UTILS, "toScalaMap")(found)


def bound_call(spark: SparkSession, class_name: str, name: str, arguments: Sequence[Any]) -> Any:
    """A call of the only method of this name of a Scala object, as a function that Scala code takes."""
    given = new_object(spark, "java.util.ArrayList", len(arguments))
    for argument in arguments:
        given.add(argument)
    bind = static_member(spark, "java.lang.invoke.MethodHandles", "insertArguments")
    bound = bind(_handle(client_of(spark), class_name, name), 0, given.toArray())
    function = static_member(spark, "java.lang.Class", "forName")("scala.Function0")
    return static_member(spark, "java.lang.invoke.MethodHandleProxies", "asInterfaceInstance")(function, bound)


def table_alias(spark: SparkSession, name: tuple[str, ...]) -> Any:
    """A name that columns are qualified by, as Spark has it."""
    return _alias(client_of(spark), name)


def client_of(spark: SparkSession) -> Any:
    """The connection to the JVM, which may outlive sessions."""
    context: Any = spark.sparkContext
    return context._gateway._gateway_client  # noqa: SLF001


@functools.lru_cache(maxsize=128)
def java_class(client: Any, name: str) -> Any:
    """A class, to be called for a new object."""
    return JavaClass(name, client)


@functools.lru_cache(maxsize=128)
def java_member(client: Any, class_name: str, name: str) -> Any:
    """A static method, or the value of a static field."""
    return getattr(JavaClass(class_name, client), name)


@functools.lru_cache(maxsize=8)
def _handle(client: Any, class_name: str, name: str) -> Any:
    """A method of a Scala object, to be called without knowing its types."""
    instance = java_member(client, f"{class_name}$", "MODULE$")
    (method,) = (found for found in instance.getClass().getMethods() if found.getName() == name)
    return java_member(client, "java.lang.invoke.MethodHandles", "publicLookup")().unreflect(method).bindTo(instance)


@functools.lru_cache(maxsize=512)
def _alias(client: Any, name: tuple[str, ...]) -> Any:
    qualifier = java_class(client, "java.util.ArrayList")()
    for part in name[:-1]:
        qualifier.add(part)
    to_seq = java_member(client, _PYTHON_UTILS, "toSeq")
    return java_class(client, "org.apache.spark.sql.catalyst.AliasIdentifier")(name[-1], to_seq(qualifier))
