"""Where a table may have orphan files, and whether it is alone there."""

from collections.abc import Iterable, Iterator

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.metadata_files import metadata_directory
from bergline.catalog.table_locations import table_directories
from bergline.errors import RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.paths import escape
from bergline.io.fileio import FileIO
from bergline.io.local import is_temporary
from bergline.io.locations import absolute_location
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.named_files import named_files, named_in_metadata
from bergline.table.orphans.neighbours import DirectorySet, Neighbours

_HIDDEN = ("_", ".")


def places_to_look(io: FileIO, table: LoadedTable, location: str | None, rules: PathRules) -> tuple[str, ...]:
    """The directories to look through: the table's own, or the given one.

    That must be one of them or below one, or one that the table still has files in.
    """
    own = table_directories(table.metadata)
    if location is None:
        return _without_nested(own, HiddenNames(table.metadata), rules)
    asked = absolute_location(location)
    below = rules.below(asked)
    is_own = any(below.startswith(rules.below(place)) for place in (*own, *_old_places(table)))
    if not is_own and not _has_files(io, table, below, rules):
        raise RefusedError(
            f"cannot look for orphan files of `{table.name}` in {asked}: it is no directory of this table",
            hints=[f"its files are in {place}" for place in own],
        )
    return (asked,)


def check_alone(
    catalog: Catalog, table: LoadedTable, places: Iterable[str], rules: PathRules, *, read_all: bool = False
) -> None:
    """RefusedError if another table or view of the catalog has, or had and still uses, files in one of the places."""
    doing = f"remove orphan files of `{table.name}`"
    asked = DirectorySet(rules, places)
    neighbours = Neighbours(catalog, table.name, asked, doing, read_all=read_all)
    for other in neighbours.tables():
        same = other.metadata.table_uuid is not None and other.metadata.table_uuid == table.metadata.table_uuid
        shared = table.metadata.location if same else _shared(neighbours, other, asked, rules)
        if shared is not None:
            raise _not_alone(doing, f"table `{other.name}`", shared)
    for view in neighbours.views():
        own = (view.metadata.location, metadata_directory(view.metadata))
        shared = asked.overlapping(own) or asked.holding([rules.exact(view.metadata_location)])
        if shared is not None:
            raise _not_alone(doing, f"view `{view.name}`", shared)


class HiddenNames:
    """Which names are hidden: those that begin with `_` or `.`, unless a partition field is called so.

    Nor are our own files that a writer left unfinished.
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


def _without_nested(places: list[str], hidden: HiddenNames, rules: PathRules) -> tuple[str, ...]:
    """Places that are not looked through with another one anyway."""

    def is_within(place: str, other: str) -> bool:
        inner, outer = rules.below(place), rules.below(other)
        return inner != outer and inner.startswith(outer) and not hidden.holds(inner[len(outer) :].rstrip("/"))

    once = list({rules.below(p): p for p in reversed(places)}.values())[::-1]  # the first of those that are spelt alike
    return tuple(p for p in once if not any(is_within(p, other) for other in once))


def _old_places(table: LoadedTable) -> Iterator[str]:
    """The directories that a table was in, by the metadata that it still has there."""
    for location in named_in_metadata(table):
        directory, _, name = location.rpartition("/")[0].rpartition("/")
        if name == "metadata" and directory:
            yield directory


def _has_files(io: FileIO, table: LoadedTable, below: str, rules: PathRules) -> bool:
    """Whether a file of the table is in a directory, or in one for partitions there."""
    for location in named_files(io, table):
        name = rules.exact(location)
        if name.startswith(below) and all("=" in part for part in name[len(below) :].split("/")[:-1]):
            return True
    return False


def _shared(neighbours: Neighbours, other: LoadedTable, asked: DirectorySet, rules: PathRules) -> str | None:
    """A place where another table has files too: where it writes, or where one of its files is all the same."""
    if (shared := asked.overlapping(table_directories(other.metadata))) is not None:
        return shared
    return asked.holding(rules.exact(location) for location in neighbours.files_of(other))


def _not_alone(doing: str, other: str, place: str) -> RefusedError:
    return RefusedError(
        f"cannot {doing}: {other} has files in {place} too",
        hints=["give a `location` below it that only this table uses"],
    )
