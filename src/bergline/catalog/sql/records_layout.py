"""Tables of a server's records in the catalog's database: idempotency keys, audit log, tokens, and the trash.

The first two are written in the transaction of the change, so that they exist if and only if it happened; a change that
lost a conflict is in the audit log too, marked as such.
"""

import sqlalchemy as sa

RECORDS = sa.MetaData()

REQUESTS = sa.Table(
    "bergline_requests",
    RECORDS,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("request_key", sa.String(64), primary_key=True),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("metadata_location", sa.Text),
    sa.Column("error", sa.Text, key="body"),
    sa.Column("at_ms", sa.BigInteger, nullable=False, index=True),
)
AUDIT = sa.Table(
    "bergline_audit",
    RECORDS,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("agent", sa.String(255)),
    sa.Column("metadata_location", sa.Text),
    sa.Column("conflict", sa.Text),
)
"""Changes, and those that lost a conflict: `conflict` says to what."""
AUDIT_INDEXES = (
    sa.Index("bergline_audit_at", AUDIT.c.catalog_name, AUDIT.c.at_ms, AUDIT.c.id),
    sa.Index("bergline_audit_resource", AUDIT.c.catalog_name, AUDIT.c.resource, AUDIT.c.at_ms, AUDIT.c.id),
    sa.Index("bergline_audit_principal", AUDIT.c.catalog_name, AUDIT.c.principal, AUDIT.c.at_ms, AUDIT.c.id),
)
"""Indexes by time, overall, per resource and per principal: `newest_audit` reads no more rows than it returns."""
TOKENS = sa.Table(
    "bergline_tokens",
    RECORDS,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_ms", sa.BigInteger),
)

TRASH_LAYOUT = sa.MetaData()
DROPPED_TABLES = sa.Table(
    "bergline_bin",
    TRASH_LAYOUT,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("catalog_name", sa.String(255), nullable=False),
    sa.Column("namespace", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("metadata_location", sa.Text, nullable=False),
    sa.Column("principal", sa.String(255), nullable=False),
    sa.Column("dropped_ms", sa.BigInteger, nullable=False),
    sa.Column("keep_until_ms", sa.BigInteger, nullable=False),
    sa.Column("purges_files", sa.Boolean, nullable=False),
    sa.Column("claimed_until_ms", sa.BigInteger, nullable=False),
    sa.Column("purge_begun", sa.Boolean, nullable=False),
    sa.Column("problem", sa.Text),
)
"""Tables that were dropped and can come back; a row goes away when its table is restored or purged."""
DROPPED_TABLES_INDEXES = (
    sa.Index("bergline_bin_due", DROPPED_TABLES.c.catalog_name, DROPPED_TABLES.c.keep_until_ms),
    sa.Index("bergline_bin_name", DROPPED_TABLES.c.catalog_name, DROPPED_TABLES.c.namespace, DROPPED_TABLES.c.name),
    sa.Index("bergline_bin_dropped", DROPPED_TABLES.c.catalog_name, DROPPED_TABLES.c.dropped_ms, DROPPED_TABLES.c.id),
)
