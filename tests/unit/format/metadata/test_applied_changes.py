"""Every change without a snapshot, and every other one after it or instead of it."""

from itertools import pairwise
from typing import get_args

import msgspec
import pytest

from bergline.errors import BerglineError
from bergline.format.metadata.applied_changes import may_be_step
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.requirements import AssertRefSnapshotId
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot, AssignUuid, RemoveSnapshotRef, SetProperties, Update
from support.models.metadata_changes import METADATA_CHANGES, busy_table

BASE = busy_table("file:///lake/orders")
CHANGES = {kind: make(BASE) for kind, make in METADATA_CHANGES.items() if kind != "drop that tag"}


def after(metadata: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=None, now_ms=metadata.last_updated_ms)


def content(metadata: TableMetadata) -> TableMetadata:
    return msgspec.structs.replace(metadata, snapshot_log=(), metadata_log=())


def test_there_is_a_change_of_every_kind() -> None:
    used = {type(update) for updates in CHANGES.values() for update in updates}
    assert used == {*get_args(Update)} - {AddSnapshot, AssignUuid}


@pytest.mark.parametrize("kind", CHANGES)
def test_change_is_found_among_the_steps_whatever_others_do_before_and_after_it(kind: str) -> None:
    found = 0
    for other, make in METADATA_CHANGES.items():
        for order in ((kind, other), (other, kind)):
            line = [BASE]
            try:
                for name in order:
                    updates = CHANGES[kind] if name == kind else make(line[-1])
                    line.append(after(line[-1], *updates))
            except (BerglineError, LookupError):
                continue
            found += 1
            assert any(may_be_step(old, new, (), CHANGES[kind]) for old, new in pairwise(line)), order
    assert found > len(METADATA_CHANGES)


@pytest.mark.parametrize("kind", CHANGES)
def test_change_is_no_step_that_leads_elsewhere(kind: str) -> None:
    """A step that is not ours fits only if ours would have changed nothing, before it or after it."""
    fitting = {k for k, updates in CHANGES.items() if may_be_step(BASE, after(BASE, *updates), (), CHANGES[kind])}
    assert kind in fitting
    if content(after(BASE, *CHANGES[kind])) == content(BASE):
        return
    assert len(fitting) <= 2
    for other in fitting:
        now = after(BASE, *CHANGES[other])
        assert content(after(now, *CHANGES[kind])) == content(now), other


def test_step_from_where_the_requirements_do_not_hold_is_none() -> None:
    required = AssertRefSnapshotId("dev", BASE.refs["dev"].snapshot_id)
    drop = (RemoveSnapshotRef("dev"),)
    now = after(BASE, *drop)
    assert may_be_step(BASE, now, (required,), drop)
    assert not may_be_step(now, now, (required,), drop)


def test_what_a_server_adds_to_a_change_does_not_hide_it() -> None:
    change = (SetProperties({"a": "1"}),)
    assert may_be_step(BASE, after(BASE, *change, SetProperties({"server": "x"})), (), change)


def test_layouts_are_known_by_their_content_and_not_by_the_ids_that_a_server_gave_them() -> None:
    change = CHANGES["add a column"]
    now = after(BASE, *change)
    renumbered = msgspec.structs.replace(
        now,
        schemas=(*now.schemas[:-1], msgspec.structs.replace(now.schemas[-1], schema_id=17)),
        current_schema_id=17,
    )
    assert may_be_step(BASE, renumbered, (), change)
    assert not may_be_step(BASE, after(BASE, *CHANGES["add another column"]), (), change)
