"""Sessions with lakes, and what their methods do. Called as `bergline.spark.session()`, the package starts one."""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _SessionPackage(ModuleType):
    @property
    def __wrapped__(self) -> Any:
        return importlib.import_module(f"{self.__name__}.start").session

    def __call__(self, *args: Any, **kwargs: Any) -> "SparkSession":
        started: SparkSession = self.__wrapped__(*args, **kwargs)
        return started


sys.modules[__name__].__class__ = _SessionPackage
