"""The tables by which writers of one table take turns, in the catalog's own database; backups leave them out."""

import sqlalchemy as sa

CONTENTION = sa.MetaData()

# turns
TURNS = sa.Table(
    "bergline_turns",
    CONTENTION,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("holder", sa.String(255), nullable=False),
    sa.Column("since_ms", sa.BigInteger, nullable=False),
    sa.Column("until_ms", sa.BigInteger, nullable=False),
)
"""The latest turn on each table, by the database's clock."""
