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
