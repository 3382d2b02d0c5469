"""The policy of maintenance: fields and properties say the same, and what is not understood is an error."""

from typing import Any

import msgspec
import pytest

from bergline import MaintenancePolicy, Table
from bergline.errors import InvalidInputError
from bergline.table.evolution.maintenance_policy import DAY_MS, MAINTENANCE_PROPERTIES, PREFIX, policy_of

PROPERTIES = {
    "enabled": ("False", {"enabled": False}),
    "branches": ("main, audit_*", {"branches": ("main", "audit_*")}),
    "compaction.enabled": ("false", {"compaction": False}),
    "compaction.strategy": ("Sort", {"compaction_strategy": "sort"}),
    "compaction.sort-order": ("region, id desc", {"compaction_sort_order": "region, id desc"}),
    "compaction.delete-ratio-threshold": ("0.5", {"compaction_delete_ratio_threshold": 0.5}),
    "compaction.delete-file-threshold": ("3", {"compaction_delete_file_threshold": 3}),
    "compaction.min-input-files": ("7", {"compaction_min_input_files": 7}),
    "compaction.target-file-size-bytes": ("1000", {"compaction_target_file_size_bytes": 1000}),
    "manifests.enabled": ("false", {"manifests": False}),
    "manifests.min-count": ("2", {"manifests_min_count": 2}),
    "expiry.enabled": ("false", {"expiry": False}),
    "expiry.clean-metadata": ("true", {"expiry_clean_metadata": True}),
    "orphans.enabled": ("false", {"orphans": False}),
    "orphans.older-than-ms": (str(DAY_MS), {"orphans_older_than_ms": DAY_MS}),
    "time-budget-ms": ("5000", {"time_budget_ms": 5000}),
}


def test_every_property_is_tried_here() -> None:
    assert {f"{PREFIX}{name}" for name in PROPERTIES} == set(MAINTENANCE_PROPERTIES)


def test_every_field_is_a_property() -> None:
    fields = {f.name for f in msgspec.structs.fields(MaintenancePolicy)}
    assert fields == {
        *(field for _, values in PROPERTIES.values() for field in values),
        "max_snapshot_age_ms",
        "min_snapshots_to_keep",
    }


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_sets_its_field(name: str) -> None:
    text, values = PROPERTIES[name]
    assert MaintenancePolicy().overridden_by({f"{PREFIX}{name}": text}) == MaintenancePolicy(**values)
    assert policy_of({name: text}) == policy_of({f"{PREFIX}{name}": text}) == MaintenancePolicy(**values)


def test_retention_of_a_table_comes_first() -> None:
    policy = MaintenancePolicy(max_snapshot_age_ms=1, min_snapshots_to_keep=2)
    own = {"history.expire.max-snapshot-age-ms": "9", "history.expire.min-snapshots-to-keep": "8", "owner": "ann"}
    assert policy.overridden_by(own) == MaintenancePolicy(max_snapshot_age_ms=9, min_snapshots_to_keep=8)


BAD = {
    "enabled": "yes",
    "branches": "main,,b",
    "compaction.strategy": "magic",
    "compaction.sort-order": " ",
    "compaction.min-input-files": "0",
    "compaction.delete-ratio-threshold": "1.1",
    "compaction.delete-file-threshold": "none",
    "compaction.target-file-size-bytes": "512MB",
    "manifests.min-count": "1",
    "orphans.older-than-ms": str(DAY_MS - 1),
    "time-budget-ms": "-1",
    "expiry.clean-metadata": "",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_value_is_refused_when_it_is_set_and_when_it_is_used(orders: Table, name: str) -> None:
    key = f"{PREFIX}{name}"
    with pytest.raises(InvalidInputError, match=f"^expected .* for property `{key}`, found `{BAD[name]}`$"):
        orders.set_properties({key: BAD[name]})
    assert key not in orders.refresh().properties
    with pytest.raises(InvalidInputError, match=f"for property `{key}`, found `{BAD[name]}` of namespace `db`$"):
        MaintenancePolicy().overridden_by({key: BAD[name]}, place=" of namespace `db`")


def test_misspelled_property_is_refused(orders: Table) -> None:
    key = f"{PREFIX}orphan.enabled"
    with pytest.raises(InvalidInputError, match=f"found `{key}`") as raised:
        orders.set_properties({key: "false"})
    assert raised.value.hints == (f"did you mean `{PREFIX}orphans.enabled`?",)
    with pytest.raises(InvalidInputError, match=f"found `{PREFIX}nonsense`") as raised:
        policy_of({"nonsense": "1"})
    assert f"{PREFIX}branches" in raised.value.hints[0]


FIELDS: list[dict[str, Any]] = [
    {"enabled": "true"},
    {"branches": "main"},
    {"branches": ()},
    {"compaction_strategy": "magic"},
    {"compaction_min_input_files": True},
    {"compaction_sort_order": ["id"]},
    {"compaction_delete_ratio_threshold": 0},
    {"compaction_delete_ratio_threshold": "0.5"},
    {"compaction_delete_file_threshold": None},
    {"compaction_min_input_files": None},
    {"compaction_target_file_size_bytes": 0},
    {"manifests_min_count": 1},
    {"orphans_older_than_ms": -1},
    {"max_snapshot_age_ms": 2**63},
    {"min_snapshots_to_keep": 1.5},
    {"time_budget_ms": 0},
]


@pytest.mark.parametrize("fields", FIELDS, ids=repr)
def test_bad_field_is_refused(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(InvalidInputError, match=f"^expected .* for `{name}`, found"):
        MaintenancePolicy(**fields)
