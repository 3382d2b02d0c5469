from pyspark.sql import DataFrame

from bergline.spark.backends.connect.backend import ConnectBackend
from bergline.spark.backends.connect.classes import connect_classes


def test_classes_are_those_of_spark_connect() -> None:
    classes = connect_classes()
    assert {".".join(kind.__module__.split(".")[:3]) for kind in classes} == {"pyspark.sql.connect"}
    assert issubclass(classes.frame, DataFrame)
    assert ConnectBackend(None).patched_classes == tuple(
        kind for kind in classes if kind not in {classes.plan, classes.formatter}
    )
