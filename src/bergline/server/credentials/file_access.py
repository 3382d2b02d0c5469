"""What callers may do with the files of tables: it decides which credentials they get and what is signed for them."""

import re
from typing import Final, Protocol

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.file_actions import FileActions

METADATA_MARK: Final = ".metadata.json"
"""In the name of each metadata file of a table or view, also of compressed ones."""
VERSION_HINT: Final = "version-hint.text"
_OF_THE_SERVER = re.compile(rf"{re.escape(METADATA_MARK)}|^{re.escape(VERSION_HINT)}", re.IGNORECASE)


class FileAccess(Protocol):
    """Asked for each load with credentials and each signature."""

    def actions(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions:
        """What a caller, who may read the files of a table, may do with them; may wait."""
        ...

    def actions_certainly(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions | None:
        """What a caller may do at the least, in the event loop, where nothing waits; None says nothing."""
        ...


def is_of_the_server(key: str) -> bool:
    """Whether a file is one that the server alone writes: a metadata file, or the hint for the version of one."""
    return _OF_THE_SERVER.search(key.rpartition("/")[2]) is not None
