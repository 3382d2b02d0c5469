"""The tables of security: reserved directories, hashes of metadata files, revoked tokens, audited requests."""

import sqlalchemy as sa

SECURITY = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

RESERVED_DIRECTORIES = sa.Table(
    "bergline_reserved_directories",
    SECURITY,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("directory", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("namespace", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("table_uuid", sa.String(36)),
    sa.Column("owner", sa.String(300)),
    sa.Column("until_ms", sa.BigInteger),
    sa.Index("bergline_reserved_directories_of", "catalog_name", "namespace", "name"),
    sa.Index("bergline_reserved_directories_path", "catalog_name", "directory"),
)
"""Directories with files of tables and views, in canonical spelling: held, once held by one that was dropped, or of a
table that was staged, until a time; with who owned or staged it."""

AUDITED_REQUESTS = sa.Table(
    "bergline_audited_requests",
    SECURITY,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("until_ms", sa.BigInteger),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("address", sa.String(255), nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("agent", sa.String(255)),
    sa.Column("count", sa.BigInteger, nullable=False),
)
"""Reads, credentials, signatures, denials and failed logins: `count` of them, until `until_ms` if it is not one."""
AUDITED_REQUESTS_INDEX = sa.Index(
    "bergline_audited_requests_at", AUDITED_REQUESTS.c.catalog_name, AUDITED_REQUESTS.c.at_ms, AUDITED_REQUESTS.c.id
)

REVIEWS = sa.Table(
    "bergline_target_reviews",
    SECURITY,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("table_uuid", sa.String(36), primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("target", sa.String(255), primary_key=True),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("detail", sa.Text),
)
"""Checks and approvals of a table's snapshots; a row is changed and never deleted, so that a reader can lock it.

`target` is the ref for which a review counts, empty for all of them. By name and UUID: a client that creates a table
chooses its UUID, and may choose that of another.
"""
REVOKED_TOKENS = sa.Table(
    "bergline_revoked_tokens",
    SECURITY,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("issued_before_ms", sa.BigInteger),
    sa.Column("revoked_ms", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("catalog_name", "kind", "name", name="bergline_revoked_tokens_name"),
    sqlite_autoincrement=True,
)
"""Tokens of issuers that are not accepted though they are valid: by their `jti`, or those of a principal by time."""
METADATA_DIGESTS = sa.Table(
    "bergline_metadata_digests",
    SECURITY,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("metadata_location", sa.String(1000), primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
)
"""The metadata files that pointers of tables and views, and of those in the trash, lead to, as they were written.

A pointer that another program moved has no row.
"""
CONSOLE_SESSIONS = sa.Table(
    "bergline_console_sessions",
    SECURITY,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("groups", sa.Text, nullable=False),
    sa.Column("token_id", sa.String(255)),
    sa.Column("issued_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
)
"""Browsers that signed in with an issuer: the hash of what their cookie has, who they are and until when."""
