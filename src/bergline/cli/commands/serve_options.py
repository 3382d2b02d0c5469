"""The options of `bergline serve` that belong together, and what they come to."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bergline.arguments import parse_duration
from bergline.cli.issuers import CLIENT_SECRET_VARIABLE, DEFAULT_SCOPES, issuer_of, oidc_client
from bergline.cli.opening import OptionGroup
from bergline.errors import InvalidInputError
from bergline.server.http.settings import AccessLogFormat, OidcIssuer
from bergline.server.http.tls import TlsSettings

_OIDC = "OpenID Connect"
_TLS = "TLS"


class TlsOptions(OptionGroup, frozen=True):
    """TLS: a certificate, its key, and who may connect."""

    tls_cert: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Speak TLS with this certificate and its chain (PEM).", rich_help_panel=_TLS),
    ] = None
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate's key (PEM).", rich_help_panel=_TLS)
    ] = None
    tls_client_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Let only clients with a certificate from these authorities (PEM) connect.",
            rich_help_panel=_TLS,
        ),
    ] = None

    def settings(self) -> TlsSettings | None:
        """Where the files are; None for plain HTTP."""
        if (self.tls_cert is None) != (self.tls_key is None) or (
            self.tls_client_ca is not None and self.tls_cert is None
        ):
            raise InvalidInputError("expected both --tls-cert and --tls-key, and --tls-client-ca only with them")
        if self.tls_cert is None or self.tls_key is None:
            return None
        return TlsSettings(self.tls_cert, self.tls_key, self.tls_client_ca)


class CredentialOptions(OptionGroup, frozen=True):
    """The credentials that clients get for files, or the signatures instead of them."""

    vend_credentials: Annotated[
        bool,
        typer.Option(help="Vend the server's own credentials for the object store to clients that ask for them."),
    ] = False
    assume_role: Annotated[
        str | None,
        typer.Option(
            metavar="ARN", help="Vend credentials of this AWS role instead, temporary and for one table each."
        ),
    ] = None
    kms_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARN", help="An AWS KMS key that the role's credentials may use through S3; may be repeated."
        ),
    ] = None
    downscope_gcs: Annotated[
        bool,
        typer.Option(help="Vend tokens for Google Cloud Storage instead, temporary and for one table each."),
    ] = False
    remote_signing: Annotated[
        bool, typer.Option(help="Sign requests to S3 for clients that ask for it, so that they need no keys.")
    ] = False
    credentials_lifetime: Annotated[str, typer.Option(help="Lifetime of the role's credentials, 15m to 12h.")] = "1h"

    @property
    def are_vended(self) -> bool:
        """Whether clients get credentials."""
        return self.vend_credentials or bool(self.assume_role) or self.downscope_gcs or bool(self.kms_key)


class LimitOptions(OptionGroup, frozen=True):
    """How large and how many requests may be, and how long they may take."""

    max_body_mib: Annotated[int, typer.Option(help="The largest body of a request, in MiB.", min=1, max=256)] = 32
    body_timeout: Annotated[int, typer.Option(help="Seconds to receive a body.", min=1)] = 30
    request_timeout: Annotated[int, typer.Option(help="Seconds to respond.", min=1)] = 120
    threads: Annotated[
        int, typer.Option(help="Requests processed at once: as many reads, and as many changes.", min=1, max=1024)
    ] = 16
    max_waiting_commits: Annotated[
        int, typer.Option(help="Commits that may wait for another one to the same table.", min=1)
    ] = 1000
    max_connections: Annotated[int, typer.Option(help="Maximum number of connections.", min=1)] = 1000
    max_metadata_mib: Annotated[
        int, typer.Option(help="The largest metadata file of a table or view, decompressed, in MiB.", min=1, max=1024)
    ] = 256


class PlanningOptions(OptionGroup, frozen=True):
    """Where and how scans are planned for clients."""

    files_per_plan: Annotated[
        int, typer.Option(help="Files that a planned scan names at once; the others are fetched by plan tasks.", min=1)
    ] = 5000
    planning_processes: Annotated[
        int | None,
        typer.Option(
            help="Processes that plan scans of large tables; 0 for threads. \\[default: half the cores, 1 to 4]",
            min=0,
            max=64,
        ),
    ] = None
    planning_wait: Annotated[
        float, typer.Option(help="Seconds after which a client that can poll for its plan is told to.", min=0)
    ] = 5.0


class OidcOptions(OptionGroup, frozen=True):
    """An OpenID Connect issuer, and the console as its client."""

    oidc_issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Accept tokens (JWT) of this OpenID Connect issuer.", rich_help_panel=_OIDC),
    ] = None
    oidc_audience: Annotated[
        str | None, typer.Option(help="The audience that its tokens must be for.", rich_help_panel=_OIDC)
    ] = None
    oidc_alias: Annotated[
        str, typer.Option(help="Prefix of the names of its users and groups.", rich_help_panel=_OIDC)
    ] = "oidc"
    oidc_principal_claim: Annotated[str, typer.Option(help="The claim with a user's name.", rich_help_panel=_OIDC)] = (
        "sub"
    )
    oidc_groups_claim: Annotated[str, typer.Option(help="The claim with a user's groups.", rich_help_panel=_OIDC)] = (
        "groups"
    )
    oidc_jwks: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where its keys are. \\[default: where its discovery says]", rich_help_panel=_OIDC
        ),
    ] = None
    oidc_client_id: Annotated[
        str | None,
        typer.Option(help="Let browsers sign in to the console, as this client of the issuer.", rich_help_panel=_OIDC),
    ] = None
    oidc_client_secret_file: Annotated[
        Path | None,
        typer.Option(
            help=f"The client's secret. \\[default: {CLIENT_SECRET_VARIABLE}, or a public client]",
            rich_help_panel=_OIDC,
        ),
    ] = None
    oidc_scopes: Annotated[
        str | None,
        typer.Option(help=f"What the client asks for. \\[default: {DEFAULT_SCOPES}]", rich_help_panel=_OIDC),
    ] = None
    console_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The server's address as browsers have it. \\[default: as each request has it]",
            rich_help_panel=_OIDC,
        ),
    ] = None

    def issuers(self, configured: Mapping[str, Mapping[str, str]]) -> tuple[OidcIssuer, ...]:
        """The issuers of `bergline.toml`, and the one of the options."""
        issuers = [issuer_of(alias, given) for alias, given in configured.items()]
        if self.oidc_issuer is not None and self.oidc_audience is not None:
            client = oidc_client(self.oidc_client_id, self.oidc_client_secret_file, self.oidc_scopes, os.environ)
            claims = self.oidc_principal_claim, self.oidc_groups_claim
            issuers.append(
                OidcIssuer(self.oidc_alias, self.oidc_issuer, self.oidc_audience, *claims, self.oidc_jwks, client)
            )
        elif self.oidc_client_id is not None and self.oidc_issuer is None:
            raise InvalidInputError("expected --oidc-issuer with --oidc-client-id, found none")
        elif self.oidc_issuer is not None or self.oidc_audience is not None:
            raise InvalidInputError("expected both --oidc-issuer and --oidc-audience, found one of them")
        return tuple(issuers)


class LogOptions(OptionGroup, frozen=True):
    """What is written down about requests and changes, where, and for how long it is kept."""

    event_retention: Annotated[str, typer.Option(help="Keep the event log for this time.")] = "30d"
    audit_retention: Annotated[
        str | None, typer.Option(help="Keep the audit log for this time, e.g. 365d. \\[default: forever]")
    ] = None
    request_audit_retention: Annotated[
        str, typer.Option(help="Keep the audit of requests that change nothing for this time.")
    ] = "90d"
    audit_reads: Annotated[
        bool,
        typer.Option(help="Also audit reads of metadata, besides credentials, signatures, denials and failed logins."),
    ] = True
    audit_log: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Write the audit of requests there too, as JSON lines; - is stdout."),
    ] = None
    access_log: Annotated[
        AccessLogFormat | None, typer.Option(help="Write a line for each request to stderr. \\[default: none]")
    ] = None

    def audit_retention_s(self) -> int:
        """How long the audit log is kept; 0 for ever."""
        if self.audit_retention is None:
            return 0
        found = parse_duration(self.audit_retention)
        if found == 0:  # an empty value could mean nothing or everything: refuse to guess
            raise InvalidInputError(
                "expected --audit-retention longer than 0; without it the audit log is kept forever"
            )
        return found
