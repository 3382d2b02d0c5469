"""How a table is maintained: a value in Python, or table and namespace properties that begin with `bergline.maintain.`.

Properties override the value that the caller gives. An unknown name or invalid value is an error, because a setting
that was meant to forbid something must not be ignored.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError, near_names
from bergline.format.encoding.integers import MAX_INT, MAX_LONG
from bergline.table.expiry.retention import MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS_TO_KEEP

PREFIX: Final = "bergline.maintain."
DAY_MS: Final = 24 * 60 * 60 * 1000
STRATEGIES: Final = ("binpack", "sort")
_WHOLE = re.compile("-?[0-9]{1,19}")
_DECIMAL = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10})?")
_BOOLEANS = {"true": True, "false": False}


class MaintenancePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What maintenance does to a table, and when; every field is a table property too."""

    enabled: bool = True
    branches: tuple[str, ...] = ("main",)
    """Names or patterns such as `*` of the branches whose data files and manifests are rewritten."""
    compaction: bool = True
    compaction_strategy: str = "binpack"
    compaction_sort_order: str | None = None
    """Such as `region, id desc` or `zorder(id, amount)`, for the strategy sort; None for the table's own."""
    compaction_min_input_files: int = 5
    compaction_target_file_size_bytes: int | None = None
    """None for `write.target-file-size-bytes`."""
    compaction_delete_ratio_threshold: float = 0.3
    """A data file is rewritten if this share of its rows is deleted."""
    compaction_delete_file_threshold: int = 10
    """A data file is rewritten if this many delete files apply to it."""
    manifests: bool = True
    manifests_min_count: int = 20
    """Manifests are rewritten if there are this many of one kind, and at most half as many afterwards."""
    expiry: bool = True
    expiry_clean_metadata: bool = False
    """Whether partition specs and schemas that nothing uses are removed."""
    max_snapshot_age_ms: int | None = None
    """`history.expire.max-snapshot-age-ms` for tables that do not set it."""
    min_snapshots_to_keep: int | None = None
    """`history.expire.min-snapshots-to-keep` for tables that do not set it."""
    orphans: bool = True
    orphans_older_than_ms: int = 3 * DAY_MS
    time_budget_ms: int | None = None
    """No step on a table begins later than this after its first one; None for no limit."""

    def __post_init__(self) -> None:
        for field, setting in _FIELDS.items():
            value = getattr(self, field)
            if not setting.fits(value) and not (value is None and field in _MAY_BE_NONE):
                raise InvalidInputError(f"expected {setting.expected} for `{field}`, found {shown(value)}")

    def overridden_by(self, properties: Mapping[str, str], *, place: str = "") -> "MaintenancePolicy":
        """The policy overridden by properties of a table or namespace; `place` is for errors."""
        changes = {}
        for key, text in properties.items():
            if key.startswith(PREFIX) or key in _SETTINGS:
                field, value = parse_property(key, text, place=place)
                changes[field] = value
        return msgspec.structs.replace(self, **changes) if changes else self


class _Setting(msgspec.Struct, frozen=True):
    """A property: how to parse its text, and which values are valid."""

    field: str
    expected: str
    read: Callable[[str], Any]
    fits: Callable[[Any], bool]
    least_in_properties: int | None = None
    """A stricter limit for properties: dangerous values are accepted only in the call."""


def parse_property(key: str, text: str, *, place: str = "") -> tuple[str, Any]:
    """The field of the policy that a property sets, and its value."""
    setting = _SETTINGS.get(key)
    if setting is None:
        near = near_names(key.removeprefix(PREFIX), _OWN)
        raise InvalidInputError(
            f"expected a maintenance property, found `{key}`{place}",
            hints=[f"did you mean `{PREFIX}{near[0]}`?" if near else f"there are {', '.join(MAINTENANCE_PROPERTIES)}"],
        )
    value = setting.read(text)
    least = setting.least_in_properties
    if not setting.fits(value) or (least is not None and value < least):
        expected = setting.expected if least is None else f"a whole number of {least} or more"
        raise InvalidInputError(f"expected {expected} for property `{key}`, found `{text}`{place}")
    return setting.field, value


