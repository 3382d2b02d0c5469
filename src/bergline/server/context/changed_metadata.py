"""Metadata files that are not the ones that were written: an error in the log and a row in the audit log for each."""

import logging
import threading
import time

from bergline.catalog.sql.records import AuditEntry, Records
from bergline.errors import BerglineError

METADATA_CHANGED = "metadata-changed"
"""The operation of such a row in the audit log."""
_LOG = logging.getLogger("bergline.server")
_SERVER = "bergline serve"
_MOST_NOTED = 1000


class ChangedMetadata:
    """Notes each file once while the server runs, however often it is asked for."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._noted: set[str] = set()
        self._lock = threading.Lock()

    def note(self, resource: str, location: str, problem: str) -> None:
        """Note a file; the request that read it fails with an error of its own."""
        with self._lock:
            if location in self._noted or len(self._noted) >= _MOST_NOTED:
                return
            self._noted.add(location)
        _LOG.error("the metadata file of %s is not the one that was written: %s at %s", resource, problem, location)
        now = time.time_ns() // 1_000_000
        entry = AuditEntry(now, _SERVER, METADATA_CHANGED, resource, metadata_location=location)
        try:
            with self._records.database.changing() as connection:
                self._records.add_audit(connection, entry)
        except BerglineError as error:
            _LOG.warning("cannot write to the audit log: %s", error)
