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
sa.Index(
    "bergline_pull_requests_open",
    PULL_REQUESTS.c.catalog_name,
    PULL_REQUESTS.c.branch,
    PULL_REQUESTS.c.target,
    unique=True,
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
