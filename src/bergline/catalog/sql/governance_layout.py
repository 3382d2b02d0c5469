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

SNAPSHOT_AUTHORS = sa.Table(
    "bergline_snapshot_authors",
    GOVERNANCE,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_uuid", sa.String(36), primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("principal", sa.String(255), nullable=False),
)
"""Who wrote the snapshots of tables with a rule that demands approvals."""
