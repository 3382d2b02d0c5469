"""Successive changes to one table combined into one: all updates, and the requirements on the base."""

from collections.abc import Hashable, Iterable

from bergline.format.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    Requirement,
)
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
)
from bergline.table.commits.operation import Change

_ASSERTED_BY: dict[type[Update], type[Requirement]] = {
    AddSchema: AssertLastAssignedFieldId,
    SetCurrentSchema: AssertCurrentSchemaId,
    AddPartitionSpec: AssertLastAssignedPartitionId,
    SetDefaultSpec: AssertDefaultSpecId,
    SetDefaultSortOrder: AssertDefaultSortOrderId,
}


def combine_changes(changes: Iterable[Change]) -> Change:
    """One change of several; requirements that are about the result of earlier changes are left out."""
    updates: list[Update] = []
    requirements: dict[Hashable, Requirement] = {}
    changed: set[Hashable] = set()
    for change in changes:
        for requirement in change.requirements:
            subject = _subject(requirement)
            if subject not in changed:
                requirements.setdefault(subject, requirement)
        updates += change.updates
        changed |= {_changed_by(update) for update in change.updates}
    return Change(tuple(updates), tuple(requirements.values())) if updates else Change()


def _subject(requirement: Requirement) -> Hashable:
    """What a requirement is about: a ref, or the one thing of its kind."""
    return (AssertRefSnapshotId, requirement.ref) if isinstance(requirement, AssertRefSnapshotId) else type(requirement)


def _changed_by(update: Update) -> Hashable:
    """What an update changes, as `_subject` names it; None if no requirement can be about it."""
    if isinstance(update, SetSnapshotRef | RemoveSnapshotRef):
        return AssertRefSnapshotId, update.ref_name
    return _ASSERTED_BY.get(type(update))
