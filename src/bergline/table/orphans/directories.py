"""Which directories may contain orphan files of a table, and whether another table shares them."""

from collections.abc import Iterable

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.metadata_files import metadata_directory
from bergline.catalog.table_locations import table_directories, written_directories
from bergline.errors import RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.paths import escape
from bergline.io.local import is_temporary
from bergline.io.locations import absolute_location
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.other_tables import OtherTables

_HIDDEN = ("_", ".")


def directories_to_list(table: LoadedTable, location: str | None, rules: PathRules) -> tuple[str, ...]:
    """The directories to list: the table's own, or the given one.

    The given one must be one of them or below one, or below one that the table has left.
    """
    if location is None:
        return _without_nested(written_directories(table.metadata), HiddenNames(table.metadata), rules)
    requested, own = absolute_location(location), table_directories(table.metadata)
    below = rules.below(requested)
    if not any(below.startswith(rules.below(directory)) for directory in own):
        raise RefusedError(
            f"cannot look for orphan files of `{table.name}` in {requested}: it is not a directory of this table",
            hints=[f"its files are in {directory}" for directory in own],
        )
    return (requested,)


def check_not_shared(
    catalog: Catalog, table: LoadedTable, directories: Iterable[str], rules: PathRules, *, read_all: bool = False
) -> None:
    """RefusedError if another table or view of the catalog has, or had and still uses, files in a directory."""
    operation = f"remove orphan files of `{table.name}`"
    listed = DirectorySet(rules, directories)
    others = OtherTables(catalog, table, listed, operation, read_all=read_all)
    for other in others.tables():
        same = other.metadata.table_uuid is not None and other.metadata.table_uuid == table.metadata.table_uuid
        shared = table.metadata.location if same else _shared(others, other, listed, rules)
        if shared is not None:
            raise _shared_error(operation, f"table `{other.name}`", shared)
    for view in others.views():
        own = (view.metadata.location, metadata_directory(view.metadata))
        shared = listed.overlapping(own) or listed.holding([rules.exact(view.metadata_location)])
        if shared is not None:
            raise _shared_error(operation, f"view `{view.name}`", shared)


class HiddenNames:
    """Which names are hidden: those that begin with `_` or `.`, unless a partition field has that name.

    Unfinished files of our own writers are not hidden either.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        names = {
            field.name for spec in metadata.partition_specs for field in spec.fields if field.name.startswith(_HIDDEN)
        }
        self._partitions = tuple(f"{spelt}=" for name in sorted(names) for spelt in (name, escape(name)))

    def holds(self, relative: str) -> bool:
        """Whether a path below a table's directory is hidden, or lies in a hidden directory."""
        directory, _, name = relative.rpartition("/")
        parts = directory.split("/") if is_temporary(name) else relative.split("/")
        return any(part.startswith(_HIDDEN) and not part.startswith(self._partitions) for part in parts)


def _without_nested(directories: list[str], hidden: HiddenNames, rules: PathRules) -> tuple[str, ...]:
    """Directories without those below another one, which are listed with it anyway."""

    def is_within(directory: str, other: str) -> bool:
        inner, outer = rules.below(directory), rules.below(other)
        return inner != outer and inner.startswith(outer) and not hidden.holds(inner[len(outer) :].rstrip("/"))

    once = list({rules.below(p): p for p in reversed(directories)}.values())[
        ::-1
    ]  # the first of those with the same spelling
    return tuple(p for p in once if not any(is_within(p, other) for other in once))


def _shared(others: OtherTables, other: LoadedTable, listed: DirectorySet, rules: PathRules) -> str | None:
    """A directory that another table also uses: it writes there, or one of its files is there."""
    if (shared := listed.overlapping(table_directories(other.metadata))) is not None:
        return shared
    return listed.holding(rules.exact(location) for location in others.files_of(other))


def _shared_error(operation: str, other: str, directory: str) -> RefusedError:
    return RefusedError(
        f"cannot {operation}: {other} has files in {directory} too",
        hints=["give a `location` below it that only this table uses"],
    )
