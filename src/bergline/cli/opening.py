"""Which lake a command looks at, as its options say."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake import DEFAULT_CATALOG, DEFAULT_NAME, Lake, connect

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
TOKEN_VARIABLE = "BERGLINE_TOKEN"  # noqa: S105  (the name of a variable)
_OTHER_IDENTITIES = ("token", "credential", "rest.auth.type", "header.authorization")


def open_lake(
    catalog: str | None,
    warehouse: str | None,
    properties: Sequence[str] | None,
    name: str = DEFAULT_NAME,
    *,
    may_create: bool = False,
) -> Lake:
    """A lake that exists, unless it may be created: looking must not create one."""
    uri = catalog or DEFAULT_CATALOG
    path = uri.removeprefix("sqlite:///")
    if path != uri and not may_create and not Path(path).is_file():
        raise NotFoundError(f"no lake at {uri}", kind="lake", name=uri, hints=["name one with --catalog"])
    settings = settings_of(properties)
    if is_server(uri):
        settings = _token_of_environment(settings) | settings
    return connect(uri, warehouse=warehouse, name=name, properties=settings)


def is_server(uri: str) -> bool:
    """Whether a catalog is the address of a REST server."""
    return uri.lower().startswith(("http://", "https://"))


def settings_of(properties: Sequence[str] | None) -> dict[str, str]:
    """The settings that were given as `key=value`."""
    return dict(map(_setting, properties or ()))


def _token_of_environment(settings: dict[str, str]) -> dict[str, str]:
    """The token that the environment has for those who give no other identity: a command line can be seen by others."""
    token = os.environ.get(TOKEN_VARIABLE)
    given = {key.lower() for key in settings}
    return {"token": token} if token and given.isdisjoint(_OTHER_IDENTITIES) else {}


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        # what stands there may be a secret
        raise InvalidInputError("expected --property key=value, found another text")
    return key, value
