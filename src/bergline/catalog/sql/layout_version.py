"""The versions of a catalog database's layout: the numbers of its migrations."""

from typing import Final

LAYOUT_VERSION: Final = 9
"""The current version: the number of migrations."""
LAKE_BRANCHES_VERSION: Final = 9
"""The version that introduced branches of the lake."""
SECURITY_VERSION: Final = 8
"""The version that introduced the tables of security."""
CONTENTION_VERSION: Final = 7
"""The version that introduced the tables by which writers take turns."""
GOVERNANCE_VERSION: Final = 6
"""The version that introduced the tables of governance."""
AUDIT_VERSION: Final = 5
"""From which on the audit log is as it is now."""
RECORDS_VERSION: Final = 2
"""The version that introduced a server's records."""
