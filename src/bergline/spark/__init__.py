"""Iceberg tables in plain PySpark: `attach` a lake to a session. The only package that imports pyspark."""

from bergline.spark.attach import attach, detach
from bergline.spark.explain import explain_read
from bergline.spark.pipeline import Pipeline
from bergline.spark.read import read

__all__ = ["Pipeline", "attach", "detach", "explain_read", "read"]
