"""What callers may do with the files of tables: it decides which credentials they get and what is signed for them."""

from typing import Protocol

from bergline.catalog.identifiers import TableName


class FileAccess(Protocol):
    """Asked for each load with credentials and each signature, also in the event loop: it must not wait."""

    def may_write(self, principal: str, groups: frozenset[str], table: TableName) -> bool:
        """Whether a caller, who may read the files of a table, may also write and delete them."""
