"""`bergline serve`: a lake for every engine, over the Iceberg REST protocol."""

import os
import sys
from functools import partial
from typing import Annotated

import typer

from bergline.arguments import parse_duration
from bergline.cli.commands.serve_options import (
    CredentialOptions,
    LimitOptions,
    LogOptions,
    OidcOptions,
    PlanningOptions,
    TlsOptions,
)
from bergline.cli.issuers import checked_console_url
from bergline.cli.opening import LakeOptions, open_or_create, with_lake
from bergline.cli.records import KeyFileOption
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.extras import install_hint
from bergline.governance.webhooks.secret_keys import load_keys
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME
from bergline.server.http.settings import ServerSettings

try:
    from bergline.server.opening import VendingConfig, open_server
    from bergline.server.planning.worker_pool import default_processes
    from bergline.server.start import serve as serve_lake
except ModuleNotFoundError as error:
    if error.name not in {"httptools", "jinja2", "jwt", "starlette", "uvicorn"}:
        raise
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

_MIB = 1024 * 1024

app = typer.Typer()


@app.command()
@with_lake
def serve(
    options: LakeOptions,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback requires tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8181,
    allow_location: Annotated[
        list[str] | None,
        typer.Option(help="A further location where tables may be, e.g. s3://bucket/old; may be repeated."),
    ] = None,
    namespace_separator: Annotated[
        str | None, typer.Option(help="Percent-encoded separator of namespace levels, e.g. %2E. \\[default: %1F]")
    ] = None,
    tls_options: TlsOptions,
    anonymous: Annotated[bool, typer.Option(help="Accept requests without tokens, from other machines too.")] = False,
    credentials: CredentialOptions,
    limits: LimitOptions,
    planning: PlanningOptions,
    drop_retention: Annotated[
        str | None,
        typer.Option(help="Keep dropped and purged tables for this time, such as 7d: `undrop` restores them."),
    ] = None,
    max_failed_logins: Annotated[
        int,
        typer.Option(
            help="Tokens that may be refused in a minute, from one address or in one name; 0 for no limit.", min=0
        ),
    ] = 60,
    oidc: OidcOptions,
    policy_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Also ask this policy about everything that grants allow, in the form of Open Policy Agent.",
        ),
    ] = None,
    logs: LogOptions,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS|NETWORK",
            help="Trust this proxy to report the client of a request (X-Forwarded-For); may be repeated.",
        ),
    ] = None,
    webhook_allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST|NETWORK",
            help="Where webhooks may be though it is not public, e.g. hooks.internal or 10.0.0.0/8; may be repeated.",
        ),
    ] = None,
    secrets_key_file: KeyFileOption = None,
) -> None:
    """Serve a lake to every engine: an Iceberg REST catalog."""
    if not _IS_INSTALLED:
        raise UnsupportedError("cannot serve without the server's parts", hints=[install_hint("server")])
    tls, settings = tls_options.settings(), options.settings()
    issuers = oidc.issuers(settings.issuers)
    if issuers and anonymous:
        raise InvalidInputError("expected either --anonymous or issuers of tokens, found both")
    server_settings = ServerSettings(
        max_body_bytes=limits.max_body_mib * _MIB,
        body_timeout_s=limits.body_timeout,
        request_timeout_s=limits.request_timeout,
        threads=limits.threads,
        max_waiting_commits=limits.max_waiting_commits,
        max_connections=limits.max_connections,
        max_metadata_bytes=limits.max_metadata_mib * _MIB,
        files_per_plan=planning.files_per_plan,
        planning_processes=default_processes() if planning.planning_processes is None else planning.planning_processes,
        planning_wait_s=planning.planning_wait,
        drop_retention_s=parse_duration(drop_retention) if drop_retention else 0,
        issuers=issuers,
        max_failed_logins=max_failed_logins,
        console_url=None if oidc.console_url is None else checked_console_url(oidc.console_url),
        policy_url=policy_url,
        event_retention_s=parse_duration(logs.event_retention),
        audit_retention_s=logs.audit_retention_s(),
        request_audit_retention_s=parse_duration(logs.request_audit_retention),
        audits_reads=logs.audit_reads,
        audit_log=logs.audit_log,
        access_log=logs.access_log,
        webhook_allow=tuple(webhook_allow or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        secret_keys=load_keys(secrets_key_file, os.environ),
    )
    opening = partial(
        open_server,
        settings.catalog or DEFAULT_CATALOG,
        warehouse=settings.warehouse,
        name=settings.name or DEFAULT_NAME,
        properties=settings.properties,
        places=allow_location or (),
        separator=namespace_separator,
        vend=_vending(credentials) if credentials.are_vended else None,
        remote_signing=credentials.remote_signing,
        limits=server_settings,
    )
    serve_lake(open_or_create(opening), host, port, anonymous=anonymous, say=_say, tls=tls)


def _vending(given: CredentialOptions) -> "VendingConfig":
    lifetime_s, keys = parse_duration(given.credentials_lifetime), tuple(given.kms_key or ())
    return VendingConfig(given.assume_role, lifetime_s, given.downscope_gcs, keys)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
