"""Finds the files in a table's directories that nothing needs; `orphan_sweep` deletes them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum

from bergline.catalog.attempts import looks
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.io.fileio import ListedFile
from bergline.io.locations import normalized, scheme_of
from bergline.table.commits.commit import load_same_table
from bergline.table.expiry.deletion import Progress
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directories import HiddenNames, check_not_shared, directories_to_list
from bergline.table.orphans.plan import OrphanPlan, OrphanRequest, PrefixMismatch, printable
from bergline.table.orphans.referenced_files import ReferencedFiles, ReferenceState

_DAY_MS = 24 * 60 * 60 * 1000
_DEFAULT_AGE_MS = 3 * _DAY_MS
_NAMED_IN_ERRORS = 3
_SAY_EVERY = 1000


class KeptReason(Enum):
    """Why a listed file is kept."""

    NEEDED = "metadata or the catalog needs it"
    RECENT = "it may belong to a commit in progress"
    HIDDEN = "its name is hidden"


def plan_orphans(
    catalog: Catalog, table: LoadedTable, request: OrphanRequest, now_ms: int, progress: Progress | None = None
) -> OrphanPlan:
    """Search the table's directories; raises, and so plans nothing, if any metadata cannot be read."""
    cutoff_ms = _cutoff(request, now_ms)
    rules = PathRules(request.equal_schemes, request.equal_authorities)
    named = ReferencedFiles(catalog.io, rules)
    table = include_newest(catalog, table, named)
    directories = directories_to_list(table, request.location, rules)
    check_not_shared(catalog, table, directories, rules, read_all=request.read_all_tables)
    found: list[ListedFile] = []
    kept: Counter[KeptReason] = Counter()
    for listed, verdict in enumerate(_judge(catalog, table, directories, cutoff_ms, named), 1):
        match verdict:
            case KeptReason():
                kept[verdict] += 1
            case _:
                found.append(verdict)
        if progress and listed % _SAY_EVERY == 0:
            progress(listed, len(found))
    table = include_newest(catalog, table, named)  # files that were committed during the listing are needed as well
    naming = [(file, named.find(file.location)) for file in sorted(found)]
    in_doubt = tuple(file for file, how in naming if how is ReferenceState.IN_DOUBT)
    if in_doubt and request.prefix_mismatch is PrefixMismatch.ERROR:
        raise _mismatch(table, in_doubt, named, rules)
    if progress:
        progress(len(found) + kept.total(), len(found))
    deletable = deletable_namings(request)
    return OrphanPlan(
        table=table.name,
        table_uuid=table.metadata.table_uuid,
        metadata_location=table.metadata_location,
        request=request,
        locations=directories,
        cutoff_ms=cutoff_ms,
        files=tuple(file for file, how in naming if how in deletable),
        in_doubt=in_doubt if ReferenceState.IN_DOUBT not in deletable else (),
        needed=kept[KeptReason.NEEDED] + sum(how is ReferenceState.REFERENCED for _, how in naming),
        recent=kept[KeptReason.RECENT],
        hidden=kept[KeptReason.HIDDEN],
    )


def include_newest(catalog: Catalog, table: LoadedTable | OrphanPlan, named: ReferencedFiles) -> LoadedTable:
    """Add what the table references now; it is loaded again if files vanished because it had moved on."""
    name, table_uuid = (
        (table.name, table.metadata.table_uuid) if isinstance(table, LoadedTable) else (table.table, table.table_uuid)
    )
    tries = looks(f"table `{name}` kept changing while its files were listed")
    while True:
        next(tries)
        newest = load_same_table(catalog, name, table_uuid, table.metadata_location)
        collecting = newest.metadata.properties.get("gc.enabled", "true")
        if collecting.lower() != "true":  # a misspelled value counts as false, too: nothing must be deleted by mistake
            raise RefusedError(
                f"cannot remove orphan files of `{name}`: `gc.enabled` is {collecting}, files may be shared"
            )
        try:
            named.include(newest)
        except NotFoundError:
            if catalog.pointer(name) == newest.metadata_location:
                raise
        else:
            return newest


def list_directories(catalog: Catalog, directories: Sequence[str]) -> Iterator[tuple[str, ListedFile]]:
    """Every file below the directories, with its path relative to the directory."""
    for directory in directories:
        spelt = normalized(directory) if scheme_of(directory) == "file" else directory
        for file in catalog.io.list_files(directory):
            yield file.location[len(spelt) :].lstrip("/"), file


def deletable_namings(request: OrphanRequest) -> frozenset[ReferenceState]:
    """The ways in which metadata may name a file that is deleted nevertheless."""
    bold = request.prefix_mismatch is PrefixMismatch.DELETE
    return frozenset({ReferenceState.UNREFERENCED, ReferenceState.IN_DOUBT} if bold else {ReferenceState.UNREFERENCED})


def _judge(
    catalog: Catalog, table: LoadedTable, directories: Sequence[str], cutoff_ms: int, named: ReferencedFiles
) -> Iterator[KeptReason | ListedFile]:
    """For each file below the directories, why it is kept, or the file itself."""
    hidden = HiddenNames(table.metadata)
    for path, file in list_directories(catalog, directories):
        if hidden.holds(path):
            yield KeptReason.HIDDEN
        elif file.modified_ms >= cutoff_ms:
            yield KeptReason.RECENT
        elif named.find(file.location) is ReferenceState.REFERENCED or catalog.is_own_file(file.location):
            yield KeptReason.NEEDED
        else:
            yield file


def _cutoff(request: OrphanRequest, now_ms: int) -> int:
    cutoff = now_ms - _DEFAULT_AGE_MS if request.older_than_ms is None else request.older_than_ms
    if now_ms - cutoff < _DAY_MS and not request.allow_recent:
        raise RefusedError(
            f"cannot remove orphan files of the last 24 hours: expected an earlier time, found {readable_ms(cutoff)}",
            hints=[
                "active writers would lose their files",
                "if nobody is writing, plan with allow_recent=True",
            ],
        )
    return cutoff


def _mismatch(
    table: LoadedTable, files: Sequence[ListedFile], named: ReferencedFiles, rules: PathRules
) -> RefusedError:
    shown = ", ".join(printable(f.location) for f in files[:_NAMED_IN_ERRORS])
    here = ", ".join(sorted({rules.spell(f.location).prefix for f in files}))
    return RefusedError(
        f"cannot tell whether {len(files)} files of `{table.name}` are orphans: metadata names the same paths, "
        f"under {', '.join(sorted(named.prefixes))}, and they are under {here}, or encoded otherwise: {shown}",
        hints=[
            "say which schemes and authorities are equal with equal_schemes and equal_authorities",
            'leave such files alone with prefix_mismatch="ignore"; "delete" deletes them permanently',
        ],
    )
