"""The catalog as it is seen at a ref of the lake, over any catalog."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NoReturn

from msgspec.structs import replace

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef, LakeRefKind
from bergline.catalog.at_ref.landing import LandingChange, check_writable, created_at, landing, moves_main
from bergline.catalog.at_ref.seen import seen_at
from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import (
    Catalog,
    Committed,
    DroppedTable,
    DroppedView,
    LoadedTable,
    LoadedView,
    Outcome,
    TableChange,
    ViewChange,
)
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.turns import TurnKeeper
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.format.metadata.refs import CREATED_ON, MAIN
from bergline.format.metadata.table_metadata import TableMetadata, changed
from bergline.format.view.view_metadata import ViewMetadata


class TableAtRef(LoadedTable, frozen=True):
    """A table as it is seen at a ref, and as it is."""

    real: LoadedTable


class CatalogAtRef:
    """Tables at a ref of the lake. A branch can have tables of its own; all other names are those of the lake."""

    keeps_dropped_tables = False

    def __init__(self, inner: Catalog, ref: LakeRef, check_joins: Callable[[TableName], None]) -> None:
        self.inner = inner
        self.ref = ref
        self._check_joins = check_joins
        self.io = inner.io
        self.atomic_tables = inner.atomic_tables
        self.metadata_files_stay = inner.metadata_files_stay

    @property
    def turns(self) -> TurnKeeper | None:
        """Where commits take turns: with those to the table at its other refs."""
        return self.inner.turns

    def load_table(self, name: TableName) -> LoadedTable:
        return self._seen(self.inner.load_table(name))

    def pointer(self, name: TableName) -> str:
        return self.inner.pointer(name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        outcome = self.inner.commit(tuple(map(self._landing, changes)))
        return Committed(tuple(map(self._seen, outcome.tables))) if isinstance(outcome, Committed) else outcome

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        """The refusals of the change as it lands on the table itself."""
        real = self._real(table)
        refs = dict(after.refs)
        seen = refs.pop(MAIN, None)
        if real.metadata.refs.get(LAKE_MAIN) is None and (main := refs.pop(LAKE_MAIN, None)) is not None:
            refs[MAIN] = main
        if seen is not None and seen != table.metadata.refs.get(MAIN):
            refs[self.ref.name] = seen
        main = refs.get(MAIN)
        if main != real.metadata.refs.get(MAIN):
            return [moves_main(real.name, self.ref)]
        return self.inner.refusals(
            real, changed(after, refs=refs, current_snapshot_id=main and main.snapshot_id, seen_at=None)
        )

    def rule_levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        return self.inner.rule_levels(table)

    def footprints(self) -> Footprints | None:
        return self.inner.footprints()

    def is_own_file(self, location: str) -> bool:
        return self.inner.is_own_file(location)

    def default_location(self, name: TableName) -> str:
        return self.inner.default_location(name)

    def check_location(self, name: TableName, location: str) -> None:
        self.inner.check_location(name, location)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return sorted((*self.inner.list_tables(namespace), *created_on(self.inner, self.ref, namespace)))

    def list_branch_tables(self, namespace: Namespace) -> list[TableName]:
        own = set(created_on(self.inner, self.ref, namespace))
        return [name for name in self.inner.list_branch_tables(namespace) if name not in own]

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self.inner.namespace_exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self.inner.namespace_properties(namespace)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self.inner.list_namespaces(below)

    def load_view(self, name: TableName) -> LoadedView:
        return self.inner.load_view(name)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self.inner.list_views(namespace)

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        """None: a ref has no trash of its own."""
        return []

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        """None: a ref has no trash of its own."""
        return []

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """Create a table on the branch alone."""
        check_writable(self.ref, name)
        try:
            self.inner.pointer(name)
        except NotFoundError:  # one that exists is refused for that
            self._check_joins(name)
        made = self.inner.create_table(name, created_at(metadata, self.ref))
        check_still_joins(self.inner, made, self._check_joins)
        return self._seen(made)

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        self._refuse(f"register table `{name}`")

    def unregister_table(self, name: TableName) -> str:
        self._check_created("unregister", name)
        return self.inner.unregister_table(name)

    def rename_table(self, name: TableName, new: TableName) -> None:
        self._check_created("rename", name)
        self.inner.rename_table(name, new)

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        """Drop a table in the very state in which it is on the branch alone: it may be published meanwhile."""
        tries = attempts(f"table `{name}` moved on whenever it was to be dropped")
        while True:
            next(tries)
            table = self.inner.load_table(name)
            check_created_on(table.metadata, self.ref, name, "drop")
            try:
                return self.inner.drop_table(name, expected or table.metadata_location)
            except ConflictError:
                if expected is not None:
                    raise

    def purge_later(self, name: TableName) -> bool:
        self._check_created("drop", name)
        return self.inner.purge_later(name)

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        self._refuse(f"undrop table `{name}`")

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        """Create a namespace of the whole lake: tables on the branch may need one."""
        if self.ref.kind is not LakeRefKind.BRANCH:
            self._refuse(f"create namespace `{'.'.join(namespace)}`")
        self.inner.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        self.inner.namespace_properties(namespace)  # there is one: IF EXISTS does not ask
        self._refuse(f"drop namespace `{'.'.join(namespace)}`")

    def update_namespace(
        self,
        namespace: Namespace,
        changes: Mapping[str, str],
        removals: Collection[str],
    ) -> None:
        self._refuse(f"change namespace `{'.'.join(namespace)}`")

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        self._refuse(f"create view `{name}`")

    def commit_view(self, change: ViewChange) -> LoadedView:
        self._refuse(f"change view `{change.base.name}`")

    def rename_view(self, name: TableName, new: TableName) -> None:
        self._refuse(f"rename view `{name}`")

    def drop_view(self, name: TableName) -> None:
        self.inner.load_view(name)
        self._refuse(f"drop view `{name}`")

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        self._refuse(f"undrop view `{name}`")

    def close(self) -> None:
        self.inner.close()

    def _seen(self, table: LoadedTable) -> TableAtRef:
        seen = seen_at(table.metadata, self.ref, table.name)
        return TableAtRef(table.name, seen, table.metadata_location, real=table)

    def _real(self, table: LoadedTable) -> LoadedTable:
        return table.real if isinstance(table, TableAtRef) else self.inner.load_table(table.name)

    def _landing(self, change: TableChange) -> TableChange:
        real = self._real(change.base)
        asked = LandingChange(change.requirements, change.updates)
        landed = landing(real.metadata, self.ref, real.name, asked, self._check_joins)
        return replace(change, base=real, requirements=landed.requirements, updates=landed.updates)

    def _check_created(self, what: str, name: TableName) -> None:
        check_created_on(self.inner.load_table(name).metadata, self.ref, name, what)

    def _refuse(self, what: str) -> NoReturn:
        raise only_on_main(what, self.ref)


def check_still_joins(catalog: Catalog, made: LoadedTable, check_joins: Callable[[TableName], None]) -> None:
    """Drop a new table again whose branch was dropped meanwhile: who drops a branch drops the tables that are there."""
    try:
        check_joins(made.name)
    except (NotFoundError, RefusedError):
        with contextlib.suppress(NotFoundError, ConflictError):
            catalog.drop_table(made.name, made.metadata_location)
        raise


def created_on(catalog: Catalog, ref: LakeRef, namespace: Namespace) -> list[TableName]:
    """The tables in a namespace that were created on a branch, and are not published yet."""
    if ref.kind is not LakeRefKind.BRANCH:
        return []
    return [name for name in catalog.list_branch_tables(namespace) if _branch_of(catalog, name) == ref.name]


def check_created_on(metadata: TableMetadata, ref: LakeRef, name: TableName, what: str) -> None:
    """Refuse to drop or rename a table that is not of the branch alone."""
    if ref.kind is not LakeRefKind.BRANCH or metadata.properties.get(CREATED_ON) != ref.name:
        raise only_on_main(f"{what} table `{name}`", ref)


def _branch_of(catalog: Catalog, name: TableName) -> str | None:
    try:
        return catalog.load_table(name).metadata.properties.get(CREATED_ON)
    except NotFoundError:  # dropped since it was listed
        return None


def only_on_main(what: str, ref: LakeRef) -> RefusedError:
    """The error for what cannot be done at a ref of the lake."""
    return RefusedError(
        f"cannot {what} at {ref} of the lake: names and views that are on `main` are the same at all refs",
        hints=["do it on the lake without a ref"],
    )
