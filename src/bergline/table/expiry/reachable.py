"""Which files a change of metadata leaves without any snapshot that needs them."""

import msgspec

from bergline.format.manifest import FileContent, ManifestFile
from bergline.format.metadata import TableMetadata
from bergline.format.snapshot import Snapshot
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.scan.manifests import live_entries, load_manifest_list


class Cleanup(msgspec.Struct, frozen=True):
    """Files that nothing live can need, by kind."""

    content_files: dict[str, FileContent] = {}
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()


def plan_cleanup(io: FileIO, before: TableMetadata, after: TableMetadata) -> Cleanup:
    """Everything reachable before and not after; raises, and so plans nothing, if any metadata cannot be read."""
    expired = [s for s in before.snapshots if s.snapshot_id not in after.snapshots_by_id]
    kept_lists = {normalized(s.manifest_list) for s in after.snapshots if s.manifest_list}
    lists = [s.manifest_list for s in expired if s.manifest_list and normalized(s.manifest_list) not in kept_lists]
    remaining = _manifests(io, after.snapshots) if expired else {}
    candidates = {path: m for path, m in _manifests(io, tuple(expired)).items() if path not in remaining}
    files = {normalized(e.data_file.file_path): e.data_file for e in live_entries(io, candidates.values(), before)}
    if files:
        for entry in live_entries(io, remaining.values(), after):
            files.pop(normalized(entry.data_file.file_path), None)
    return Cleanup(
        content_files={f.file_path: f.content for f in files.values()},
        manifests=tuple(m.manifest_path for m in candidates.values()),
        manifest_lists=tuple(lists),
        statistics=tuple(sorted(_statistics(before) - _statistics(after))),
    )


def still_unneeded(io: FileIO, cleanup: Cleanup, planned: TableMetadata, now: TableMetadata) -> Cleanup:
    """A cleanup planned for one state of a table, without the files that snapshots added since then name again."""
    new = tuple(s for s in now.snapshots if s.snapshot_id not in planned.snapshots_by_id)
    if not new:
        return cleanup
    manifests = _manifests(io, new)
    needed = {normalized(e.data_file.file_path) for e in live_entries(io, manifests.values(), now)}
    return Cleanup(
        content_files={p: kind for p, kind in cleanup.content_files.items() if normalized(p) not in needed},
        manifests=tuple(p for p in cleanup.manifests if normalized(p) not in manifests),
        manifest_lists=cleanup.manifest_lists,
        statistics=tuple(sorted(set(cleanup.statistics) - _statistics(now))),
    )


def _manifests(io: FileIO, snapshots: tuple[Snapshot, ...]) -> dict[str, ManifestFile]:
    return {normalized(m.manifest_path): m for s in snapshots for m in load_manifest_list(io, s)}


def _statistics(metadata: TableMetadata) -> set[str]:
    paths = {s.statistics_path for s in metadata.statistics}
    return paths | {s.statistics_path for s in metadata.partition_statistics}
