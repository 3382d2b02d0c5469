"""Who may write the files of a table, by the grants of its catalog."""

from bergline.catalog.access.privilege import Privilege
from bergline.catalog.access.securable import table_of
from bergline.catalog.identifiers import TableName
from bergline.server.access.access import Access


class GrantedFiles:
    """Whoever may write to a ref of a table may write its files."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def may_write(self, principal: str, groups: frozenset[str], table: TableName) -> bool:
        """Whether a caller may write; by grants in memory while they are fresh, so that nothing waits then."""
        what = principal, groups, Privilege.WRITE, table_of(table)
        return self._access.allows_at_once(*what) if self._access.is_fresh else self._access.may(*what)
