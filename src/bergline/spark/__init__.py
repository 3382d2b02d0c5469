"""Iceberg tables in plain PySpark: `attach` a lake to a session. The only package that imports pyspark."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bergline.spark.merge.engine import row_engine
    from bergline.spark.pipeline.pipeline import Pipeline
    from bergline.spark.reads.explain import explain_read
    from bergline.spark.reads.scan import read
    from bergline.spark.session.attach import attach, detach
    from bergline.spark.session.start import session

__all__ = ["Pipeline", "attach", "detach", "explain_read", "read", "row_engine", "session"]

# found when asked for: tasks on executors import a few modules of the package, and need not wait for the rest
_MODULES = {
    "Pipeline": "pipeline.pipeline",
    "attach": "session.attach",
    "detach": "session.attach",
    "explain_read": "reads.explain",
    "read": "reads.scan",
    "row_engine": "merge.engine",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "session":  # the package of that name, which is called like a function
        return importlib.import_module(f"{__name__}.session")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
