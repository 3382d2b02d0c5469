"""`bergline token`: who may use a server."""

import secrets
import shlex
import sys
import time
from typing import Annotated

import pyarrow as pa
import typer

from bergline.catalog.pointer.pointer_store import CATALOG
from bergline.cli.durations import parse_duration, parse_milliseconds, render_time
from bergline.cli.opening import ANY_CATALOG, LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_rows
from bergline.cli.records import open_records

app = typer.Typer(help="Tokens for `bergline serve`.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the token; unless --for, changes are recorded under it.")]
ExpiresOption = Annotated[str | None, typer.Option(help="How long it is valid, e.g. 90d, 12h or 30m.")]
_BYTES = 32
_COLUMNS = ("name", "principal", "groups", "created", "expires", "last_used", "old_secret_until")
_LISTED = pa.schema([(column, pa.string()) for column in _COLUMNS])


@app.command()
@with_lake
def create(
    options: LakeOptions,
    name: NameArgument,
    *,
    principal: Annotated[
        str | None,
        typer.Option("--for", metavar="PRINCIPAL", help="Whose token it is, if not of somebody with its own name."),
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="A group of who comes with it; may be repeated.")] = None,
    expires_in: ExpiresOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, only this once: just its hash is stored. A missing catalog is created."""
    now_ms = time.time_ns() // 1_000_000
    expires_ms = None if expires_in is None else now_ms + 1000 * parse_duration(expires_in)
    text = _new_secret()
    may_create = {CATALOG} if options.settings().name is None else ANY_CATALOG
    with open_records(options, create=may_create) as records:
        records.access.create(name, text, now_ms, expires_ms, principal=principal, groups=group or ())
        server = f"bergline serve --name {shlex.quote(records.catalog_name)}"
    sys.stderr.write(f"a token for `{server}`; servers of other catalogs do not take it\n")
    _print_secret(name, text, expires_ms, as_json=as_json)


@app.command()
@with_lake
def rotate(
    options: LakeOptions,
    name: NameArgument,
    *,
    overlap: Annotated[
        str, typer.Option(help="How long the old secret goes on working, e.g. 1h; 0m if others may know it.")
    ] = "1h",
    expires_in: ExpiresOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a token a new secret and print it; it lives as long as the old one was to live, unless --expires-in."""
    now_ms, text = time.time_ns() // 1_000_000, _new_secret()
    overlap_ms = 1000 * parse_duration(overlap)
    with open_records(options) as records:
        expires_ms = records.access.rotate(name, text, now_ms, overlap_ms, parse_milliseconds(expires_in))
    sys.stderr.write(f"older secrets of `{name}` work until {render_time(now_ms + overlap_ms)} at the latest\n")
    _print_secret(name, text, expires_ms, as_json=as_json)


@app.command("list")
@with_lake
def list_tokens(
    options: LakeOptions,
    as_json: AsJson = False,
) -> None:
    """List tokens by name: whose they are, their groups, when they were created and last used, and expire."""
    with open_records(options) as records:
        tokens = records.tokens()
    rows = [
        {
            "name": token.name,
            "principal": token.principal,
            "groups": sorted(token.groups),
            "created": render_time(token.created_ms),
            "expires": render_time(token.expires_ms),
            "last_used": render_time(token.last_used_ms),
            "old_secret_until": render_time(token.old_until_ms),
        }
        for token in tokens
    ]
    if as_json:
        print_json(rows)
        return
    shown = [row | {"groups": ", ".join(row["groups"] or ())} for row in rows]
    print_rows(pa.Table.from_pylist(shown, schema=_LISTED), as_json)


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


def _new_secret() -> str:
    return f"bl_{secrets.token_urlsafe(_BYTES)}"


def _print_secret(name: str, text: str, expires_ms: int | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "token": text, "expires": render_time(expires_ms)})
    else:
        sys.stdout.write(f"{text}\n")
