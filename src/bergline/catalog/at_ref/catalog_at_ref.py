"""The catalog as it is seen at a ref of the lake, over any catalog."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NoReturn

from msgspec.structs import replace

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef
from bergline.catalog.at_ref.landing import LandingChange, landing, moves_main
from bergline.catalog.at_ref.seen import seen_at
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
from bergline.errors import RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata, changed
from bergline.format.view.view_metadata import ViewMetadata


class TableAtRef(LoadedTable, frozen=True):
    """A table as it is seen at a ref, and as it is."""

    real: LoadedTable


class CatalogAtRef:
    """Tables at a ref of the lake. What is not of one ref, such as names, namespaces and views, cannot be changed."""

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
            real, changed(after, refs=refs, current_snapshot_id=None if main is None else main.snapshot_id)
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
        return self.inner.list_tables(namespace)

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
        self._refuse(f"create table `{name}`")

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        self._refuse(f"register table `{name}`")

    def unregister_table(self, name: TableName) -> str:
        self._refuse(f"unregister table `{name}`")

    def rename_table(self, name: TableName, new: TableName) -> None:
        self._refuse(f"rename table `{name}`")

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        self._refuse(f"drop table `{name}`")

    def purge_later(self, name: TableName) -> bool:
        self._refuse(f"drop table `{name}`")

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        self._refuse(f"undrop table `{name}`")

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        self._refuse(f"create namespace `{'.'.join(namespace)}`")

    def drop_namespace(self, namespace: Namespace) -> None:
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

    def _refuse(self, what: str) -> NoReturn:
        raise only_on_main(what, self.ref)


def only_on_main(what: str, ref: LakeRef) -> RefusedError:
    """The error for what cannot be done at a ref of the lake."""
    return RefusedError(
        f"cannot {what} at {ref} of the lake: names, namespaces and views are the same at all refs",
        hints=["do it on the lake without a ref"],
    )
