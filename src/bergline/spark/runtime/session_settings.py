"""A session's settings, changed for a while and put back as they were."""

import contextlib
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

SparkSettings = Mapping[str, str | None]
"""None for a setting that nobody has made."""
LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
LISTED_BY_DRIVER = "1000000"
"""A job that looks at local files takes much longer than looking; on object stores the driver alone would be slow."""


@contextlib.contextmanager
def session_settings(spark: SparkSession, wanted: SparkSettings) -> Iterator[None]:
    """These settings in the block; whoever else may change them meanwhile must be kept out by the caller."""
    before = {key: spark.conf.get(key, None) for key in wanted}
    try:
        put_settings(spark, wanted)
        yield
    finally:
        put_settings(spark, before)


def put_settings(spark: SparkSession, values: SparkSettings) -> None:
    """Make the settings, and unmake those that are None."""
    for key, value in values.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