def policy_of(settings: Mapping[str, str]) -> MaintenancePolicy:
    """The policy from settings: properties whose names may omit `bergline.maintain.`."""
    whole = {key if key in _SETTINGS or key.startswith(PREFIX) else PREFIX + key: v for key, v in settings.items()}
    return MaintenancePolicy().overridden_by(whole)


def check_maintenance_property(key: str, text: str) -> None:
    """InvalidInputError for a property that could not be used."""
    parse_property(key, text)


def _boolean(field: str) -> _Setting:
    return _Setting(field, "true or false", lambda text: _BOOLEANS.get(text.lower()), lambda v: isinstance(v, bool))


def _whole(field: str, *, least: int = 1, most: int = MAX_LONG, least_in_properties: int | None = None) -> _Setting:
    return _Setting(
        field,
        f"a whole number of {least} or more",
        lambda text: int(text) if _WHOLE.fullmatch(text) else math.nan,
        lambda v: type(v) is int and least <= v <= most,
        least_in_properties,
    )


def _names(field: str) -> _Setting:
    def fits(value: Any) -> bool:
        return isinstance(value, tuple) and bool(value) and all(isinstance(v, str) and v for v in value)

    return _Setting(
        field,
        "names or patterns, separated by commas in a property",
        lambda text: tuple(name.strip() for name in text.split(",")),
        fits,
    )


def _ratio(field: str) -> _Setting:
    def read(text: str) -> float:
        return float(text) if _DECIMAL.fullmatch(text) else math.nan

    return _Setting(field, "a number above 0 up to 1", read, lambda v: type(v) in {int, float} and 0 < v <= 1)


def _text(field: str) -> _Setting:
    return _Setting(field, "text", str.strip, lambda v: isinstance(v, str) and bool(v))


def _choice(field: str, choices: tuple[str, ...]) -> _Setting:
    return _Setting(field, " or ".join(choices), str.lower, lambda v: v in choices)


_OWN = {
    "enabled": _boolean("enabled"),
    "branches": _names("branches"),
    "compaction.enabled": _boolean("compaction"),
    "compaction.strategy": _choice("compaction_strategy", STRATEGIES),
    "compaction.sort-order": _text("compaction_sort_order"),
    "compaction.min-input-files": _whole("compaction_min_input_files", most=MAX_INT),
    "compaction.target-file-size-bytes": _whole("compaction_target_file_size_bytes"),
    "compaction.delete-ratio-threshold": _ratio("compaction_delete_ratio_threshold"),
    "compaction.delete-file-threshold": _whole("compaction_delete_file_threshold", most=MAX_INT),
    "manifests.enabled": _boolean("manifests"),
    "manifests.min-count": _whole("manifests_min_count", least=2, most=MAX_INT),
    "expiry.enabled": _boolean("expiry"),
    "expiry.clean-metadata": _boolean("expiry_clean_metadata"),
    "orphans.enabled": _boolean("orphans"),
    "orphans.older-than-ms": _whole("orphans_older_than_ms", least=0, least_in_properties=DAY_MS),
    "time-budget-ms": _whole("time_budget_ms"),
}
_SETTINGS: Final = {
    **{f"{PREFIX}{name}": setting for name, setting in _OWN.items()},
    MAX_SNAPSHOT_AGE: _whole("max_snapshot_age_ms"),
    MIN_SNAPSHOTS_TO_KEEP: _whole("min_snapshots_to_keep", most=MAX_INT),
}
_FIELDS: Final = {setting.field: setting for setting in _SETTINGS.values()}
_MAY_BE_NONE: Final = frozenset(
    {
        "compaction_sort_order",
        "compaction_target_file_size_bytes",
        "max_snapshot_age_ms",
        "min_snapshots_to_keep",
        "time_budget_ms",
    }
)
MAINTENANCE_PROPERTIES: Final = tuple(key for key in _SETTINGS if key.startswith(PREFIX))
"""The properties of maintenance alone."""
