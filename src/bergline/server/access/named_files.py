"""Which files a commit may name under grants: the table's own, and data files that the caller may read.

Whoever names a file can have it read by those who may more: by the server, which plans scans, and by the operator's
maintenance. Files that are not the table's own are never deleted with it (`OwnFiles`).
"""

from collections.abc import Callable, Iterable, Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.table_locations import OwnFiles, directories_set
from bergline.errors import BerglineError, FormatError, NotFoundError, RefusedError, UnsupportedError
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.format.metadata.updates import (
    AddSnapshot,
    SetPartitionStatistics,
    SetStatistics,
    Update,
)
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_columns, load_manifest_lists
from bergline.server.access.access import Access
from bergline.server.access.directory_claims import DirectoryClaims
from bergline.server.access.locations import Locations
from bergline.table.manifests.external_files import live_at

_HINT = "an administrator of the catalog can commit it"


class NamedFiles:
    """Checks what commits name, before they are made."""

    def __init__(self, io: FileIO, access: Access, locations: Locations, claims: DirectoryClaims) -> None:
        self._io = io
        self._access = access
        self._locations = locations
        self._claims = claims

    def check_updates(
        self,
        who: tuple[str, frozenset[str]],
        name: TableName,
        base: Callable[[], TableMetadata | None],
        updates: Sequence[Update],
    ) -> None:
        """RefusedError for files that the caller may not name; `base` is the table before, if it is there."""
        if not any(isinstance(u, AddSnapshot | SetStatistics | SetPartitionStatistics) for u in updates):
            return
        if self._is_exempt(who):
            return
        before = base()
        own = OwnFiles(before, directories_set(updates))
        known = {} if before is None else before.snapshots_by_id
        added = [u.snapshot for u in updates if isinstance(u, AddSnapshot)]
        new = [s for s in added if not _is_known(s, known.get(s.snapshot_id))]
        stated = [u.statistics for u in updates if isinstance(u, SetStatistics)]
        by_partition = [u.partition_statistics for u in updates if isinstance(u, SetPartitionStatistics)]
        self._check_named(name, own, before, [*_lists(new), *_statistics(stated, by_partition)])
        self._check_listed(who, name, own, before, new)

    def check_registered(self, who: tuple[str, frozenset[str]], name: TableName, metadata: TableMetadata) -> None:
        """RefusedError for a metadata file that names what the caller may not name."""
        if self._is_exempt(who):
            return
        own = OwnFiles(metadata)
        stated = _statistics(metadata.statistics, metadata.partition_statistics)
        logged = [entry.metadata_file for entry in metadata.metadata_log]
        self._check_named(name, own, None, [*_lists(metadata.snapshots), *stated, *logged])
        self._check_listed(who, name, own, None, metadata.snapshots)

    def check_planned(
        self, who: tuple[str, frozenset[str]], name: TableName, metadata: TableMetadata, snapshots: Sequence[Snapshot]
    ) -> None:
        """RefusedError for a scan that would read manifests outside of the table's directories."""
        if self._is_exempt(who):
            return
        own = OwnFiles(metadata)
        self._check_named(name, own, None, _lists(snapshots))
        for listed in load_manifest_lists(self._io, snapshots):
            self._check_named(name, own, None, [m.manifest_path for m in listed])

    def _is_exempt(self, who: tuple[str, frozenset[str]]) -> bool:
        return not self._access.is_active or self._access.may(*who, Privilege.ADMINISTER, CATALOG)

    def _check_named(
        self, name: TableName, own: OwnFiles, base: TableMetadata | None, locations: Iterable[str]
    ) -> None:
        """What metadata and manifest lists name is the table's own, or was named before."""
        foreign = [location for location in locations if not own.has(location)]
        if foreign and base is not None:
            known = {*_lists(base.snapshots), *_statistics(base.statistics, base.partition_statistics)}
            foreign = [location for location in foreign if location not in known]
            if foreign:
                known = {m.manifest_path for listed in load_manifest_lists(self._io, base.snapshots) for m in listed}
                foreign = [location for location in foreign if location not in known]
        if foreign:
            raise RefusedError(
                f"expected files in the directories of table `{name}`, found `{foreign[0][:200]}`", hints=[_HINT]
            )

    def _check_listed(
        self,
        who: tuple[str, frozenset[str]],
        name: TableName,
        own: OwnFiles,
        base: TableMetadata | None,
        snapshots: Sequence[Snapshot],
    ) -> None:
        """The manifests of new snapshots, and the data files in those that are new."""
        if not snapshots:
            return
        try:
            manifests = {m.manifest_path: m for lists in load_manifest_lists(self._io, snapshots) for m in lists}
            self._check_named(name, own, base, manifests)
            known = self._known_manifests(base, snapshots)
            new = [m for path, m in manifests.items() if path not in known]
            foreign = self._foreign_files(own, new)
            if foreign and base is not None:
                lists = load_manifest_lists(self._io, base.snapshots)
                before = {m.manifest_path: m for listed in lists for m in listed}
                foreign -= {path for path, _ in live_at(self._io, before.values(), foreign)}
        except (NotFoundError, FormatError, UnsupportedError) as error:  # what only cannot be had now is no refusal
            raise RefusedError(
                f"cannot look at the files that a commit to table `{name}` names: {error}", hints=[_HINT]
            ) from error
        for directory, location in {path.rpartition("/")[0]: path for path in sorted(foreign)}.items():
            self._check_readable(who, name, directory, location)

    def _known_manifests(self, base: TableMetadata | None, snapshots: Sequence[Snapshot]) -> set[str]:
        """The manifests of the parents that the table has, which were looked at when they came."""
        known = {} if base is None else base.snapshots_by_id
        ids = dict.fromkeys(s.parent_snapshot_id for s in snapshots)
        parents = [known[i] for i in ids if i is not None and i in known]
        try:
            lists = load_manifest_lists(self._io, parents) if parents else []
        except BerglineError:  # then all of them are looked at
            return set()
        return {m.manifest_path for listed in lists for m in listed}

    def _foreign_files(self, own: OwnFiles, manifests: Sequence[ManifestFile]) -> set[str]:
        """Those that are said to be deleted too: whoever reads what a commit took away reads them."""
        foreign: set[str] = set()
        for frame in load_columns(self._io, manifests) if manifests else ():
            foreign.update(path for path in frame["file_path"].unique() if not own.has(path))
        return foreign

    def _check_readable(self, who: tuple[str, frozenset[str]], name: TableName, directory: str, location: str) -> None:
        """A data file is of tables that the caller may read, or where the server itself reads nothing."""
        if not self._locations.is_reachable(location):
            return
        holders = list(self._claims.holders([directory]))
        if not holders or not all(self._access.may(*who, Privilege.READ, holder) for holder in holders):
            raise RefusedError(
                f"expected files in the directories of table `{name}`, or of tables that `{who[0]}` may read, "
                f"found `{location[:200]}`",
                hints=[_HINT],
            )


def _is_known(snapshot: Snapshot, before: Snapshot | None) -> bool:
    """Whether it names what the snapshot of that id names."""
    named = snapshot.manifest_list, snapshot.manifests
    return before is not None and named == (before.manifest_list, before.manifests)


def _lists(snapshots: Iterable[Snapshot]) -> list[str]:
    """What snapshots name themselves: manifest lists, or the manifests of old v1 snapshots."""
    return [p for s in snapshots for p in ((s.manifest_list,) if s.manifest_list else s.manifests or ())]


def _statistics(some: Iterable[StatisticsFile], more: Iterable[PartitionStatisticsFile]) -> list[str]:
    return [*(one.statistics_path for one in some), *(one.statistics_path for one in more)]
