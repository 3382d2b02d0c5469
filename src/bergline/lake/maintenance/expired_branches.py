"""Branches of the lake whose time is over, which maintenance drops in all their tables."""

from collections import defaultdict

from bergline.catalog.at_ref.catalog_at_ref import CatalogAtRef
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError
from bergline.governance.governance import governance_of
from bergline.lake.branches import BranchesOfLake
from bergline.lake.handle import LakeHandle
from bergline.lake.maintenance.report import MaintenanceStep, StepReport, StepStatus, failed_step
from bergline.table.table_selection import find_tables

_REASON = "the branch of the lake has expired"


def drop_expired_branches(lake: LakeHandle, *, plan: bool) -> dict[TableName, list[StepReport]]:
    """Drop them, or plan to; a step of each table that has one. One that cannot be dropped stays, and is reported."""
    found: dict[TableName, list[StepReport]] = defaultdict(list)
    kept = None if isinstance(lake.catalog, CatalogAtRef) else governance_of(lake.catalog).lake_branches
    for branch in () if kept is None else kept.all():
        if not branch.is_expired(lake.timing.clock_ms()):
            continue
        tables = tuple(find_tables(lake.catalog, branch.name))
        step = StepReport(MaintenanceStep.EXPIRY, StepStatus.PLANNED if plan else StepStatus.DONE, _REASON, branch.name)
        if not plan:
            try:
                BranchesOfLake(lake).drop(branch.name)
            except BerglineError as error:
                step = failed_step(MaintenanceStep.EXPIRY, error, branch.name)
        for table in tables:
            found[table].append(step)
    return found
