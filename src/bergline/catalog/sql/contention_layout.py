"""The tables by which writers of one table take turns, in the catalog's own database."""

import sqlalchemy as sa

CONTENTION = sa.MetaData()
