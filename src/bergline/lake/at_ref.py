"""A lake at one of its refs: what `lake.at("staging")` finds, and which tables may join a branch."""

import time
from collections.abc import Callable

from bergline.catalog.at_ref.catalog_at_ref import CatalogAtRef
from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind, parse_time
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.governance.governance import governance_of
from bergline.governance.lake_branches.model import LakeBranches
from bergline.table.table_selection import refs_of_tables

_KEPT = "bergline branch create"


def catalog_at(catalog: Catalog, name: str) -> Catalog:
    """The catalog at a branch or tag of the lake, or at a time; at `main` it is the catalog itself."""
    if isinstance(catalog, CatalogAtRef):
        catalog = catalog.inner
    ref = find_lake_ref(catalog, name)
    return catalog if ref is None else CatalogAtRef(catalog, ref, joining(catalog, ref))


def find_lake_ref(catalog: Catalog, name: str) -> LakeRef | None:
    """What a name means for the whole lake, None for `main`: a time, a branch of the lake, or a ref that tables have.

    A name that is a branch in any table is a branch; it is read only where it is a tag.
    """
    moment = parse_time(name)
    if moment is not None:
        if moment.time_ms > time.time() * 1000:
            raise InvalidInputError(f"expected a time that has passed, found {moment}")
        return moment
    check_ref_name(name)
    if name == MAIN:
        return None
    kept = governance_of(catalog).lake_branches
    if kept is not None and kept.find(name) is not None:
        return LakeRef(LakeRefKind.BRANCH, name)
    is_tag, known = False, set() if kept is None else {branch.name for branch in kept.all()}
    for _, refs in refs_of_tables(catalog):
        known.update(refs)
        if name in refs:
            if refs[name].is_branch:
                return LakeRef(LakeRefKind.BRANCH, name)
            is_tag = True
    if is_tag:
        return LakeRef(LakeRefKind.TAG, name)
    raise NotFoundError(
        f"no branch or tag `{name}` of the lake, and no table that has one",
        kind="ref",
        name=name,
        known=known,
        hints=[f"create a branch of the lake: `{_KEPT} {name}`"],
    )


def joining(catalog: Catalog, ref: LakeRef) -> Callable[[TableName], None]:
    """What is asked before a table joins a branch of the lake."""

    def check(table: TableName) -> None:
        kept = governance_of(catalog).lake_branches
        if kept is not None:
            check_joins(kept, ref, table)

    return check


def check_joins(kept: LakeBranches, ref: LakeRef, table: TableName) -> None:
    """Refuse a table that does not have a branch yet and may not join it."""
    branch = kept.find(ref.name)
    if branch is None:
        raise NotFoundError(
            f"cannot create {ref} of `{table}`: the lake has no such branch, or it was dropped",
            kind="ref",
            name=ref.name,
            known=[one.name for one in kept.all()],
            hints=[f"create it first: `{_KEPT} {ref.name}`"],
        )
    if branch.is_expired(time.time_ns() // 1_000_000):
        raise RefusedError(
            f"cannot write `{table}` at {ref}: the branch has expired, and takes no more tables",
            hints=["publish what it has, and create it anew"],
        )
    if not branch.takes(table):
        raise RefusedError(
            f"cannot write `{table}` at {ref}: the branch is of {', '.join(f'`{p}`' for p in branch.tables)}",
            hints=["drop the branch and create it for more tables, or write to the table's own branch"],
        )
