"""The tables of a catalog's governance, in its own database: who may do what, what was reviewed, what happened."""

import sqlalchemy as sa

GOVERNANCE = sa.MetaData()

REVIEWS = sa.Table(
    "bergline_reviews",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_uuid", sa.String(36), primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("detail", sa.Text),
)
"""Checks and approvals of a table's snapshots; a row is changed and never deleted, so that a reader can lock it."""

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
