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
