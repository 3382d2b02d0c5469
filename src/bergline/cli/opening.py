"""Opening the lake that a command's options name."""

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Annotated, TypeAlias, TypeVar

import typer

from bergline.catalog.pointer.pointer_store import CATALOG, CATALOG_NAME, CREATE_HINT
from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME, Lake, connect
from bergline.lake.opening import environment_token

CatalogOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Catalog to open, e.g. sqlite:///lake/catalog.db or http://host:8181 \\[default: ./lake]"),
]
WarehouseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Where the catalog's new tables go, reading needs none; on a REST server the warehouse's name."),
]
NameOption: TypeAlias = Annotated[
    str, typer.Option("--name", help="The catalog's name in its database, as `bergline serve --name` has it.")
]
PropertyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="KEY=VALUE", help="A setting, e.g. s3.endpoint=http://host; may be repeated."),
]
ANY_CATALOG = frozenset({CATALOG, CATALOG_NAME})
Opened = TypeVar("Opened")
_OPTIONS = {CATALOG: "--catalog", CATALOG_NAME: "--name"}


def open_lake(
    catalog: str | None,
    warehouse: str | None,
    properties: Sequence[str] | None,
    name: str = DEFAULT_NAME,
    *,
    create: Collection[str] = (),
) -> Lake:
    """Open an existing lake: inspecting must not create one. `create` as in `open_or_create`."""
    uri = catalog or DEFAULT_CATALOG
    settings = settings_of(properties)
    settings = environment_token(uri, settings) | settings
    opening = partial(connect, uri, warehouse=warehouse, name=name, properties=settings)
    return open_or_create(opening, create)


def open_or_create(opening: Callable[..., Opened], create: Collection[str] = ANY_CATALOG) -> Opened:
    """Open by `opening(create=…)`; missing catalogs of these kinds are created, with a notice."""
    try:
        return opening(create=False)
    except NotFoundError as error:
        if error.kind not in _OPTIONS:
            raise
        near = [hint for hint in error.hints if hint != CREATE_HINT]
        if error.kind not in create:
            hints = [*near, f"name one with {_OPTIONS[error.kind]}"]
            raise NotFoundError(error.message, kind=error.kind, name=error.name, hints=hints) from error
        sys.stderr.write("".join([f"{error.message}; creating it\n", *(f"hint: {hint}\n" for hint in near)]))
        sys.stderr.flush()
    return opening(create=True)


def settings_of(properties: Sequence[str] | None, option: str = "--property") -> dict[str, str]:
    """Parse settings given as `key=value`."""
    return dict(_setting(text, option) for text in properties or ())


def _setting(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        # the text may be a secret
        raise InvalidInputError(f"expected {option} key=value, found another text")
    return key, value
