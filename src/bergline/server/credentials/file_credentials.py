"""What the server gives clients for the files of tables: keys, or signatures of their requests."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.staged_tables import SqlStagedTables
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.file_access import FileAccess
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import Vending, requests_credentials, requests_signing
from bergline.server.http.request import Request

_MAX_NOTED = 10_000


class FileCredentials:
    """Where keys and signatures come from, and who gets which."""

    def __init__(
        self, vending: Vending | None, signer: S3Signer | None, file_access: FileAccess, staged_tables: SqlStagedTables
    ) -> None:
        self.vending = vending
        self.signer = signer
        self.file_access = file_access
        self.staged_tables = staged_tables
        self._without: set[TableName] = set()

    @property
    def are_given(self) -> bool:
        """Whether clients get any."""
        return self.vending is not None or self.signer is not None

    @property
    def are_for_one_table(self) -> bool:
        """Whether they open the directories of one table alone."""
        return self.signer is not None or (self.vending is not None and self.vending.is_for_one_table)

    def are_wanted(self, request: Request) -> bool:
        """Whether they are requested with the response, and given."""
        return (self.vending is not None and requests_credentials(request.headers)) or (
            self.signer_for(request) is not None
        )

    def signer_for(self, request: Request) -> S3Signer | None:
        """What signs for the client; None if it asks for no signatures."""
        return None if self.signer is None or not requests_signing(request.headers) else self.signer

    def vending_for(self, request: Request, actions: FileActions) -> Vending | None:
        """What vends keys for a request; None without, and where only signatures, which the client takes, limit it."""
        vending = self.vending
        if vending is None or not requests_credentials(request.headers):
            return None
        is_signed = self.signer_for(request) is not None
        return None if is_signed and actions is FileActions.WRITE and not vending.keeps_files else vending

    def actions(self, request: Request, name: TableName) -> FileActions:
        """What the caller, who may read a table, may do with its files."""
        return self.file_access.actions(request.principal, request.groups, name)

    def note_missing(self, name: TableName) -> bool:
        """Whether this is the first time that there are none for a table."""
        if name in self._without:
            return False
        if len(self._without) >= _MAX_NOTED:
            self._without.clear()
        self._without.add(name)
        return True
