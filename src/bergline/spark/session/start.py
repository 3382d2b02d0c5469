"""`session`: a Spark session with its lakes, from configuration or from arguments."""

import os
from collections.abc import Mapping

from pyspark import SparkContext
from pyspark.sql import SparkSession

from bergline.arguments import check_text, check_texts, shown
from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake.lake import DEFAULT_NAME
from bergline.spark.backends.choose import session_backend
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.session.attach import attach_lakes
from bergline.spark.session.builder_hook import attached_by_caller
from bergline.spark.session.configured_lakes import PREFIX, ConfiguredLakes, LakeSettings, read_lakes

_PARTITIONS = "spark.sql.shuffle.partitions"


def session(
    name: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session with lakes attached: the active one, or a new one.

    Its lakes are those of its configuration, `spark.bergline.<name>.uri`; without any, the embedded lake in `./lake`.

    Args:
        name: the default lake among those of the configuration; with a `uri`, the name that this one is attached as.
        uri: one more lake, which is the default then, as `bergline.connect` takes it, with `warehouse` and
            `properties`.
        warehouse: as of `bergline.connect`.
        properties: as of `bergline.connect`.
        config: settings of Spark, such as `spark.driver.memory`; an active session takes those that can be changed.
    """
    given = _given_lake(name, uri, warehouse, properties)
    settings = check_texts({} if config is None else config, "setting of Spark")
    is_new = SparkContext._active_spark_context is None  # noqa: SLF001  (nothing public tells for all threads)
    with attached_by_caller():
        spark = SparkSession.builder.config(map={**settings}).getOrCreate()
    backend = session_backend(spark)
    attach_lakes(spark, _chosen_lakes(backend, name, given))
    if is_new and backend.has_local_executors and not backend.settings_under(_PARTITIONS):
        # two hundred tasks for each join take longer than the join of what one machine has
        spark.conf.set(_PARTITIONS, str(backend.task_slots))
    return spark


def _given_lake(
    name: str | None,
    uri: str | None,
    warehouse: str | os.PathLike[str] | None,
    properties: Mapping[str, str] | None,
) -> LakeSettings | None:
    if name is not None and not check_text(name, "text for the name of the lake"):
        raise InvalidInputError("expected a name for the lake, found empty text")
    if warehouse is not None and not isinstance(warehouse, str | os.PathLike):
        raise InvalidInputError(f"expected a directory as the warehouse, found {shown(warehouse)}")
    pairs = tuple(sorted(check_texts({} if properties is None else properties, "property").items()))
    if uri is None:
        if warehouse is not None or pairs:
            raise InvalidInputError("expected `uri` beside `warehouse` and `properties`, found none")
        return None
    check_text(uri, "a catalog like `sqlite:///path/catalog.db`")
    return LakeSettings(uri, None if warehouse is None else os.fspath(warehouse), properties=pairs)


def _chosen_lakes(backend: SparkBackend, name: str | None, given: LakeSettings | None) -> ConfiguredLakes:
    found = read_lakes(backend.settings_under(PREFIX), name)
    lakes = {} if found is None else dict(found.lakes)
    if given is not None:
        taken = name or DEFAULT_NAME
        if lakes.get(taken, given) != given:
            raise InvalidInputError(
                f"expected a free name for the lake, found `{PREFIX}{taken}.uri` in the session's configuration",
                hints=["give this one another name"],
            )
        return ConfiguredLakes({**lakes, taken: given}, taken)
    if found is None:
        return ConfiguredLakes({name or DEFAULT_NAME: LakeSettings(None)}, name or DEFAULT_NAME)
    if name is not None and name not in lakes:
        raise NotFoundError(
            f"no lake `{name}` in the session's configuration: no `{PREFIX}{name}.uri`",
            kind="lake",
            name=name,
            known=lakes,
        )
    return found
