"""The tables of a catalog's governance, in its own database: who may do what, what was reviewed, what happened."""

import sqlalchemy as sa

GOVERNANCE = sa.MetaData()

FORMER_REVIEWS = sa.Table(
    "bergline_reviews",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("table_uuid", sa.String(36), primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("detail", sa.Text),
)
"""Reviews before layout version 8, which do not say for which ref they were given: they count for none."""

STAGED_TABLES = sa.Table(
    "bergline_staged_tables",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("staged_id", sa.String(32), primary_key=True),
    sa.Column("table_namespace", sa.String(255), nullable=False),
    sa.Column("table_name", sa.String(255), nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("directories", sa.Text, nullable=False),
    sa.Column("until_ms", sa.BigInteger, nullable=False),
)
"""Tables that do not exist yet, for whose files requests are signed."""
TOKEN_DETAILS = sa.Table(
    "bergline_token_details",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("principal", sa.String(255)),
    sa.Column("groups", sa.Text),
    sa.Column("last_used_ms", sa.BigInteger),
)
"""What `bergline_tokens` has no column for: whose token it is, unless its own name says so, and its groups as JSON."""
RETIRED_SECRETS = sa.Table(
    "bergline_retired_secrets",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
)
"""Hashes of the secrets that a token had before it was rotated, and until when they are accepted."""
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

EVENTS = sa.Table(
    "bergline_events",
    GOVERNANCE,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("position", sa.BigInteger),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("table_uuid", sa.String(36)),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
"""What happened, written in the transaction of the change; the position is given to committed rows, by a reader."""
_HAS_NO_POSITION = EVENTS.c.position.is_(None)
EVENT_INDEXES = (
    sa.Index(
        "bergline_events_new",
        EVENTS.c.catalog_name,
        EVENTS.c.id,
        sqlite_where=_HAS_NO_POSITION,
        postgresql_where=_HAS_NO_POSITION,
    ),
    sa.Index("bergline_events_position", EVENTS.c.catalog_name, EVENTS.c.position, unique=True),
    sa.Index("bergline_events_subject", EVENTS.c.catalog_name, EVENTS.c.subject, EVENTS.c.position),
)
EVENT_POSITIONS = sa.Table(
    "bergline_event_positions",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
)
"""The last position that was given, in a row that whoever gives positions locks."""
WEBHOOKS = sa.Table(
    "bergline_webhooks",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("webhook_id", sa.String(32), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("types", sa.Text, nullable=False),
    sa.Column("subjects", sa.Text, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("failing_since_ms", sa.BigInteger),
    sa.Column("next_ms", sa.BigInteger, nullable=False),
    sa.Column("claimed_until_ms", sa.BigInteger, nullable=False),
    sa.Column("delivered_ms", sa.BigInteger),
    sa.Column("last_error", sa.Text),
)
"""Where events are sent, with the position up to which they were; the secret signs what is sent."""
DELIVERIES = sa.Table(
    "bergline_deliveries",
    GOVERNANCE,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("webhook_id", sa.String(32), nullable=False),
    sa.Column("message_id", sa.String(64), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("took_ms", sa.BigInteger, nullable=False),
    sa.Column("first_position", sa.BigInteger, nullable=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.Column("events", sa.Integer, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("error", sa.Text),
    sa.Index("bergline_deliveries_of", "catalog_name", "webhook_id", "id"),
)
"""The latest attempts to send events to each webhook."""
DROPPED_VIEWS = sa.Table(
    "bergline_dropped_views",
    GOVERNANCE,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("namespace", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("metadata_location", sa.Text, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("dropped_ms", sa.BigInteger, nullable=False),
    sa.Column("keep_until_ms", sa.BigInteger, nullable=False),
    sa.Index("bergline_dropped_views_due", "catalog_name", "keep_until_ms"),
)
"""Views that were dropped and can come back; a row goes away when its view is restored, or its time is over."""
REF_RULES = sa.Table(
    "bergline_ref_rules",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("namespace", sa.String(255), primary_key=True),
    sa.Column("pattern", sa.String(255), primary_key=True),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)
"""Rules about refs of all tables in a namespace and below it; of all in the catalog, where it is empty."""
LAKE_BRANCHES = sa.Table(
    "bergline_lake_branches",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("tables", sa.Text, nullable=False),
    sa.Column("expires_ms", sa.BigInteger),
)
"""Branches of the whole lake; the patterns of their tables are JSON."""

SNAPSHOT_AUTHORS = sa.Table(
    "bergline_snapshot_authors",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_uuid", sa.String(36), primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("principal", sa.String(255), primary_key=True),
)
"""Who wrote the snapshots of tables with a rule that demands approvals; an id that comes again has several authors."""
PULL_REQUESTS = sa.Table(
    "bergline_pull_requests",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("title", sa.String(255), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("author", sa.String(255), nullable=False),
    sa.Column("branch", sa.String(255), nullable=False),
    sa.Column("target", sa.String(255), nullable=False),
    sa.Column("tables", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("updated_ms", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("published", sa.Text, nullable=False),
    sa.Column("method", sa.String(16)),
)
"""Pull requests; tables and published heads are JSON."""
_IS_OPEN = PULL_REQUESTS.c.state == "open"
OPEN_INDEX = sa.Index(
    "bergline_pull_requests_branch",
    PULL_REQUESTS.c.catalog_name,
    PULL_REQUESTS.c.branch,
    PULL_REQUESTS.c.target,
    sqlite_where=_IS_OPEN,
    postgresql_where=_IS_OPEN,
)

PULL_REQUEST_HISTORY = sa.Table(
    "bergline_pull_request_history",
    GOVERNANCE,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("what", sa.String(16), nullable=False),
    sa.Column("text", sa.Text),
    sa.Column("heads", sa.Text, nullable=False),
)
"""What happened to pull requests, with comments; heads are JSON."""
sa.Index("bergline_pull_request_history_of", PULL_REQUEST_HISTORY.c.catalog_name, PULL_REQUEST_HISTORY.c.number)
ACCESS = sa.Table(
    "bergline_access",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("grants_version", sa.BigInteger, nullable=False),
)
"""One row, counted up by every change of grants, roles and owners, with the version of the last that was not of owners.

Readers of another version read what has changed since.
"""
GRANTS = sa.Table(
    "bergline_grants",
    GOVERNANCE,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False, index=True),
    sa.Column("grantee_kind", sa.String(16), nullable=False),
    sa.Column("grantee", sa.String(255), nullable=False),
    sa.Column("privilege", sa.String(16), nullable=False),
    sa.Column("securable_kind", sa.String(16), nullable=False),
    sa.Column("namespace", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("ref", sa.String(255)),
)
ROLES = sa.Table(
    "bergline_roles",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("role", sa.String(255), primary_key=True),
)
ROLE_MEMBERS = sa.Table(
    "bergline_role_members",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("role", sa.String(255), primary_key=True),
    sa.Column("member_kind", sa.String(16), primary_key=True),
    sa.Column("member", sa.String(255), primary_key=True),
)
OWNERS = sa.Table(
    "bergline_owners",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("securable_kind", sa.String(16), primary_key=True),
    sa.Column("namespace", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("owner_kind", sa.String(16), nullable=False),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Index("bergline_owners_version", "catalog_name", "version"),
)
"""Owners, each with the version since which it is so; one of no kind is nobody, which is kept for a time."""
IS_NOBODYS = OWNERS.c.owner_kind == sa.literal_column("''")
"""A condition for rows of no owner, in words, so that their index is used."""
OWNER_INDEX = sa.Index(
    "bergline_owners_nobody",
    OWNERS.c.catalog_name,
    OWNERS.c.version,
    sqlite_where=IS_NOBODYS,
    postgresql_where=IS_NOBODYS,
)
