"""A lake as a plain value, and what users do to it: each operation says what it does to the value, and does it."""

import datetime as dt
from typing import Any, NoReturn, Protocol

import msgspec
from msgspec.structs import replace

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError, RefusedError
from support.fixtures.rows import order_rows

Rows = frozenset[int]
_SOON = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


class RefModel(msgspec.Struct, frozen=True):
    """What a ref reads; `head` is only known after looking."""

    is_branch: bool
    rows: Rows
    head: int = 0


class TableModel(msgspec.Struct, frozen=True):
    """What a table reads."""

    refs: dict[str, RefModel] = {}
    properties: dict[str, str] = {}
    columns: frozenset[str] = frozenset()


World = dict[str, TableModel]


class Lineage(Protocol):
    """Which snapshots descend from which."""

    def descends(self, snapshot_id: int, ancestor: int) -> bool: ...


class Act(Protocol):
    """One commit. `on` gives the world after it, or raises the kind of error that is due."""

    table: str
    may_conflict: bool
    """Whether a commit of somebody else's may make it fail."""

    def on(self, world: World, lineage: Lineage) -> World: ...

    def run(self, lake: Lake, tables: dict[str, Table]) -> None: ...


class Write(msgspec.Struct, frozen=True):
    """Append rows to a branch, or put them in the place of all."""

    table: str
    branch: str
    rows: tuple[int, ...]
    overwrite: bool = False

    @property
    def may_conflict(self) -> bool:
        return self.overwrite

    def on(self, world: World, lineage: Lineage) -> World:
        old = world[self.table].refs.get(self.branch)
        if old and not old.is_branch:
            raise RefusedError(self.branch)
        start = old or world[self.table].refs.get("main") or RefModel(is_branch=True, rows=frozenset())
        rows = frozenset(self.rows) if self.overwrite else start.rows | set(self.rows)
        return _with_ref(world, self.table, self.branch, RefModel(is_branch=True, rows=rows))

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        table = tables[self.table]
        (table.overwrite if self.overwrite else table.append)(order_rows(*self.rows), branch=self.branch)


class Delete(msgspec.Struct, frozen=True):
    """Delete the rows with some ids from a branch, and put others in their place."""

    table: str
    branch: str
    ids: tuple[int, ...]
    rows: tuple[int, ...] = ()
    may_conflict: bool = True

    def on(self, world: World, lineage: Lineage) -> World:
        old = world[self.table].refs.get(self.branch)
        if old and not old.is_branch:
            raise RefusedError(self.branch)
        start = old or world[self.table].refs.get("main") or RefModel(is_branch=True, rows=frozenset())
        if not self.rows and start.rows.isdisjoint(self.ids):
            return world
        rows = start.rows - set(self.ids) | set(self.rows)
        return _with_ref(world, self.table, self.branch, RefModel(is_branch=True, rows=rows))

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        where = f"id IN ({', '.join(map(str, self.ids))})"
        if self.rows:
            tables[self.table].overwrite(order_rows(*self.rows), where, branch=self.branch)
        else:
            tables[self.table].delete(where, branch=self.branch)


class CreateRef(msgspec.Struct, frozen=True):
    """A new ref where another is."""

    table: str
    name: str
    at: str
    tag: bool
    may_conflict: bool = False

    def on(self, world: World, lineage: Lineage) -> World:
        refs = world[self.table].refs
        if self.at not in refs:
            _not_found(self.at)
        if self.name in refs:
            raise AlreadyExistsError(self.name, kind="ref", name=self.name)
        if self.name == "main" and self.tag:
            raise InvalidInputError(self.name)
        return _with_ref(world, self.table, self.name, replace(refs[self.at], is_branch=not self.tag))

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        refs = tables[self.table].refs
        (refs.create_tag if self.tag else refs.create_branch)(self.name, at=self.at)


class ReplaceRef(msgspec.Struct, frozen=True):
    """Move a ref to where another is."""

    table: str
    name: str
    at: str
    tag: bool
    may_conflict: bool = True

    def on(self, world: World, lineage: Lineage) -> World:
        refs = world[self.table].refs
        if self.name not in refs or self.at not in refs:
            _not_found(self.name)
        if refs[self.name].is_branch == self.tag:
            raise InvalidInputError(self.name)
        return _with_ref(world, self.table, self.name, replace(refs[self.at], is_branch=not self.tag))

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        refs = tables[self.table].refs
        (refs.replace_tag if self.tag else refs.replace_branch)(self.name, at=self.at)


