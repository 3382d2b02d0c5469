"""From names in SQL to tables of a lake."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec

from bergline.arguments import check_text
from bergline.catalog.at_ref.lake_ref import AT
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, RefusedError, UnsupportedError, near_names
from bergline.lake.lake import Lake
from bergline.sql.names.engine_context import EngineContext, NoEngine
from bergline.sql.names.selector import VersionSelector, parse_selector, spelled_refs
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Name
from bergline.table.table import Table
from bergline.table.view import View

T = TypeVar("T")
_AT_REFS: WeakKeyDictionary[Lake, dict[str, Lake]] = WeakKeyDictionary()
"""Lakes at those of their refs that were named: to look up a ref may mean to look at all tables."""


class Target(msgspec.Struct, frozen=True):
    """A table of a lake and the version that the name selects."""

    table: Table
    selector: VersionSelector


class ViewTarget(msgspec.Struct, frozen=True):
    """A view, and the name that its lake is attached under."""

    lake: str
    view: View

    @property
    def name(self) -> str:
        """The name of the view with that of its lake."""
        return f"{self.lake}.{self.view.name}"


class Current(msgspec.Struct):
    """What USE last selected: a lake, None for the default one, and a namespace in it."""

    lake: str | None = None
    namespace: Name = ()


def new_table_name(lake: Lake, name: Name) -> TableName:
    """The name of a table to be created in a lake; RefusedError for a branch or metadata table of another."""
    outer = name[:-1]
    if len(outer) > 1 and not lake.namespace_exists(outer) and lake.table_exists(TableName(outer[:-1], outer[-1])):
        raise RefusedError(
            f"cannot make or replace `{'.'.join(name)}`: it is no table, but names what table `{'.'.join(outer)}` has",
            hints=["INSERT OVERWRITE replaces the rows of a branch"],
        )
    return TableName(outer, name[-1])


class Lakes:
    """The lakes of a session by name; one of them is the default, until USE selects another."""

    def __init__(
        self,
        lakes: Mapping[str, Lake],
        default: str,
        current: Current | None = None,
        engine: EngineContext | None = None,
        *,
        has_temporary_views: bool = True,
    ) -> None:
        self._lakes = lakes
        self._has_temporary_views = has_temporary_views
        self.current = current or Current()
        self.engine: EngineContext = engine or NoEngine()
        self.default_name = default if self.current.lake is None else self.current.lake
        self._at_refs: dict[str, Lake] = {}
        self._found: dict[tuple[int, Name], Name] = {}
        self._listed: dict[int, dict[Name, list[Name]]] = {}

    @cached_property
    def default(self) -> Lake:
        """The lake of names without a lake; looked up for such a name alone, as the ref in use may be gone."""
        return self.by_name(self.default_name)

    def has(self, name: str) -> bool:
        """Whether a lake has this name."""
        return self.find(name) is not None

    @property
    def names(self) -> list[str]:
        """The names of all lakes."""
        return list(self._lakes)

    def find(self, name: str) -> Lake | None:
        """The lake of this name, or the one at the ref behind an `@`; NotFoundError for a ref that is nowhere."""
        if name in self._lakes or AT not in name:
            return self._lakes.get(name)
        of = max((known for known in self._lakes if name.startswith(f"{known}{AT}")), key=len, default=None)
        if of is not None and name not in self._at_refs:
            ref, refs = name.removeprefix(f"{of}{AT}"), _AT_REFS.setdefault(self._lakes[of], {})
            self._at_refs[name] = refs.get(ref) or refs.setdefault(ref, self._lakes[of].at(ref))
        return self._at_refs.get(name)

    def by_name(self, name: str) -> Lake:
        """The lake of a name that one has."""
        lake = self.find(name)
        if lake is None:
            raise NotFoundError(f"no lake `{name}`", kind="catalog", name=name, known=self.names)
        return lake

    def name_of(self, lake: Lake) -> str:
        """The name of a lake: that which it is attached under, or that with a ref of it."""
        return next(name for name, known in [*self._lakes.items(), *self._at_refs.items()] if known is lake)

    def use(self, lake: Lake | None, namespace: Name) -> None:
        """Make a lake and a namespace the current ones; None goes back to the default lake."""
        self.current.lake = None if lake is None else self.name_of(lake)
        self.current.namespace = namespace

    def place(self, name: Name) -> tuple[Lake, Name] | None:
        """The lake that a table name belongs to and the name in it; None if it is not ours.

        A name is ours if it begins with a lake's name, or if its namespace exists in the default lake; one without a
        namespace, if a namespace is in use and no temporary view has the name. Its namespace comes back as it is
        spelled in the lake.
        """
        used = self.current.namespace
        if len(name) == 1:
            is_ours = used and not (self._has_temporary_views and self.engine.has_temporary_view(name[0]))
            return (self.default, (*used, *name)) if is_ours else None
        if len(name) > 2 and (lake := self.find(name[0])) is not None:  # noqa: PLR2004
            return lake, self._spelled(lake, name[1:]) or name[1:]
        if len(name) > 2 and self.engine.has_catalog(name[0]):  # noqa: PLR2004
            return None
        spelled = self._spelled(self.default, name)
        if spelled is not None:
            return self.default, spelled
        if used and len(name) == 2 and self.default.table_exists(TableName(used, name[0])):  # noqa: PLR2004
            return self.default, (*used, *name)
        return None

    def place_existing(self, name: Name) -> tuple[Lake, Name] | None:
        """The lake that a table or view belongs to, and its name as it is spelled there; None if it is not ours."""
        placed = self.place(name)
        if placed is None or len(placed[1]) < 2 or self.engine.is_case_sensitive:  # noqa: PLR2004
            return placed
        lake, rest = placed
        found = TableName(rest[:-1], rest[-1])
        if lake.table_exists(found):
            return placed
        spelled = self._spelled_table(lake, found)
        return placed if spelled is None else (lake, (*spelled.namespace, spelled.name))

    def target(self, table: Table, selector: VersionSelector) -> Target:
        """A version of a table, whose branch or tag may be spelled in another case."""
        if (selector.branch is None and selector.ref is None) or self.engine.is_case_sensitive:
            return Target(table, selector)
        return Target(table, spelled_refs(selector, list(table.refs)))

    def _has_namespace(self, lake: Lake, namespace: Name) -> bool:
        """Whether a lake has a namespace; one that was found is not looked up again by the same statement."""
        known = id(lake), namespace
        if known not in self._found and lake.namespace_exists(namespace):
            self._found[known] = namespace
        return known in self._found

    def _spelled(self, lake: Lake, name: Name) -> Name | None:
        """The name of a table, or of what a table has, with its namespace as a lake spells it; None if it has none.

        What is spelled in the same way counts before what differs in case.
        """
        for find in (self._exact_namespace, self._folded_namespace):
            for cut in (1, 2):
                if len(name) > cut and (found := find(lake, name[:-cut])) is not None:
                    return (*found, *name[-cut:])
        return None

    def _namespace(self, lake: Lake, namespace: Name) -> Name | None:
        found = self._exact_namespace(lake, namespace)
        return self._folded_namespace(lake, namespace) if found is None else found

    def _exact_namespace(self, lake: Lake, namespace: Name) -> Name | None:
        return namespace if self._has_namespace(lake, namespace) else None

    def _folded_namespace(self, lake: Lake, namespace: Name) -> Name | None:
        """The only namespace that differs from this one in case alone."""
        if self.engine.is_case_sensitive:
            return None
        if id(lake) not in self._listed:
            listed = self._listed[id(lake)] = {}
            for known in lake.catalog.list_namespaces():
                listed.setdefault(_folded(known), []).append(known)
        return _only(self._listed[id(lake)].get(_folded(namespace), []))

    def _spelled_table(self, lake: Lake, name: TableName) -> TableName | None:
        """The only table or view of a namespace that differs from this one in case alone."""
        if self.engine.is_case_sensitive:
            return None
        try:
            known = lake.catalog.list_tables(name.namespace)
        except NotFoundError:
            return None
        with contextlib.suppress(UnsupportedError):  # a catalog that has no views
            known = [*known, *lake.catalog.list_views(name.namespace)]
        return _only([other for other in known if other.name.casefold() == name.name.casefold()])

    def _load(self, lake: Lake, name: TableName) -> Table:
        try:
            return lake.load_table(name)
        except NotFoundError as error:
            spelled = self._spelled_table(lake, name) if error.kind == "table" else None
            if spelled is None or spelled == name:
                raise
        return lake.load_table(spelled)

    def place_namespace(self, namespace: Name) -> tuple[Lake, Name] | None:
        """The lake that a namespace is in and its name there, () for a lake itself; None if it is not ours."""
        lake = self.find(namespace[0])
        if lake is not None:
            if len(namespace) > 1:
                inner = namespace[1:]
                return lake, self._namespace(lake, inner) or inner
            if self._namespace(self.default, namespace) is None:
                return lake, ()
        found = None if self.engine.has_catalog(namespace[0]) else self._namespace(self.default, namespace)
        return None if found is None else (self.default, found)

    def place_new_namespace(self, namespace: Name) -> tuple[Lake, Name] | None:
        """The lake that a namespace would be created in; None in a catalog of the engine."""
        if len(namespace) > 1 and (lake := self.find(namespace[0])) is not None:
            return lake, namespace[1:]
        return None if self.engine.has_catalog(namespace[0]) else (self.default, namespace)

    def owns(self, name: Name) -> bool:
        """Whether a name, of a table or of a namespace, belongs to a lake."""
        return self.place(name) is not None or self.place_namespace(name) is not None

    def resolve(self, name: Name) -> Target | None:
        """The table that a name means; None if it is not ours, NotFoundError if it is and does not exist."""
        placed = self.place(name)
        if placed is None:
            return None
        lake, rest = placed
        if self._has_namespace(lake, rest[:-1]):
            try:
                return Target(self._load(lake, TableName(rest[:-1], rest[-1])), VersionSelector())
            except NotFoundError as error:
                if error.kind != "table" or len(rest) < 3 or not lake.namespace_exists(rest[:-2]):  # noqa: PLR2004
                    raise
        if len(rest) < 3:  # noqa: PLR2004
            return Target(self._load(lake, TableName(rest[:-1], rest[-1])), VersionSelector())
        table = self._load(lake, TableName(rest[:-2], rest[-2]))
        return self.target(table, parse_selector(rest[-1], table))

    def resolve_relation(self, name: Name) -> Target | ViewTarget | None:
        """The table or view that a name means; None if it is not ours, NotFoundError if it is and does not exist."""
        return self._or_view(self.resolve, name)

    def resolve_table_or_view(self, name: Name) -> Table | ViewTarget | None:
        """The same for a name that must name no version or metadata table."""
        return self._or_view(self.resolve_table, name)

    def _or_view(self, resolve: Callable[[Name], T | None], name: Name) -> T | ViewTarget | None:
        try:
            return resolve(name)
        except NotFoundError as error:
            view = self.find_view(name) if error.kind == "table" else None
            if view is None:
                raise
            return view

    def find_view(self, name: Name) -> ViewTarget | None:
        """The view that a name means; None if there is none, or if it is not ours."""
        placed = self.place(name)
        if placed is None:
            return None
        lake, rest = placed
        name_there = TableName(rest[:-1], rest[-1])
        try:
            return ViewTarget(self.name_of(lake), lake.load_view(name_there))
        except UnsupportedError:  # a catalog that has no views
            return None
        except NotFoundError:
            spelled = self._spelled_table(lake, name_there)
        try:
            return None if spelled is None else ViewTarget(self.name_of(lake), lake.load_view(spelled))
        except NotFoundError:  # a table
            return None

    def place_new(self, name: Name) -> tuple[Lake, TableName] | None:
        """Where a view of this name would be created, whatever temporary views there are; None if that is not ours."""
        if len(name) > 1:
            placed = self.place(name)
        elif self.current.lake is None and not self.current.namespace:
            return None
        else:
            placed = self.default, (*self.current.namespace, *name)
        if placed is None:
            return None
        lake, rest = placed
        if len(rest) < 2:  # noqa: PLR2004
            raise InvalidInputError(
                f"expected a namespace before `{name[-1]}`, found none in use",
                hints=["USE db makes `db` the namespace"],
            )
        return lake, new_table_name(lake, rest)

    def within_view(self, lake: str, namespace: Name) -> "Lakes":
        """The lakes as the query of a view sees them: from its own default namespace, without temporary views."""
        return Lakes(self._lakes, lake, Current(lake, namespace), self.engine, has_temporary_views=False)

    def resolve_table(self, name: Name) -> Table | None:
        """The table that a name means, which must name no version or metadata table of it."""
        target = self.resolve(name)
        if target is None:
            return None
        if target.selector != VersionSelector():
            raise InvalidInputError(f"expected a table, found `{'.'.join(name)}`")
        return target.table

    def within(self, name: str) -> "Lakes":
        """The lakes as seen from one of them: every name must belong to it."""
        used = self.current.namespace if self.default_name == name else ()
        return Lakes({name: self.by_name(name)}, name, Current(None, used), self.engine)

    def resolve_text(self, text: str, *, on_branch: bool = False) -> Target:
        """The table that a procedure's argument names, or a branch of it if the procedure takes one."""
        target = self.resolve(name_parts(text))
        if target is None:
            raise self._no_table(text)
        if target.selector != VersionSelector(branch=target.selector.branch if on_branch else None):
            raise InvalidInputError(f"expected a table{' or a branch of one' if on_branch else ''}, found `{text}`")
        return target

    def place_text(self, text: str) -> tuple[Lake, TableName]:
        """Where to create the table that a procedure's argument names."""
        placed = self.place(name_parts(text))
        if placed is None:
            raise self._no_table(text)
        lake, name = placed
        return lake, TableName(name[:-1], name[-1])

    def near_namespaces(self, namespace: Name) -> tuple[str, ...]:
        """The namespaces of all lakes, as they can be written, that are spelled most like one that does not exist."""
        by_lake = {name: lake.list_namespaces() for name, lake in self._lakes.items()}
        known = [f"{name}.{namespace}" for name, namespaces in by_lake.items() for namespace in namespaces]
        return near_names(".".join(namespace), [*self.default.list_namespaces(), *known])

    def _no_table(self, text: str) -> NotFoundError:
        namespaces, own = self.default.list_namespaces(), text.rpartition(".")[2]
        listed = ", ".join(namespaces) or "(none)"
        hint = f"lake `{self.default_name}` has the namespaces {listed}; write `namespace.table`"
        known = [f"{namespace}.{own}" for namespace in namespaces]
        return NotFoundError(f"no table `{text}`", kind="table", name=text, known=known, hints=[hint])


def _folded(name: Name) -> Name:
    return tuple(part.casefold() for part in name)


def _only(found: Sequence[T]) -> T | None:
    return found[0] if len(found) == 1 else None


def name_parts(text: str) -> Name:
    """The parts of a table's name that was given as text."""
    return parse_name(check_text(text, "the name of a table as text"), "a table name")
