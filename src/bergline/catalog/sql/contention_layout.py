"""The tables by which writers of one table take turns, in the catalog's own database; backups leave them out."""

import sqlalchemy as sa

CONTENTION = sa.MetaData()

FOOTPRINTS = sa.Table(
    "bergline_footprints",
    CONTENTION,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("metadata_location", sa.String(1000), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("table_namespace", sa.String(255), nullable=False),
    sa.Column("table_name", sa.String(255), nullable=False),
    sa.Column("table_uuid", sa.Text),
    sa.Column("directory", sa.Text),
    sa.Column("path", sa.Text),
    sa.Index("bergline_footprints_name", "catalog_name", "table_namespace", "table_name"),
)
"""The directories of the files of tables and views, as metadata files say, which never change; a row for each.

Kept so that not all metadata files are read before files are deleted: any row may go. Without a directory, the files
may be anywhere.
"""

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
