"""`lake.branches`: branches of the whole lake, which its catalog keeps; tables join one by their first commit to it."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bergline.arguments import check_list, check_positive, counted, parse_duration
from bergline.catalog.at_ref.catalog_at_ref import CatalogAtRef
from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError, RefusedError, UnsupportedError
from bergline.format.metadata.refs import CREATED_ON, MAIN, check_ref_name
from bergline.governance.governance import governance_of
from bergline.governance.lake_branches.model import LakeBranch, LakeBranches, NewLakeBranch, missing_lake_branch
from bergline.lake.handle import LakeHandle
from bergline.lake.ref_report import RefReport, TableRefChange
from bergline.lake.references import drop_refs, publish
from bergline.sizes import render_size
from bergline.table.expiry.pinned import pinned_bytes
from bergline.table.orphans.catalog_tables import load_listed
from bergline.table.references.diff import diff_refs
from bergline.table.references.publish import PublishRequest
from bergline.table.table_selection import find_tables, refs_of_tables


class BranchTable(msgspec.Struct, frozen=True):
    """How one table differs on a branch of the lake; rows are those of data files, as `table.refs.diff` counts them."""

    table: str
    ahead: int
    """Snapshots that only the branch has."""
    behind: int
    """Snapshots that only the other has."""
    added_rows: int
    removed_rows: int
    pinned_bytes: int
    """Of files that only this branch keeps."""

    def __str__(self) -> str:
        rows = f"+{self.added_rows:,} and -{self.removed_rows:,} rows"
        pinned = f"{render_size(self.pinned_bytes)} pinned"
        return f"{self.table}: {counted(self.ahead, 'snapshot')} ahead, {self.behind:,} behind, {rows}, {pinned}"


class BranchOverview(msgspec.Struct, frozen=True):
    """A branch of the lake, the tables that have joined it, and the bytes that only it keeps."""

    branch: LakeBranch
    tables: tuple[str, ...]
    pinned_bytes: int


class BranchesOfLake:
    """Branches of the whole lake, or of the tables that patterns match.

    They cost nothing until a table is written: `lake.at("staging")` sees tables without the branch as they are on
    `main`, and the first commit to one creates its branch.
    """

    def __init__(self, lake: LakeHandle) -> None:
        catalog = lake.catalog.inner if isinstance(lake.catalog, CatalogAtRef) else lake.catalog
        kept = governance_of(catalog).lake_branches
        if kept is None:
            raise UnsupportedError(
                "expected a catalog in SQLite or PostgreSQL, or behind `bergline serve`, which keeps branches of the "
                "lake, found another",
                hints=["tables of any catalog have branches: `lake.branch` creates one of several tables"],
            )
        self._lake = LakeHandle(catalog, lake.timing)
        self._kept: LakeBranches = kept

    def create(self, name: str, *, tables: Iterable[str] = (), expires: str | int | None = None) -> LakeBranch:
        """Create a branch of all tables, or of those that patterns such as `sales.*` match.

        It `expires` after a time such as `7d`, `12h` or `30m`, or after so many milliseconds: then no table joins it
        any more, and `bergline.maintain` drops it.
        """
        check_ref_name(name)
        expires_ms = None if expires is None else self._lake.timing.clock_ms() + _milliseconds(expires)
        return self._kept.create(NewLakeBranch(name, check_list(tables, "table pattern"), expires_ms))

    def list(self) -> list[LakeBranch]:
        """All branches of the lake, by name."""
        return self._kept.all()

    def get(self, name: str) -> LakeBranch:
        """A branch of the lake."""
        check_ref_name(name)
        found = self._kept.find(name)
        if found is None:
            raise missing_lake_branch(name, self._kept)
        return found

    def overviews(self) -> Sequence[BranchOverview]:
        """All branches of the lake, with their tables and what they pin; tables are looked through once."""
        branches = self._kept.all()
        names, tables = {branch.name for branch in branches}, defaultdict[str, list[TableName]](list)
        for table, refs in refs_of_tables(self._lake.catalog) if names else ():
            for name in names & refs.keys():
                tables[name].append(table)
        return [
            BranchOverview(one, tuple(map(str, found)), sum(self._pinned(table, one.name) for table in found))
            for one in branches
            for found in (sorted(tables[one.name], key=str),)
        ]

    def diff(self, name: str, *, to: str = MAIN) -> Iterator[BranchTable]:
        """How each table that has joined a branch differs from `main`, or from another ref, table by table."""
        self.get(name)
        check_ref_name(to)
        return self._differences(name, to)

    def publish(
        self,
        name: str,
        *,
        into: str = MAIN,
        merge: bool = False,
        squash: bool = False,
        keep_branch: bool = False,
        tag: str | None = None,
    ) -> RefReport:
        """Publish all tables that have joined a branch in one step, as `lake.publish` does, and drop the branch."""
        if keep_branch:
            self.get(name)
        else:
            self._kept.check_may_drop(name)
        request = PublishRequest(name, into, merge or squash, squash, keep_branch, tag)
        tables = self._tables(name)
        self._check_created(name, into, tables)
        report = publish(self._lake, request, tables) if tables else RefReport(f"published `{name}`", into, ())
        if not keep_branch and not self._created(name):  # the branch stays with tables that were created meanwhile
            self._kept.remove(name)
        return report

    def drop(self, name: str) -> RefReport:
        """Drop a branch in all its tables in one step, with the tables that are on it alone, and forget it.

        Its snapshots stay until expiry.
        """
        self._kept.check_may_drop(name)
        own = self._created(name)
        tables = [table for table in self._tables(name) if table not in own]
        report = RefReport(f"dropped `{name}`", name, ())
        if tables:
            report = drop_refs(self._lake, name, tables, None, if_exists=True)
        self._drop_created(name, own)
        self._kept.remove(name)
        late = self._created(name)  # from now on, who creates one finds that the branch is gone
        if late and self._kept.find(name) is None:
            self._drop_created(name, late)
            own |= late
        dropped = [TableRefChange(str(table), "dropped", head, None) for table, head in own.items()]
        return msgspec.structs.replace(report, tables=(*report.tables, *dropped))

    def _drop_created(self, name: str, tables: Iterable[TableName]) -> None:
        at_branch = CatalogAtRef(self._lake.catalog, LakeRef(LakeRefKind.BRANCH, name), lambda _: None)
        for table in tables:
            with contextlib.suppress(NotFoundError):  # dropped meanwhile
                at_branch.drop_table(table)

    def _created(self, name: str) -> dict[TableName, int | None]:
        """The tables that were created on a branch and are on it alone, with their heads."""
        catalog, found = self._lake.catalog, dict[TableName, int | None]()
        for namespace in catalog.list_namespaces():
            for table in catalog.list_branch_tables(namespace):
                loaded = load_listed(catalog, table)
                if loaded is not None and loaded.metadata.properties.get(CREATED_ON) == name:
                    head = loaded.metadata.refs.get(name)
                    found[table] = None if head is None else head.snapshot_id
        return found

    def _check_created(self, name: str, into: str, tables: tuple[TableName, ...]) -> None:
        created = self._created(name)
        if created and into != MAIN:
            raise RefusedError(
                f"cannot publish `{name}` into `{into}`: table `{next(iter(created))}` was created on `{name}`",
                hints=["publish into `main`, or drop the table"],
            )
        empty = [table for table in created if table not in tables]
        if empty:
            raise RefusedError(
                f"cannot publish `{name}`: table `{empty[0]}` was created on it and is empty",
                hints=[f"write to it, or drop it, at the branch: `lake.at({name!r})`"],
            )

    def _tables(self, name: str) -> tuple[TableName, ...]:
        return tuple(find_tables(self._lake.catalog, name))

    def _differences(self, name: str, to: str) -> Iterator[BranchTable]:
        catalog = self._lake.catalog
        for table in self._tables(name):
            loaded = load_listed(catalog, table)
            if loaded is None or name not in loaded.metadata.refs:  # dropped meanwhile
                continue
            metadata = loaded.metadata
            pinned = pinned_bytes(catalog.io, metadata, name)
            if to not in metadata.refs:
                own = list(metadata.ancestors(metadata.ref(name).snapshot_id))
                rows = int(own[0].summary.get("total-records", 0)) if own else 0
                yield BranchTable(str(table), len(own), 0, rows, 0, pinned)
                continue
            found = diff_refs(catalog.io, metadata, to, name)
            yield BranchTable(
                str(table),
                len(found.only_to),
                len(found.only_from),
                sum(partition.added_rows for partition in found.partitions),
                sum(partition.removed_rows for partition in found.partitions),
                pinned,
            )

    def _pinned(self, table: TableName, name: str) -> int:
        loaded = load_listed(self._lake.catalog, table)
        if loaded is None or name not in loaded.metadata.refs:
            return 0
        return pinned_bytes(self._lake.catalog.io, loaded.metadata, name)


def _milliseconds(expires: str | int) -> int:
    return 1000 * parse_duration(expires) if isinstance(expires, str) else check_positive(expires, "expires")
