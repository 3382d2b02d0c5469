"""`bergline serve`: a lake for every engine, over the Iceberg REST protocol."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bergline.arguments import parse_duration
from bergline.cli.issuers import (
    CLIENT_SECRET_VARIABLE,
    DEFAULT_SCOPES,
    checked_console_url,
    issuer_of,
    oidc_client,
)
from bergline.cli.opening import LakeOptions, open_or_create, with_lake
from bergline.cli.records import KeyFileOption
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.extras import install_hint
from bergline.governance.webhooks.secret_keys import load_keys
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME
from bergline.server.http.settings import AccessLogFormat, OidcIssuer, ServerSettings

try:
    from bergline.server.http.tls import TlsSettings
    from bergline.server.opening import VendingConfig, open_server
    from bergline.server.planning.worker_pool import default_processes
    from bergline.server.start import serve as serve_lake
except ModuleNotFoundError as error:
    if error.name not in {"httptools", "jinja2", "jwt", "starlette", "uvicorn"}:
        raise
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

_OIDC = "OpenID Connect"
_TLS = "TLS"


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
    tls_cert: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Speak TLS with this certificate and its chain (PEM).", rich_help_panel=_TLS),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate's key (PEM).", rich_help_panel=_TLS)
    ] = None,
    tls_client_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Let only clients with a certificate from these authorities (PEM) connect.",
            rich_help_panel=_TLS,
        ),
    ] = None,
    anonymous: Annotated[bool, typer.Option(help="Accept requests without tokens, from other machines too.")] = False,
    vend_credentials: Annotated[
        bool,
        typer.Option(help="Vend the server's own credentials for the object store to clients that ask for them."),
    ] = False,
    assume_role: Annotated[
        str | None,
        typer.Option(
            metavar="ARN", help="Vend credentials of this AWS role instead, temporary and for one table each."
        ),
    ] = None,
    kms_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARN", help="An AWS KMS key that the role's credentials may use through S3; may be repeated."
        ),
    ] = None,
    downscope_gcs: Annotated[
        bool,
        typer.Option(help="Vend tokens for Google Cloud Storage instead, temporary and for one table each."),
    ] = False,
    remote_signing: Annotated[
        bool, typer.Option(help="Sign requests to S3 for clients that ask for it, so that they need no keys.")
    ] = False,
    credentials_lifetime: Annotated[str, typer.Option(help="Lifetime of the role's credentials, 15m to 12h.")] = "1h",
    max_body_mib: Annotated[int, typer.Option(help="The largest body of a request, in MiB.", min=1, max=256)] = 32,
    body_timeout: Annotated[int, typer.Option(help="Seconds to receive a body.", min=1)] = 30,
    request_timeout: Annotated[int, typer.Option(help="Seconds to respond.", min=1)] = 120,
    threads: Annotated[
        int, typer.Option(help="Requests processed at once: as many reads, and as many changes.", min=1, max=1024)
    ] = 16,
    max_waiting_commits: Annotated[
        int, typer.Option(help="Commits that may wait for another one to the same table.", min=1)
    ] = 1000,
    max_connections: Annotated[int, typer.Option(help="Maximum number of connections.", min=1)] = 1000,
    max_metadata_mib: Annotated[
        int, typer.Option(help="The largest metadata file of a table or view, decompressed, in MiB.", min=1, max=1024)
    ] = 256,
    files_per_plan: Annotated[
        int, typer.Option(help="Files that a planned scan names at once; the others are fetched by plan tasks.", min=1)
    ] = 5000,
    planning_processes: Annotated[
        int | None,
        typer.Option(
            help="Processes that plan scans of large tables; 0 for threads. \\[default: half the cores, 1 to 4]",
            min=0,
            max=64,
        ),
    ] = None,
    planning_wait: Annotated[
        float, typer.Option(help="Seconds after which a client that can poll for its plan is told to.", min=0)
    ] = 5.0,
    drop_retention: Annotated[
        str | None,
        typer.Option(help="Keep dropped and purged tables for this time, such as 7d: `undrop` restores them."),
    ] = None,
    oidc_issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Accept tokens (JWT) of this OpenID Connect issuer.", rich_help_panel=_OIDC),
    ] = None,
    oidc_audience: Annotated[
        str | None, typer.Option(help="The audience that its tokens must be for.", rich_help_panel=_OIDC)
    ] = None,
    oidc_alias: Annotated[
        str, typer.Option(help="Prefix of the names of its users and groups.", rich_help_panel=_OIDC)
    ] = "oidc",
    oidc_principal_claim: Annotated[
        str, typer.Option(help="The claim with a user's name.", rich_help_panel=_OIDC)
    ] = "sub",
    oidc_groups_claim: Annotated[
        str, typer.Option(help="The claim with a user's groups.", rich_help_panel=_OIDC)
    ] = "groups",
    oidc_jwks: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where its keys are. \\[default: where its discovery says]", rich_help_panel=_OIDC
        ),
    ] = None,
    max_failed_logins: Annotated[
        int,
        typer.Option(
            help="Tokens that may be refused in a minute, from one address or in one name; 0 for no limit.", min=0
        ),
    ] = 60,
    oidc_client_id: Annotated[
        str | None,
        typer.Option(help="Let browsers sign in to the console, as this client of the issuer.", rich_help_panel=_OIDC),
    ] = None,
    oidc_client_secret_file: Annotated[
        Path | None,
        typer.Option(
            help=f"The client's secret. \\[default: {CLIENT_SECRET_VARIABLE}, or a public client]",
            rich_help_panel=_OIDC,
        ),
    ] = None,
    oidc_scopes: Annotated[
        str | None,
        typer.Option(help=f"What the client asks for. \\[default: {DEFAULT_SCOPES}]", rich_help_panel=_OIDC),
    ] = None,
    console_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The server's address as browsers have it. \\[default: as each request has it]",
            rich_help_panel=_OIDC,
        ),
    ] = None,
    policy_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Also ask this policy about everything that grants allow, in the form of Open Policy Agent.",
        ),
    ] = None,
    event_retention: Annotated[str, typer.Option(help="Keep the event log for this time.")] = "30d",
    audit_retention: Annotated[
        str | None, typer.Option(help="Keep the audit log for this time, e.g. 365d. \\[default: forever]")
    ] = None,
    request_audit_retention: Annotated[
        str, typer.Option(help="Keep the audit of requests that change nothing for this time.")
    ] = "90d",
    audit_reads: Annotated[
        bool,
        typer.Option(help="Also audit reads of metadata, besides credentials, signatures, denials and failed logins."),
    ] = True,
    audit_log: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Write the audit of requests there too, as JSON lines; - is stdout."),
    ] = None,
    access_log: Annotated[
        AccessLogFormat | None, typer.Option(help="Write a line for each request to stderr. \\[default: none]")
    ] = None,
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
    if (tls_cert is None) != (tls_key is None) or (tls_client_ca is not None and tls_cert is None):
        raise InvalidInputError("expected both --tls-cert and --tls-key, and --tls-client-ca only with them")
    tls = None if tls_cert is None or tls_key is None else TlsSettings(tls_cert, tls_key, tls_client_ca)
    settings = options.settings()
    issuers = [issuer_of(alias, given) for alias, given in settings.issuers.items()]
    if oidc_issuer is not None and oidc_audience is not None:
        client = oidc_client(oidc_client_id, oidc_client_secret_file, oidc_scopes, os.environ)
        claims = oidc_principal_claim, oidc_groups_claim
        issuers.append(OidcIssuer(oidc_alias, oidc_issuer, oidc_audience, *claims, oidc_jwks, client))
    elif oidc_client_id is not None and oidc_issuer is None:
        raise InvalidInputError("expected --oidc-issuer with --oidc-client-id, found none")
    elif oidc_issuer is not None or oidc_audience is not None:
        raise InvalidInputError("expected both --oidc-issuer and --oidc-audience, found one of them")
    if issuers and anonymous:
        raise InvalidInputError("expected either --anonymous or issuers of tokens, found both")
    audit_retention_s = None if audit_retention is None else parse_duration(audit_retention)
    if audit_retention_s == 0:  # an empty value could mean nothing or everything: refuse to guess
        raise InvalidInputError("expected --audit-retention longer than 0; without it the audit log is kept forever")
    opening = partial(
        open_server,
        settings.catalog or DEFAULT_CATALOG,
        warehouse=settings.warehouse,
        name=settings.name or DEFAULT_NAME,
        properties=settings.properties,
        places=allow_location or (),
        separator=namespace_separator,
        vend=VendingConfig(assume_role, parse_duration(credentials_lifetime), downscope_gcs, tuple(kms_key or ()))
        if vend_credentials or assume_role or downscope_gcs or kms_key
        else None,
        remote_signing=remote_signing,
        limits=ServerSettings(
            max_body_bytes=max_body_mib * 1024 * 1024,
            body_timeout_s=body_timeout,
            request_timeout_s=request_timeout,
            threads=threads,
            max_waiting_commits=max_waiting_commits,
            max_connections=max_connections,
            max_metadata_bytes=max_metadata_mib * 1024 * 1024,
            files_per_plan=files_per_plan,
            planning_processes=default_processes() if planning_processes is None else planning_processes,
            planning_wait_s=planning_wait,
            drop_retention_s=parse_duration(drop_retention) if drop_retention else 0,
            issuers=tuple(issuers),
            max_failed_logins=max_failed_logins,
            console_url=None if console_url is None else checked_console_url(console_url),
            policy_url=policy_url,
            event_retention_s=parse_duration(event_retention),
            audit_retention_s=audit_retention_s or 0,
            request_audit_retention_s=parse_duration(request_audit_retention),
            audits_reads=audit_reads,
            audit_log=audit_log,
            access_log=access_log,
            webhook_allow=tuple(webhook_allow or ()),
            trusted_proxies=tuple(trusted_proxy or ()),
            secret_keys=load_keys(secrets_key_file, os.environ),
        ),
    )
    serve_lake(open_or_create(opening), host, port, anonymous=anonymous, say=_say, tls=tls)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
