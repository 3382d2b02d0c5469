"""The functions whose result may be another each time are those that Spark says are."""

from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bergline.spark.query_text.deterministic import random_calls
from bergline.sql.text.tokens import SqlText


def test_every_random_function_of_spark_is_known(spark: SparkSession) -> None:
    random = sorted(random_functions(spark))
    assert {"rand", "uuid", "reflect"} <= set(random)
    calls = random_calls(SqlText(" + ".join(f"`{name}`()" for name in random)))
    assert [call.value for call in calls] == random


def random_functions(spark: SparkSession) -> Iterator[str]:
    """Those whose class says for itself whether it is deterministic: what does is not."""
    java, gateway = spark._jvm.java.lang, spark.sparkContext._gateway
    loader = java.Thread.currentThread().getContextClassLoader()
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction()
    for place in range(names.size()):
        name = names.apply(place)
        made_by = java.Class.forName(registry.lookupFunction(name).get().getClassName(), False, loader)
        try:
            method = made_by.getMethod("deterministic", gateway.new_array(java.Class, 0))
        except Py4JJavaError:  # a class that makes expressions, and is none
            continue
        if method.getDeclaringClass().getSimpleName() != "Expression":
            yield str(name.funcName())
