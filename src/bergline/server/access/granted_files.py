"""What callers may do with the files of a table, by the grants of its catalog."""

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.file_actions import FileActions
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG, table_of
from bergline.server.access.access import Access


class GrantedFiles:
    """Whoever may write to a ref of a table may add files; whoever may also drop the table may delete them."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def actions(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions:
        """What a caller may do; nobody may not by grants that are not the newest."""
        who, one = (principal, groups), table_of(table)
        if not self._access.may(*who, Privilege.WRITE, one):
            return FileActions.READ
        if not self._access.may(*who, Privilege.DROP, one):
            return FileActions.WRITE
        return FileActions.EVERYTHING if self._access.may(*who, Privilege.ADMINISTER, CATALOG) else FileActions.DELETE

    def actions_certainly(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions | None:
        """What a caller may do at the least, without waiting; None where newer grants may allow more."""
        who, one = (principal, groups), table_of(table)
        if self._access.allows_at_once(*who, Privilege.ADMINISTER, CATALOG):
            return FileActions.EVERYTHING
        may_all = all(self._access.allows_at_once(*who, wanted, one) for wanted in (Privilege.WRITE, Privilege.DROP))
        return FileActions.DELETE if may_all else None
