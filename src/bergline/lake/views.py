"""Views by name, as a lake offers them."""

from collections.abc import Mapping
from uuid import uuid4

import pyarrow as pa

from bergline.arguments import check_texts
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.errors import AlreadyExistsError
from bergline.format.metadata.updates import AddSchema, AssignUuid, SetLocation, SetProperties
from bergline.format.schema.schema import Schema
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion
from bergline.lake.handle import LakeHandle
from bergline.table.evolution.column_arguments import column_schema
from bergline.table.evolution.definition import new_location
from bergline.table.view import View, new_version, parse_default_namespace


class LakeViews:
    """Views share their names with tables; a catalog that has no views raises UnsupportedError."""

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog
        self._timing = lake.timing

    def create_view(
        self,
        name: str | TableName,
        sql: str | Mapping[str, str],
        schema: pa.Schema | Schema,
        *,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        default_namespace: str | Namespace | None = None,
        default_catalog: str | None = None,
        if_not_exists: bool = False,
    ) -> View:
        """A new view of a query in Spark's SQL, or of queries by dialect; names in it are those of its namespace."""
        view = parse_table_name(name)
        version = new_version(
            sql,
            now_ms=self._timing.clock_ms(),
            default_namespace=view.namespace
            if default_namespace is None
            else parse_default_namespace(default_namespace),
            default_catalog=default_catalog,
        )
        updates = (
            AssignUuid(str(uuid4())),
            SetLocation(new_location(self._catalog, view, location)),
            SetProperties(check_texts({} if properties is None else properties, "property")),
            AddSchema(column_schema(schema)),
            AddViewVersion(version),
            SetCurrentViewVersion(-1),
        )
        metadata = apply_view_updates(None, updates, now_ms=self._timing.clock_ms())
        try:
            created = self._catalog.create_view(view, metadata)
        except AlreadyExistsError as error:
            if not if_not_exists or error.kind != "view":
                raise
            return self.load_view(view)
        return View(self._catalog, created, timing=self._timing)

    def load_view(self, name: str | TableName) -> View:
        """The view as it is now."""
        return View(self._catalog, self._catalog.load_view(parse_table_name(name)), timing=self._timing)

    def view_exists(self, name: str | TableName) -> bool:
        """Whether there is such a view; its files are not looked at."""
        view = parse_table_name(name)
        return self._catalog.namespace_exists(view.namespace) and view in self._catalog.list_views(view.namespace)

    def list_views(self, namespace: str | Namespace | None = None) -> list[str]:
        """The views in a namespace, or in all of them."""
        namespaces = self._catalog.list_namespaces() if namespace is None else [parse_namespace(namespace)]
        return [str(v) for n in namespaces for v in self._catalog.list_views(n)]

    def rename_view(self, name: str | TableName, new: str | TableName) -> None:
        """Give a view another name."""
        self._catalog.rename_view(parse_table_name(name), parse_table_name(new))

    def drop_view(self, name: str | TableName) -> None:
        """Forget a view; its files stay."""
        self._catalog.drop_view(parse_table_name(name))

    def undrop_view(self, name: str | TableName, to: str | TableName | None = None) -> View:
        """Bring back the view that was dropped last under a name; `to` is another name for it."""
        new = None if to is None else parse_table_name(to)
        return View(self._catalog, self._catalog.undrop_view(parse_table_name(name), new), timing=self._timing)
