"""The table properties that we know, and the validation of their values when someone sets them here.

Values set by other writers are checked only where they are needed.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from bergline.datafiles.write.metrics_mode import COLUMN_MODE, DEFAULT_MODE, MAX_INFERRED, parse_mode
from bergline.datafiles.write.write_spec import check_codec, compression_level
from bergline.errors import FormatError, InvalidInputError, UnsupportedError, near_names
from bergline.format.encoding.integers import MAX_INT, MAX_LONG
from bergline.format.metadata.gzip import CODEC_PROPERTY, metadata_extension
from bergline.format.metadata.properties import FORMAT_VERSION
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from bergline.format.schema.schema import Schema
from bergline.io.locations import is_absolute
from bergline.table.commits.isolation import ROW_LEVEL_COMMANDS, property_isolation
from bergline.table.engine.plans import GRANULARITY, check_granularity
from bergline.table.evolution.maintenance_policy import (
    MAINTENANCE_PROPERTIES,
    PREFIX,
    check_maintenance_property,
)
from bergline.table.operations.delete import check_row_level_mode
from bergline.table.references.published_runs import KEPT_RUNS
from bergline.table.scans.planning_mode import DATA_MODE, DELETE_MODE, check_planning_mode

Check = Callable[[str, str], object]
DISTRIBUTION_MODE: Final = "write.distribution-mode"
DISTRIBUTION_MODES: Final = ("none", "hash", "range")
_LOG = logging.getLogger("bergline.table")
_MISSPELLED = 0.9
"""How similar a name must be to one that we know to count as a typo; properties of other engines are less similar."""
_BOOLEANS = ("true", "false")
_PREFIXES = ("write.", "write.delete.")


def check_properties(
    updates: Mapping[str, str], schema: Schema, *, remove: Iterable[str] = (), base: Mapping[str, str] | None = None
) -> None:
    """InvalidInputError, with the property's name, for values that could not be used; `base` holds what is set.

    A name that is almost one that we know is set anyway, with a warning.
    """
    for key, value in updates.items():
        if key.startswith(COLUMN_MODE):
            _check_column(key, schema)
            _check_mode(key, value)
        elif (check := KNOWN_PROPERTIES.get(key)) is not None:
            check(key, value)
        elif key.startswith(PREFIX):
            check_maintenance_property(key, value)  # which refuses a misspelled name
        elif near := near_names(key, KNOWN_PROPERTIES, _MISSPELLED):
            _LOG.warning("property `%s` is set, but nothing here reads it: did you mean `%s`?", key, near[0])
    gone = frozenset(remove)
    for key in updates:
        if key in gone:
            raise InvalidInputError(f"expected property `{key}` to be set or removed, found both")
    if any(".parquet.compression-" in key for key in updates):
        merged = {k: v for k, v in {**(base or {}), **updates}.items() if k not in gone}
        for prefix in _PREFIXES:
            compression_level(merged, prefix)


def check_distribution_mode(key: str, value: str) -> str:
    """The mode with this name, ignoring case."""
    if value.lower() not in DISTRIBUTION_MODES:
        raise InvalidInputError(f"expected {' or '.join(DISTRIBUTION_MODES)} for property `{key}`, found `{value}`")
    return value.lower()


def _whole(key: str, value: str, *, least: int = 0, most: int = MAX_INT) -> None:
    if not re.fullmatch("[0-9]{1,19}", value) or int(value) < least:
        raise InvalidInputError(f"expected a whole number of {least} or more for property `{key}`, found `{value}`")
    if int(value) > most:
        raise InvalidInputError(f"expected a whole number up to {most} for property `{key}`, found `{value}`")


def _check_boolean(key: str, value: str) -> None:
    if value.lower() not in _BOOLEANS:
        raise InvalidInputError(f"expected true or false for property `{key}`, found `{value}`")


def _check_format(key: str, value: str) -> None:
    if value.lower() != "parquet":
        raise UnsupportedError(f"expected parquet for property `{key}`, found `{value}`: only that is written")


def _check_mode(key: str, value: str) -> None:
    if parse_mode(value) is None:
        raise InvalidInputError(
            f"expected none, counts, full or truncate(n) with n of 1 or more for property `{key}`, found `{value}`"
        )


def _check_column(key: str, schema: Schema) -> None:
    if key.removeprefix(COLUMN_MODE) not in schema.names:
        columns = ", ".join(f"`{name}`" for name in schema.names)
        raise InvalidInputError(f"expected a column of {columns}, found `{key.removeprefix(COLUMN_MODE)}` in `{key}`")


def _check_isolation(key: str, value: str) -> None:
    property_isolation(value, key)


def _check_name_mapping(_key: str, value: str) -> None:
    try:
        parse_name_mapping(value)  # which names the property
    except FormatError as error:
        raise InvalidInputError(str(error)) from error


def _check_location(key: str, value: str) -> None:
    if not is_absolute(value):
        raise InvalidInputError(
            f"expected a location like `s3://bucket/path` or `/path` for property `{key}`, found `{value}`"
        )


def _check_metadata_codec(key: str, value: str) -> None:
    metadata_extension({key: value})


def _parquet(name: str, check: Check) -> dict[str, Check]:
    return {f"{prefix}parquet.{name}": check for prefix in _PREFIXES}


_COUNT: Check = _whole
_SIZE: Check = partial(_whole, least=1)
_LONG_SIZE: Check = partial(_whole, least=1, most=MAX_LONG)
_AGE: Check = partial(_whole, least=1, most=MAX_LONG)

KNOWN_PROPERTIES: dict[str, Check] = {
    FORMAT_VERSION: _COUNT,
    "commit.manifest.target-size-bytes": _LONG_SIZE,
    "commit.manifest.min-count-to-merge": _COUNT,
    "commit.manifest-merge.enabled": _check_boolean,
    "commit.retry.num-retries": _COUNT,
    "commit.retry.min-wait-ms": _COUNT,
    "commit.retry.max-wait-ms": _COUNT,
    "commit.retry.total-timeout-ms": _COUNT,
    "commit.status-check.num-retries": _COUNT,
    "commit.status-check.min-wait-ms": _COUNT,
    "commit.status-check.max-wait-ms": _COUNT,
    KEPT_RUNS: _SIZE,
    **dict.fromkeys(MAINTENANCE_PROPERTIES, check_maintenance_property),
    "gc.enabled": _check_boolean,
    "history.expire.max-snapshot-age-ms": _AGE,
    "history.expire.min-snapshots-to-keep": _SIZE,
    "history.expire.max-ref-age-ms": _AGE,
    NAME_MAPPING_PROPERTY: _check_name_mapping,
    "write.data.path": _check_location,
    "write.metadata.path": _check_location,
    "write.format.default": _check_format,
    "write.delete.format.default": _check_format,
    CODEC_PROPERTY: _check_metadata_codec,
    DEFAULT_MODE: _check_mode,
    MAX_INFERRED: _COUNT,
    "write.metadata.previous-versions-max": _SIZE,
    "write.summary.partition-limit": _COUNT,
    "write.target-file-size-bytes": _LONG_SIZE,
    "write.delete.target-file-size-bytes": _LONG_SIZE,
    "write.wap.enabled": _check_boolean,
    "write.spark.accept-any-schema": _check_boolean,
    "write.spark.fanout.enabled": _check_boolean,
    DISTRIBUTION_MODE: check_distribution_mode,
    GRANULARITY: check_granularity,
    DATA_MODE: check_planning_mode,
    DELETE_MODE: check_planning_mode,
    **{f"write.{command}.mode": check_row_level_mode for command in ROW_LEVEL_COMMANDS},
    **{f"write.{command}.isolation-level": _check_isolation for command in ROW_LEVEL_COMMANDS},
    **{f"write.{command}.distribution-mode": check_distribution_mode for command in ROW_LEVEL_COMMANDS},
    **_parquet("compression-codec", check_codec),
    **_parquet("row-group-size-bytes", _SIZE),
    **_parquet("page-size-bytes", _SIZE),
    **_parquet("dict-size-bytes", _SIZE),
}
