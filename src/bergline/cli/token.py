"""`bergline token`: who may use a server."""

import secrets
import shlex
import sys
import time
from typing import Annotated

import pyarrow as pa
import typer

from bergline.catalog.pointer.pointer_store import CATALOG
from bergline.cli.durations import parse_duration, render_time
from bergline.cli.opening import ANY_CATALOG, CatalogOption, PropertyOption, WarehouseOption
from bergline.cli.records import ServedNameOption, open_records
from bergline.cli.rows import AsJson, print_rows

app = typer.Typer(help="Tokens for `bergline serve`.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Whose token it is; changes are recorded under this name.")]
_BYTES = 32


@app.command()
def create(
    name: NameArgument,
    *,
    expires_in: Annotated[str | None, typer.Option(help="How long it is valid, e.g. 90d, 12h or 30m.")] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    catalog_name: ServedNameOption = None,
    properties: PropertyOption = None,
) -> None:
    """Create a token and print it, only this once: just its hash is stored. A missing catalog is created."""
    now_ms = time.time_ns() // 1_000_000
    expires_ms = None if expires_in is None else now_ms + 1000 * parse_duration(expires_in)
    text = f"bl_{secrets.token_urlsafe(_BYTES)}"
    may_create = {CATALOG} if catalog_name is None else ANY_CATALOG
    with open_records(catalog, warehouse, properties, catalog_name, create=may_create) as records:
        records.create_token(name, text, now_ms, expires_ms)
        server = f"bergline serve --name {shlex.quote(records.catalog_name)}"
    sys.stderr.write(f"a token for `{server}`; servers of other catalogs do not take it\n")
    sys.stdout.write(f"{text}\n")


@app.command("list")
def list_tokens(
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    catalog_name: ServedNameOption = None,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """List tokens by name, with their creation and expiry."""
    with open_records(catalog, warehouse, properties, catalog_name) as records:
        tokens = records.tokens()
    schema = pa.schema([("name", pa.string()), ("created", pa.string()), ("expires", pa.string())])
    rows = [
        {"name": t.name, "created": render_time(t.created_ms), "expires": render_time(t.expires_ms)} for t in tokens
    ]
    print_rows(pa.Table.from_pylist(rows, schema=schema), as_json)


@app.command()
def revoke(
    name: NameArgument,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    catalog_name: ServedNameOption = None,
    properties: PropertyOption = None,
) -> None:
    """Revoke a token; servers notice within seconds, and require tokens even after the last one is revoked."""
    with open_records(catalog, warehouse, properties, catalog_name) as records:
        records.revoke_token(name)
