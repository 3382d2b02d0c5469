"""Two tables on a server with grants, and every way in which a commit to one may name a file of the other."""

import datetime as dt
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa

from bergline import Lake, Table
from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestEntry, ManifestFile
from bergline.scan.manifests import load_entries, load_manifest_list
from support.servers.asgi_client import SCHEMA, AsgiResponse
from support.servers.granted_server import GrantedServer

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
TABLES = "/v1/namespaces/mine/tables"
Body = dict[str, Any]
SET_MAIN: Body = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}


class Stage:
    """`db.orders` with rows, which is hidden from `ann`; `ann` owns `mine.t`, which has rows too."""

    def __init__(self, granted: GrantedServer) -> None:
        self.granted = granted
        self.lake = Lake(granted.context.catalog, "lake")
        granted("root", "POST", "/v1/namespaces", {"namespace": ["mine"]})
        granted.grant("create", "namespace mine", "ann")
        assert granted("ann", "POST", TABLES, {"name": "t", "schema": SCHEMA}).status == 200
        self.theirs, self.mine = (self.table(name) for name in ("db.orders", "mine.t"))

    def table(self, name: str) -> Table:
        """A table with some rows."""
        table = self.lake.load_table(name)
        return table.append(pa.table({"id": [1]}, pa.schema([("id", pa.int64())])))

    def commit(self, *updates: Body, who: str = "ann", **requirements: Any) -> AsgiResponse:
        body = {"requirements": requirements.get("requirements", []), "updates": list(updates)}
        return self.granted(who, "POST", f"{TABLES}/t", body)

    def snapshot(self, manifest_list: str | None, **more: Any) -> Body:
        """An update with a snapshot on top of the table's."""
        metadata = self.mine.refresh().metadata
        return {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 77,
                "parent-snapshot-id": metadata.current_snapshot_id,
                "sequence-number": metadata.last_sequence_number + 1,
                "timestamp-ms": metadata.last_updated_ms + 1,
                "summary": {"operation": "append"},
                "schema-id": 0,
                **({} if manifest_list is None else {"manifest-list": manifest_list}),
                **more,
            },
        }

    def listed(self, *manifests: ManifestFile, below: str | None = None) -> str:
        """The location of a new manifest list in the caller's table."""
        path = f"{below or self.mine.location}/metadata/snap-{uuid4()}.avro"
        number = self.mine.refresh().metadata.last_sequence_number + 1
        numbered = [
            msgspec.structs.replace(m, sequence_number=number, min_sequence_number=min(m.min_sequence_number, number))
            for m in manifests
        ]
        self.lake.catalog.io.create(path, render_manifest_list(numbered, 77, None, number))
        return path

    def manifest(self, *files: DataFile, status: EntryStatus = EntryStatus.ADDED) -> ManifestFile:
        """A new manifest in the caller's table that names data files."""
        metadata, path = self.mine.refresh().metadata, f"{self.mine.location}/metadata/{uuid4()}-m0.avro"
        (like,) = load_manifest_list(self.mine.io, self.mine.current_snapshot)
        numbers = (None, None, None) if status is EntryStatus.ADDED else (76, 1, 1)
        entries = [ManifestEntry(status, file, *numbers) for file in files]
        data = render_manifest(entries, metadata.schema, metadata.spec)
        self.lake.catalog.io.create(path, data)
        counted = {"added_files_count": 0, "existing_files_count": 0, "deleted_files_count": 0}
        counted[f"{status.name.lower()}_files_count"] = len(files)
        return msgspec.structs.replace(
            like, manifest_path=path, manifest_length=len(data), added_snapshot_id=77, **counted
        )


def manifests_of(table: Table) -> list[ManifestFile]:
    return load_manifest_list(table.io, table.refresh().current_snapshot)


def file_of(table: Table) -> DataFile:
    (manifest,) = manifests_of(table)
    (entry,) = load_entries(table.io, manifest, table.metadata)
    return entry.data_file


def statistics(path: str) -> Body:
    return {"snapshot-id": 77, "statistics-path": path, "file-size-in-bytes": 1}


WAYS: dict[str, Callable[[Stage], list[Body]]] = {
    "manifest list": lambda s: [s.snapshot(s.theirs.current_snapshot.manifest_list)],
    "manifest": lambda s: [s.snapshot(s.listed(*manifests_of(s.theirs)))],
    "manifest of v1": lambda s: [s.snapshot(None, manifests=[manifests_of(s.theirs)[0].manifest_path])],
    "data file": lambda s: [s.snapshot(s.listed(s.manifest(file_of(s.theirs))))],
    "data file that is said to be there": lambda s: [
        s.snapshot(s.listed(s.manifest(file_of(s.theirs), status=EntryStatus.EXISTING)))
    ],
    "data file that is said to be deleted": lambda s: [
        s.snapshot(s.listed(s.manifest(file_of(s.theirs), status=EntryStatus.DELETED)))
    ],
    "statistics": lambda s: [
        {
            "action": "set-statistics",
            "statistics": statistics(file_of(s.theirs).file_path)
            | {"file-footer-size-in-bytes": 1, "blob-metadata": []},
        }
    ],
    "statistics of partitions": lambda s: [
        {"action": "set-partition-statistics", "partition-statistics": statistics(file_of(s.theirs).file_path)}
    ],
    "beside its own": lambda s: [s.snapshot(f"{s.mine.location}/../../db/orders/metadata/x.avro")],
}
"""By which a commit names a file of `db.orders`."""
DATA = {"data file", "data file that is said to be there", "data file that is said to be deleted"}
