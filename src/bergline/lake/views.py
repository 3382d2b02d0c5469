"""Opening and creating the views of a lake; a catalog without views raises UnsupportedError."""

from collections.abc import Mapping
from uuid import uuid4

import msgspec
import pyarrow as pa

from bergline.arguments import check_texts
from bergline.catalog.catalog import LoadedView
from bergline.catalog.identifiers import Namespace, TableName
from bergline.format.metadata.updates import AddSchema, AssignUuid, SetLocation, SetProperties
from bergline.format.schema.schema import Schema
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion
from bergline.lake.handle import LakeHandle
from bergline.table.evolution.column_arguments import column_schema
from bergline.table.evolution.definition import new_location
from bergline.table.view import View, new_version, parse_default_namespace


class NewView(msgspec.Struct, frozen=True):
    """A view to be created."""

    sql: str | Mapping[str, str]
    schema: pa.Schema | Schema
    properties: Mapping[str, str] | None = None
    location: str | None = None
    default_namespace: str | Namespace | None = None
    default_catalog: str | None = None


def open_view(lake: LakeHandle, loaded: LoadedView) -> View:
    """A loaded view as a user holds it."""
    return View(lake.catalog, loaded, timing=lake.timing)


def create_view(lake: LakeHandle, name: TableName, new: NewView) -> View:
    """Create a view; InvalidInputError if no view can be like that."""
    namespace, now_ms = new.default_namespace, lake.timing.clock_ms()
    version = new_version(
        new.sql,
        now_ms=now_ms,
        default_namespace=name.namespace if namespace is None else parse_default_namespace(namespace),
        default_catalog=new.default_catalog,
    )
    updates = (
        AssignUuid(str(uuid4())),
        SetLocation(new_location(lake.catalog, name, new.location)),
        SetProperties(check_texts({} if new.properties is None else new.properties, "property")),
        AddSchema(column_schema(new.schema)),
        AddViewVersion(version),
        SetCurrentViewVersion(-1),
    )
    return open_view(lake, lake.catalog.create_view(name, apply_view_updates(None, updates, now_ms=now_ms)))