class DropRef(msgspec.Struct, frozen=True):
    """Forget a ref."""

    table: str
    name: str
    tag: bool
    may_conflict: bool = True

    def on(self, world: World, lineage: Lineage) -> World:
        refs = world[self.table].refs
        if self.name == "main" and not self.tag:
            raise RefusedError(self.name)
        if self.name not in refs:
            _not_found(self.name)
        if refs[self.name].is_branch == self.tag:
            raise InvalidInputError(self.name)
        left = {n: r for n, r in refs.items() if n != self.name}
        return world | {self.table: replace(world[self.table], refs=left)}

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        refs = tables[self.table].refs
        (refs.drop_tag if self.tag else refs.drop_branch)(self.name)


class FastForward(msgspec.Struct, frozen=True):
    """Move a branch to a ref that descends from it."""

    table: str
    branch: str
    to: str
    may_conflict: bool = False

    def on(self, world: World, lineage: Lineage) -> World:
        refs = world[self.table].refs
        if self.to not in refs:
            _not_found(self.to)
        old = refs.get(self.branch)
        if old and not old.is_branch:
            raise InvalidInputError(self.branch)
        if old and not lineage.descends(refs[self.to].head, old.head):
            raise RefusedError(self.branch)
        return _with_ref(world, self.table, self.branch, replace(refs[self.to], is_branch=True))

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        tables[self.table].refs.fast_forward(self.branch, to=self.to)


class SetProperty(msgspec.Struct, frozen=True):
    """Set a property, or remove it."""

    table: str
    key: str
    value: str | None
    may_conflict: bool = False

    def on(self, world: World, lineage: Lineage) -> World:
        old = {k: v for k, v in world[self.table].properties.items() if k != self.key}
        new = old if self.value is None else old | {self.key: self.value}
        return world | {self.table: replace(world[self.table], properties=new)}

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        if self.value is None:
            tables[self.table].set_properties(remove=[self.key])
        else:
            tables[self.table].set_properties({self.key: self.value})


class ChangeColumn(msgspec.Struct, frozen=True):
    """Add a column, or drop it."""

    table: str
    column: str
    drop: bool
    may_conflict: bool = True

    def on(self, world: World, lineage: Lineage) -> World:
        columns = world[self.table].columns
        if self.drop and self.column not in columns:
            _not_found(self.column)
        if not self.drop and self.column in columns:
            raise AlreadyExistsError(self.column, kind="column", name=self.column)
        return world | {self.table: replace(world[self.table], columns=columns ^ {self.column})}

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        with tables[self.table].update_schema() as schema:
            if self.drop:
                schema.drop_column(self.column)
            else:
                schema.add_column(self.column, "int")


class Maintain(msgspec.Struct, frozen=True):
    """Change files and snapshots, and nothing that a ref reads."""

    table: str
    kind: str
    branch: str
    retain_last: int = 1

    @property
    def may_conflict(self) -> bool:
        return self.kind != "expire"

    def on(self, world: World, lineage: Lineage) -> World:
        ref = world[self.table].refs.get(self.branch)
        if self.kind != "expire" and ref is None and self.branch != "main":
            _not_found(self.branch)
        if self.kind != "expire" and ref and not ref.is_branch:
            raise RefusedError(self.branch)
        return world

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        table = tables[self.table]
        match self.kind:
            case "expire":
                table.expire(older_than=_SOON, retain_last=self.retain_last)
            case "compact":
                table.compact(branch=self.branch)
            case "rewrite manifests":
                table.rewrite_manifests(branch=self.branch)


class Together(msgspec.Struct, frozen=True):
    """Several acts in one transaction, on one table or on several."""

    acts: tuple[Any, ...]

    @property
    def may_conflict(self) -> bool:
        return any(act.may_conflict for act in self.acts)

    def on(self, world: World, lineage: Lineage) -> World:
        for act in self.acts:
            world = act.on(world, lineage)
        return world

    def run(self, lake: Lake, tables: dict[str, Table]) -> None:
        with lake.transaction() as transaction:
            inside = {name: transaction.load_table(name) for name in {act.table for act in self.acts}}
            for act in self.acts:
                act.run(lake, inside)


def error_due(act: Act, world: World, lineage: Lineage) -> type[BerglineError] | None:
    """The kind of error that an act gives on a world."""
    try:
        act.on(world, lineage)
    except BerglineError as error:
        return type(error)
    return None


def worlds_after(act: Act, world: World, lineage: Lineage) -> list[World]:
    """What an act may make of a world."""
    return [act.on(world, lineage)]


def same_to_readers(one: World, other: World) -> bool:
    """Whether two worlds read the same."""
    return all(_read(one[name]) == _read(other[name]) for name in one | other)


def _read(table: TableModel) -> tuple[object, ...]:
    refs = {name: (ref.is_branch, ref.rows) for name, ref in table.refs.items()}
    return refs, table.properties, table.columns


def _with_ref(world: World, table: str, name: str, ref: RefModel) -> World:
    return world | {table: replace(world[table], refs=world[table].refs | {name: ref})}


def _not_found(name: str) -> NoReturn:
    raise NotFoundError(name, kind="ref", name=name)
