"""The options that name a lake, which every command takes, and opening it."""

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import typer

from bergline.catalog.pointer.pointer_store import CATALOG, CATALOG_NAME, CREATE_HINT
from bergline.cli.output.visible import visible
from bergline.cli.settings import ConnectArguments, load_settings
from bergline.errors import InvalidInputError, NotFoundError, near_names
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME, Lake, connect
from bergline.lake.opening import environment_token

CatalogOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Catalog to open, e.g. sqlite:///lake/catalog.db or http://host:8181 \\[default: BERGLINE_CATALOG, "
        "bergline.toml, ./lake]",
        rich_help_panel="Lake",
    ),
]
WarehouseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Where the catalog's new tables go, reading needs none; on a REST server the warehouse's name.",
        rich_help_panel="Lake",
    ),
]
NameOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The catalog's name in its database, as `bergline serve --name` has it. \\[default: lake]",
        rich_help_panel="Lake",
    ),
]
PropertyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="KEY=VALUE",
        help="A setting, e.g. s3.endpoint=http://host; may be repeated.",
        rich_help_panel="Lake",
    ),
]
ANY_CATALOG = frozenset({CATALOG, CATALOG_NAME})
Opened = TypeVar("Opened")
_OPTIONS = {CATALOG: "--catalog, BERGLINE_CATALOG or in bergline.toml", CATALOG_NAME: "--name"}
_NEW_LAKE = "`bergline quickstart` creates one to play with, `bergline serve` an empty one"
_SQLITE = "sqlite:///"


class OptionGroup(msgspec.Struct, frozen=True):
    """Options that belong together: a command that has a group for a parameter has its fields as options."""


class LakeOptions(OptionGroup, frozen=True):
    """The options that name a lake, as they were typed."""

    catalog: CatalogOption = None
    warehouse: WarehouseOption = None
    catalog_name: NameOption = None
    properties: PropertyOption = None

    def settings(self) -> ConnectArguments:
        """The settings of the options, completed from the environment and `bergline.toml`."""
        given = ConnectArguments(self.catalog, self.warehouse, self.catalog_name, settings_of(self.properties))
        return given if given.catalog is not None else given.before(load_settings())

    def open(self, *, create: Collection[str] = ()) -> Lake:
        """Open the lake, which must exist: inspecting must not create one. `create` as in `open_or_create`."""
        return open_lake(self.settings(), create=create)


def with_lake(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that name a lake, which it gets as `LakeOptions` in its first argument.

    They come last in its help. Other groups of options stand where the command has them.
    """
    lake, *own = inspect.signature(command, eval_str=True).parameters.values()
    groups = {p.name: p.annotation for p in (lake, *own) if _is_group(p.annotation)}
    members = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: group(**{n: arguments.pop(n) for n in members[name]}) for name, group in groups.items()}
        command(given.pop(lake.name), **given, **arguments)

    parameters = (m for p in (*own, lake) for m in (members[p.name].values() if p.name in groups else (p,)))
    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    return run


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)


def open_lake(settings: ConnectArguments, *, create: Collection[str] = ()) -> Lake:
    """Open a lake; `create` as in `open_or_create`."""
    uri = settings.catalog or DEFAULT_CATALOG
    properties = environment_token(uri, settings.properties) | settings.properties
    name = settings.name or DEFAULT_NAME
    opening = partial(connect, uri, warehouse=settings.warehouse, name=name, properties=properties, ref=settings.ref)
    return open_or_create(opening, create, near=lambda: near_catalogs(uri))


def open_or_create(
    opening: Callable[..., Opened],
    create: Collection[str] = ANY_CATALOG,
    *,
    near: Callable[[], Sequence[str]] = tuple,
) -> Opened:
    """Open by `opening(create=…)`; missing catalogs of these kinds are created, with a notice."""
    try:
        return opening(create=False)
    except NotFoundError as error:
        if error.kind not in _OPTIONS:
            raise
        hints = [hint for hint in error.hints if hint != CREATE_HINT]
        if error.kind not in create:
            if error.kind == CATALOG and (found := near()):
                hints.append(f"did you mean {', '.join(f'`{uri}`' for uri in found)}?")
            hints.append(f"name one with {_OPTIONS[error.kind]}")
            if error.kind == CATALOG:
                hints.append(_NEW_LAKE)
            raise NotFoundError(error.message, kind=error.kind, name=error.name, hints=hints) from error
        said = "".join([f"{error.message}; creating it\n", *(f"hint: {hint}\n" for hint in hints)])
        sys.stderr.write(visible(said, keep="\n"))
        sys.stderr.flush()
    return opening(create=True)


def near_catalogs(uri: str) -> tuple[str, ...]:
    """Databases on disk whose paths resemble that of a missing one, as catalogs."""
    if not uri.startswith(_SQLITE):
        return ()
    path = Path(uri.removeprefix(_SQLITE))
    folder = path.parent
    try:
        beside = [f for f in folder.glob("*") if f != path and f.is_file() and f.suffix == path.suffix]
        nearby = [f for f in folder.parent.glob(f"*/{path.name}") if f != path and f.is_file()]
    except (OSError, ValueError):  # a directory that cannot be listed
        return ()
    return tuple(f"{_SQLITE}{found}" for found in near_names(str(path), map(str, [*beside, *nearby])))


def settings_of(properties: Sequence[str] | None, option: str = "--property") -> dict[str, str]:
    """Parse settings given as `key=value`."""
    return dict(_setting(text, option) for text in properties or ())


def _setting(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        # the text may be a secret: do not show it
        raise InvalidInputError(f"expected {option} key=value, found another text")
    return key, value
