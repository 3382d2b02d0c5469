"""Which lake a command looks at, as its options say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake import DEFAULT_CATALOG, Lake, connect

CatalogOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Catalog to open, e.g. sqlite:///lake/catalog.db [default: ./lake]")
]
WarehouseOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Where the catalog's new tables go; reading needs none.")
]
PropertyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="KEY=VALUE", help="A setting, e.g. s3.endpoint=http://host; may be repeated."),
]


def open_lake(catalog: str | None, warehouse: str | None, properties: Sequence[str] | None) -> Lake:
    """A lake that exists: looking must not create one."""
    uri = catalog or DEFAULT_CATALOG
    path = uri.removeprefix("sqlite:///")
    if path != uri and not Path(path).is_file():
        raise NotFoundError(f"no lake at {uri}", kind="lake", name=uri, hints=["name one with --catalog"])
    return connect(uri, warehouse=warehouse, properties=settings_of(properties))


def settings_of(properties: Sequence[str] | None) -> dict[str, str]:
    """The settings that were given as `key=value`."""
    return dict(map(_setting, properties or ()))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        # what stands there may be a secret
        raise InvalidInputError("expected --property key=value, found another text")
    return key, value
