"""The catalog on AWS Glue: a pointer catalog whose store also publishes schemas in Glue."""

from collections.abc import Mapping

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings, is_glue_property
from bergline.catalog.metadata_files import table_files
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.io.schemes import SchemeFileIO
from bergline.io.store_properties import check_store_properties


def open_glue_catalog(uri: str, properties: Mapping[str, str], warehouse: str | None) -> PointerCatalog:
    """A catalog over a GluePointerStore; both share the cached metadata files."""
    settings = glue_settings(uri, properties)
    io = SchemeFileIO(
        properties=check_store_properties({k: v for k, v in properties.items() if not is_glue_property(k)})
    )
    files = table_files(io)
    return PointerCatalog(GluePointerStore(settings, load=files.load), io, warehouse, files=files)
