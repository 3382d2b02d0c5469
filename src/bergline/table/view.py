"""A view as a user holds it: a named query in one or more dialects, with its columns."""

from collections.abc import Callable, Iterable, Mapping
from typing import Self

import pyarrow as pa

from bergline.arguments import check_list, check_text, check_texts
from bergline.catalog.catalog import Catalog, Conflicted, LoadedView, ViewChange
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace
from bergline.errors import ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.updates import AddSchema, RemoveProperties, SetProperties
from bergline.format.schema.schema import Schema
from bergline.format.view.updates import AddViewVersion, AssertViewUuid, SetCurrentViewVersion, ViewUpdate
from bergline.format.view.view_metadata import SqlRepresentation, ViewMetadata, ViewVersion
from bergline.table.commits.retry import RetryLoop, Timing, retry_limits
from bergline.table.evolution.column_arguments import column_schema

_LAST_ADDED = -1
DEFAULT_DIALECT = "spark"


class View:
    """`refresh` loads it again; `replace` and `set_properties` are one commit each and move the handle forward."""

    def __init__(self, catalog: Catalog, loaded: LoadedView, *, timing: Timing | None = None) -> None:
        self._catalog = catalog
        self._loaded = loaded
        self._timing = timing or Timing()

    def __repr__(self) -> str:
        return f"View({str(self.name)!r}, {self.metadata_location!r})"

    @property
    def name(self) -> TableName:
        """Namespace and name."""
        return self._loaded.name

    @property
    def metadata(self) -> ViewMetadata:
        """The view's metadata as last loaded."""
        return self._loaded.metadata

    @property
    def metadata_location(self) -> str:
        """The pointer as last loaded."""
        return self._loaded.metadata_location

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.metadata.schema

    @property
    def properties(self) -> dict[str, str]:
        """The properties."""
        return self.metadata.properties

    @property
    def dialects(self) -> list[str]:
        """The dialects of its queries."""
        return sorted(self.metadata.current_version.dialects)

    def sql(self, dialect: str = DEFAULT_DIALECT) -> str:
        """The query in a dialect; NotFoundError if there is none."""
        queries = {
            r.dialect.lower(): r.sql
            for r in self.metadata.current_version.representations
            if isinstance(r, SqlRepresentation)
        }
        try:
            return queries[check_text(dialect, "text for the dialect").lower()]
        except KeyError:
            raise NotFoundError(
                f"no query in dialect `{dialect}` for view `{self.name}`", kind="dialect", name=dialect, known=queries
            ) from None

    def refresh(self) -> Self:
        """Load the view again."""
        self._loaded = self._catalog.load_view(self.name)
        return self

    def replace(
        self,
        sql: str | Mapping[str, str],
        schema: pa.Schema | Schema,
        *,
        properties: Mapping[str, str] | None = None,
        default_namespace: str | Namespace | None = None,
        default_catalog: str | None = None,
    ) -> Self:
        """Replace the query and set properties; older versions stay in the history.

        A default namespace or catalog that is not given stays; `""` is the view's own catalog.
        """

        def updates(base: ViewMetadata) -> tuple[ViewUpdate, ...]:
            version = new_version(
                sql,
                now_ms=self._timing.clock_ms(),
                default_namespace=base.current_version.default_namespace if names is None else names,
                default_catalog=base.current_version.default_catalog if default_catalog is None else default_catalog,
            )
            changed = (SetProperties(wanted),) if wanted else ()
            return *changed, AddSchema(columns), AddViewVersion(version), SetCurrentViewVersion(_LAST_ADDED)

        columns, wanted = column_schema(schema), check_texts(properties or {}, "property")
        names = None if default_namespace is None else parse_default_namespace(default_namespace)
        return self._commit(updates)

    def set_properties(self, changes: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> Self:
        """Set and remove properties."""
        wanted, gone = check_texts(changes or {}, "property"), check_list(remove, "property")
        updates: tuple[ViewUpdate, ...] = (SetProperties(wanted),) if wanted else ()
        if gone:
            updates = (*updates, RemoveProperties(gone))
        return self._commit(lambda _: updates) if updates else self

    def _commit(self, updates: Callable[[ViewMetadata], tuple[ViewUpdate, ...]]) -> Self:
        """Commit on the current view, and retry if others come first."""
        base, view_uuid = self._loaded, self.metadata.view_uuid

        def attempt(_: int) -> LoadedView | Conflicted:
            nonlocal base
            base = self._catalog.load_view(self.name)
            change = ViewChange(base, (AssertViewUuid(view_uuid),), updates(base.metadata))
            try:
                return self._catalog.commit_view(change)
            except ConflictError as error:
                if base.metadata.view_uuid != view_uuid:
                    raise
                return Conflicted(error, (base.metadata_location,))

        loop = RetryLoop(self._timing, lambda: retry_limits([base.metadata], needs_validation=False))
        self._loaded = loop.run(attempt)
        return self


def parse_default_namespace(text: str | Namespace) -> Namespace:
    """A view's default namespace; () if names in its query include their namespace."""
    return () if text == () else parse_namespace(text)


def new_version(
    sql: str | Mapping[str, str], *, now_ms: int, default_namespace: Namespace, default_catalog: str | None = None
) -> ViewVersion:
    """A version of a view, whose schema is the one added last."""
    queries = {DEFAULT_DIALECT: sql} if isinstance(sql, str) else sql
    checked = check_texts(queries, "query")
    if default_catalog is not None:
        check_text(default_catalog, "text for the default catalog")
    if not checked or not all(text.strip() for text in checked.values()):
        raise InvalidInputError("expected a query, or queries by dialect, found none")
    return ViewVersion(
        version_id=1,
        timestamp_ms=now_ms,
        schema_id=_LAST_ADDED,
        summary={"engine-name": "bergline"},
        default_catalog=default_catalog or None,
        default_namespace=default_namespace,
        representations=tuple(SqlRepresentation(text, dialect) for dialect, text in checked.items()),
    )
