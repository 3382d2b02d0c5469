"""How clients that publish branches of the lake see the tables that were created on one."""

from typing import Final

BRANCH_TABLES: Final = "bergline-branch-tables"
"""The query that lists these tables in place of the others, and the header, with `true`, with which they are loaded.

Without it they are not found but at their branch: engines might read the rows of a table that has no `main` yet.
"""
