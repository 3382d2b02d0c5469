"""`bergline token`: who may use a server."""

import secrets
import shlex
import sys
import time
from typing import Annotated

import pyarrow as pa
import typer

from bergline.arguments import parse_duration
from bergline.catalog.pointer.pointer_store import CATALOG
from bergline.catalog.sql.tokens.revoked_tokens import SqlRevokedTokens
from bergline.cli.durations import parse_milliseconds, parse_time_ms, render_time
from bergline.cli.opening import ANY_CATALOG, LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_rows
from bergline.cli.records import note_change, open_records
from bergline.errors import InvalidInputError

app = typer.Typer(help="Create, rotate and revoke tokens for `bergline serve`.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the token; without --for, also of its principal.")]
ExpiresOption = Annotated[str | None, typer.Option(help="How long it is valid, e.g. 90d, 12h or 30m.")]
_BYTES = 32
_COLUMNS = ("name", "principal", "groups", "created", "expires", "last_used", "old_secret_until")
_REVOKED = pa.schema([(column, pa.string()) for column in ("kind", "name", "issued_before", "revoked")])
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
    group: Annotated[list[str] | None, typer.Option(help="A group of whoever uses the token; may be repeated.")] = None,
    expires_in: ExpiresOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, only this once: just its hash is stored. A missing catalog is created."""
    now_ms = time.time_ns() // 1_000_000
    expires_ms = None if expires_in is None else now_ms + 1000 * parse_duration(expires_in)
    text = _new_secret()
    may_create = {CATALOG} if options.settings().name is None else ANY_CATALOG
    with open_records(options, create=may_create) as records:
        records.tokens.create(name, text, now_ms, expires_ms, principal=principal, groups=group or ())
        note_change(records, "token-create", f"token/{name}")
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
        str, typer.Option(help="How long the old secret keeps working, e.g. 1h; 0m if others may know it.")
    ] = "1h",
    expires_in: ExpiresOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a token a new secret and print it; its lifetime is that of the old one, unless --expires-in is given."""
    now_ms, text = time.time_ns() // 1_000_000, _new_secret()
    overlap_ms = 1000 * parse_duration(overlap)
    with open_records(options) as records:
        expires_ms = records.tokens.rotate(name, text, now_ms, overlap_ms, parse_milliseconds(expires_in))
        note_change(records, "token-rotate", f"token/{name}")
    sys.stderr.write(f"older secrets of `{name}` work until {render_time(now_ms + overlap_ms)} at the latest\n")
    _print_secret(name, text, expires_ms, as_json=as_json)


@app.command("list")
@with_lake
def list_tokens(
    options: LakeOptions,
    as_json: AsJson = False,
) -> None:
    """List tokens by name: principal, groups, when they were created and last used, and when they expire."""
    with open_records(options) as records:
        tokens = records.tokens.all()
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
    name: Annotated[str | None, typer.Argument(help="Name of a token of this catalog.")] = None,
    *,
    jti: Annotated[str | None, typer.Option(metavar="ID", help="The id (jti) of a token of an issuer.")] = None,
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose tokens, an issuer's too: e.g. ann or corp:ann.")
    ] = None,
    issued_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --principal: only those issued before. \\[default: now]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token, or all of a principal; servers notice within seconds, and require tokens even after the last."""
    given = [one for one in (name, jti, principal) if one is not None]
    if len(given) != 1:
        raise InvalidInputError(f"expected one of a token's name, --jti and --principal, found {len(given)} of them")
    if issued_before is not None and principal is None:
        raise InvalidInputError("expected --issued-before with --principal, found it without")
    now_ms = time.time_ns() // 1_000_000
    with open_records(options) as records:
        revoked = SqlRevokedTokens(records.database, records.catalog_name)
        if name is not None:
            records.tokens.revoke(name)
            note_change(records, "token-revoke", f"token/{name}")
        elif jti is not None:
            revoked.revoke_token(jti, now_ms)
            note_change(records, "token-revoke", f"jti/{jti}")
        elif principal is not None:
            before_ms = now_ms if issued_before is None else parse_time_ms(issued_before, now_ms)
            revoked.revoke_principal(principal, before_ms, now_ms)
            records.tokens.revoke_of(principal, before_ms)
            note_change(records, "token-revoke", f"principal/{principal}")
    if as_json:
        print_json({"revoked": given[0]})


@app.command("revoked")
@with_lake
def list_revoked(options: LakeOptions, as_json: AsJson = False) -> None:
    """List revoked tokens of issuers, newest first: ids, and principals with the time before which they were issued."""
    with open_records(options) as records:
        found = SqlRevokedTokens(records.database, records.catalog_name).all()
    rows = [
        {
            "kind": one.kind.value,
            "name": one.name,
            "issued_before": render_time(one.issued_before_ms),
            "revoked": render_time(one.revoked_ms),
        }
        for one in found
    ]
    print_rows(pa.Table.from_pylist(rows, schema=_REVOKED), as_json)


def _new_secret() -> str:
    return f"bl_{secrets.token_urlsafe(_BYTES)}"


def _print_secret(name: str, text: str, expires_ms: int | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "token": text, "expires": render_time(expires_ms)})
    else:
        sys.stdout.write(f"{text}\n")
