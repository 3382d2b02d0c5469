"""Open the catalog to serve, fenced in its warehouse, with the server's settings."""

from collections.abc import Mapping, Sequence

import msgspec

from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.protocol.names import UNIT_SEPARATOR, decode_separator
from bergline.catalog.sql.busy_timeout import DEFAULT_BUSY_TIMEOUT_S
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.lake.opening import CatalogConfig, open_catalog
from bergline.server.context.context import ServerContext
from bergline.server.credentials.gcs_tokens import GcsVending
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.sts import StsVending
from bergline.server.credentials.vending import StaticVending, Vending
from bergline.server.http.settings import ServerSettings, public_settings


class VendingConfig(msgspec.Struct, frozen=True):
    """Vend credentials: the server's own, those of a role that it assumes, or tokens of Google for one table each."""

    role: str | None = None
    lifetime_s: int = 3600
    downscopes_gcs: bool = False
    """Tokens of Google, each limited to one table."""
    kms_keys: tuple[str, ...] = ()
    """The keys of AWS KMS, by ARN, with which files are encrypted."""


def open_server(
    uri: str,
    *,
    warehouse: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
    places: Sequence[str] = (),
    separator: str | None = None,
    vend: VendingConfig | None = None,
    remote_signing: bool = False,
    limits: ServerSettings = ServerSettings(),  # noqa: B008  (never changes)
    create: bool = True,
) -> ServerContext:
    """Open a catalog in SQLite or PostgreSQL, whose files are all in the warehouse or in `places`."""
    given = dict(properties or {})
    most = limits.max_metadata_bytes
    config = CatalogConfig(uri, warehouse, name, given, DEFAULT_BUSY_TIMEOUT_S, tuple(places), most, create)
    catalog = open_catalog(config)
    if not isinstance(catalog, PointerCatalog):
        raise UnsupportedError("expected a catalog of metadata pointers to serve, found another server's")
    if catalog.warehouse is None and not places:
        catalog.close()
        raise InvalidInputError(
            "expected a warehouse, found none: the server would touch no file",
            hints=["--warehouse s3://bucket/path says where new tables go, --allow-location where others are already"],
        )
    settings = msgspec.structs.replace(
        limits,
        name=name,
        warehouse=catalog.warehouse,
        separator=UNIT_SEPARATOR if separator is None else decode_separator(separator),
        storage=public_settings(given),
    )
    try:
        signer = S3Signer(given) if remote_signing else None
        return ServerContext(catalog, settings, _vending(given, vend), signer)
    except BaseException:
        catalog.close()
        raise


def _vending(properties: Mapping[str, str], vend: VendingConfig | None) -> Vending | None:
    if vend is None:
        return None
    if vend.role and vend.downscopes_gcs:
        raise InvalidInputError("expected a role of AWS or tokens of Google to vend, found both")
    if vend.kms_keys and not vend.role:
        raise InvalidInputError(
            "expected a role whose credentials may use keys of KMS, found none",
            hints=["give one with --assume-role ARN"],
        )
    if vend.downscopes_gcs:
        return GcsVending(properties)
    if vend.role:
        return StsVending(properties, vend.role, vend.lifetime_s, kms_keys=vend.kms_keys)
    return StaticVending(properties)
