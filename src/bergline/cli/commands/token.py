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
from bergline.cli.opening import ANY_CATALOG, LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_rows
from bergline.cli.records import open_records

app = typer.Typer(help="Tokens for `bergline serve`.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Whose token it is; changes are recorded under this name.")]
_BYTES = 32


@app.command()
@with_lake
def create(
    options: LakeOptions,
    name: NameArgument,
    *,
    expires_in: Annotated[str | None, typer.Option(help="How long it is valid, e.g. 90d, 12h or 30m.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, only this once: just its hash is stored. A missing catalog is created."""
    now_ms = time.time_ns() // 1_000_000
    expires_ms = None if expires_in is None else now_ms + 1000 * parse_duration(expires_in)
    text = f"bl_{secrets.token_urlsafe(_BYTES)}"
    may_create = {CATALOG} if options.settings().name is None else ANY_CATALOG
    with open_records(options, create=may_create) as records:
        records.create_token(name, text, now_ms, expires_ms)
        server = f"bergline serve --name {shlex.quote(records.catalog_name)}"
    sys.stderr.write(f"a token for `{server}`; servers of other catalogs do not take it\n")
    if as_json:
        print_json({"name": name, "token": text, "expires": render_time(expires_ms)})
    else:
        sys.stdout.write(f"{text}\n")


@app.command("list")
@with_lake
def list_tokens(
    options: LakeOptions,
    as_json: AsJson = False,
) -> None:
    """List tokens by name, with their creation and expiry."""
    with open_records(options) as records:
        tokens = records.tokens()
    schema = pa.schema([("name", pa.string()), ("created", pa.string()), ("expires", pa.string())])
    rows = [
        {"name": t.name, "created": render_time(t.created_ms), "expires": render_time(t.expires_ms)} for t in tokens
    ]
    print_rows(pa.Table.from_pylist(rows, schema=schema), as_json)


@app.command()
@with_lake
def revoke(
    options: LakeOptions,
    name: NameArgument,
    as_json: AsJson = False,
) -> None:
    """Revoke a token; servers notice within seconds, and require tokens even after the last one is revoked."""
    with open_records(options) as records:
        records.revoke_token(name)
    if as_json:
        print_json({"revoked": name})
