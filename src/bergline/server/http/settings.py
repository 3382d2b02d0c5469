"""The settings of a server."""

from enum import StrEnum

import msgspec

from bergline.catalog.rest.protocol.names import UNIT_SEPARATOR
from bergline.governance.webhooks.secret_keys import SecretKeys
from bergline.io.store_properties import is_secret_property


class OidcClient(msgspec.Struct, frozen=True):
    """The console as a client of an issuer, which lets browsers sign in."""

    client_id: str
    secret: str | None = None
    """None for a public client: then PKCE alone says that a code is ours."""
    scopes: str = "openid profile email"

    def __repr__(self) -> str:
        return f"OidcClient({self.client_id!r})"


class OidcIssuer(msgspec.Struct, frozen=True):
    """An OpenID Connect issuer whose tokens are accepted, and which of their claims say who somebody is."""

    alias: str
    """The first part of the names of its principals and groups: `corp` for `corp:alice`."""
    url: str
    audience: str
    principal_claim: str = "sub"
    groups_claim: str = "groups"
    jwks_url: str | None = None
    """Where its keys are, if its discovery document is not to say that."""
    client: OidcClient | None = None
    """None if browsers do not sign in there."""


class AccessLogFormat(StrEnum):
    """How the lines of the access log are written."""

    TEXT = "text"
    JSON = "json"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Names, limits and what clients are given."""

    name: str = "lake"
    warehouse: str | None = None
    separator: str = UNIT_SEPARATOR
    storage: dict[str, str] = {}
    """The settings of object stores that clients may know."""
    table_config: dict[str, str] = {}
    max_body_bytes: int = 32 * 1024 * 1024
    max_held_bytes: int = 256 * 1024 * 1024
    """Of the bodies of all requests under way."""
    max_header_bytes: int = 64 * 1024
    body_timeout_s: float = 30.0
    request_timeout_s: float = 120.0
    threads: int = 16
    max_queued: int = 500
    """Requests that wait for a thread."""
    max_waiting_commits: int = 1000
    """Commits that wait for another one to the same table."""
    max_connections: int = 1000
    max_json_values: int = 1_000_000
    """Of one body."""
    max_metadata_bytes: int = 256 * 1024 * 1024
    """Of a metadata file, unpacked."""
    files_per_plan: int = 5_000
    """How many files a plan names at once; the others are fetched by plan tasks."""
    planning_processes: int = 1
    """How many processes plan scans of large tables; 0 for none: threads plan them."""
    planning_wait_s: float = 5.0
    """How long clients that can ask again wait for a plan; 0 has them ask again for every plan."""
    idempotency_lifetime_s: int = 30 * 60
    drop_retention_s: int = 0
    """How long dropped tables stay in the trash; 0 for none."""
    issuers: tuple[OidcIssuer, ...] = ()
    max_failed_logins: int = 60
    """Tokens that may be refused in a minute, from one address or in one name; 0 for no limit."""
    console_url: str | None = None
    """The console's address as browsers have it; None for that of each request."""
    policy_url: str | None = None
    """Where a policy is asked beside grants; None for none."""
    event_retention_s: int = 30 * 24 * 3600
    audit_retention_s: int = 0
    """How long the audit log is kept; 0 for ever."""
    request_audit_retention_s: int = 90 * 24 * 3600
    """How long the audit of requests is kept; 0 for ever."""
    audits_reads: bool = True
    """Whether the audit of requests has reads of metadata too."""
    audit_log: str | None = None
    """A file for the audit of requests beside the database, `-` for the standard output."""
    access_log: AccessLogFormat | None = None
    """None for no access log."""
    webhook_allow: tuple[str, ...] = ()
    """Hosts and networks that webhooks may be at though they are not public."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that are believed when they say which client a request comes from."""
    secret_keys: SecretKeys = SecretKeys()
    """What the secrets of webhooks are encrypted with."""


def public_settings(properties: dict[str, str]) -> dict[str, str]:
    """The settings of object stores without what may be secret."""
    return {k: v for k, v in properties.items() if not is_secret_property(k)}
