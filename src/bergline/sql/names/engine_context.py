"""What a session of an engine has besides the lakes."""

from typing import Protocol

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import Predicate, bind
from bergline.format.schema.schema import Schema
from bergline.sql.names.session_catalog import SessionCatalog
from bergline.table.engine.row_engine import RowEngine
from bergline.table.references.changed_rows import Changelog
from bergline.table.scans.scan import to_predicate


class EngineContext(Protocol):
    """What a session of an engine has besides the lakes."""

    @property
    def user(self) -> str | None:
        """The user who runs statements: the owner of what they create."""
        ...

    @property
    def time_zone(self) -> str:
        """The session's time zone, for times that name none."""
        ...

    @property
    def is_case_sensitive(self) -> bool:
        """Whether a name means only what is spelled exactly like it."""
        ...

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a view, which hides every table of its name."""
        ...

    def has_catalog(self, name: str) -> bool:
        """Whether the engine has a catalog of this name."""
        ...

    def namespaces(self) -> list[str]:
        """The namespaces of the engine's current catalog."""
        ...

    def catalogs(self) -> list[str]:
        """The engine's catalogs that are known so far."""
        ...

    def temporary_views(self) -> list[str]:
        """The names of the session's temporary views."""
        ...

    def create_view(self, name: str, changes: Changelog) -> None:
        """Create or replace a temporary view of changed rows; UnsupportedError where there are no views."""
        ...

    def row_engine(self) -> RowEngine | None:
        """What reads, sorts and rewrites rows for an operation; None for the engine in this process."""
        ...

    def predicate(self, condition: str, schema: Schema) -> Predicate:
        """What holds for exactly the rows that a condition on a table's columns keeps; an error if it is unknown."""
        ...

    def session_catalog(self) -> SessionCatalog:
        """The engine's own catalog of tables; UnsupportedError if there is none."""
        ...

    @property
    def has_partition_functions(self) -> bool:
        """Whether queries may call Iceberg's partition transforms, by the names of `with_partition_functions`."""
        ...


class NoEngine(EngineContext):
    """No engine: there is nothing but the lakes."""

    def __init__(self, time_zone: str = "UTC") -> None:
        self._time_zone = time_zone

    @property
    def user(self) -> str | None:
        return None

    @property
    def time_zone(self) -> str:
        return self._time_zone

    @property
    def is_case_sensitive(self) -> bool:
        return False

    def has_temporary_view(self, name: str) -> bool:
        return False

    def has_catalog(self, name: str) -> bool:
        return False

    def namespaces(self) -> list[str]:
        return []

    def catalogs(self) -> list[str]:
        return []

    def temporary_views(self) -> list[str]:
        return []

    def create_view(self, name: str, changes: Changelog) -> None:
        raise UnsupportedError(
            f"cannot create the temporary view `{name}` without Spark",
            hints=["in Python: `table.changes(before, after)`"],
        )

    def row_engine(self) -> RowEngine | None:
        return None

    def predicate(self, condition: str, schema: Schema) -> Predicate:
        return bind(to_predicate(condition), schema)

    def session_catalog(self) -> SessionCatalog:
        raise UnsupportedError("expected a Spark session for a table of the session catalog, found none")

    @property
    def has_partition_functions(self) -> bool:
        return False
