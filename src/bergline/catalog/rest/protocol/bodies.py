"""Request and response bodies of the protocol.

Metadata in responses stays raw JSON, which is parsed like a metadata file.
"""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from bergline.catalog.identifiers import Namespace, TableName
from bergline.format.encoding.integers import Int, Long
from bergline.format.metadata.requirements import Requirement
from bergline.format.partition.sort_order import SortOrder
from bergline.format.partition.spec import PartitionField
from bergline.format.schema.schema import Schema
from bergline.format.view.updates import ViewRequirement
from bergline.format.view.view_metadata import ViewVersion

AnyUpdate = TypeVar("AnyUpdate")
"""An update as we send it (`updates.Update`), or as old and new clients send it (`updates_json.WireUpdate`)."""


class ConfigResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The catalog's configuration: defaults below the client's own, overrides above, and supported endpoints."""

    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    overrides: dict[str, str] = msgspec.field(default_factory=dict)
    endpoints: tuple[str, ...] | None = None
    idempotency_key_lifetime: str | None = None


class CreateNamespaceRequest(msgspec.Struct, frozen=True):
    """A namespace to create."""

    namespace: Namespace
    properties: dict[str, str] | None = None


class GetNamespaceResponse(msgspec.Struct, frozen=True):
    """A namespace with its properties."""

    namespace: Namespace
    properties: dict[str, str] | None = None


class ListNamespacesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Namespaces, and the token of the next page, if any."""

    namespaces: tuple[Namespace, ...] = ()
    next_page_token: str | None = None


class UpdateNamespaceRequest(msgspec.Struct, frozen=True):
    """Properties to remove and to set."""

    removals: tuple[str, ...] | None = None
    updates: dict[str, str] | None = None


class UpdateNamespacePropertiesResponse(msgspec.Struct, frozen=True):
    """Properties that were set, removed, and missing."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...] | None = None


class ListTablesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Tables or views, and the token of the next page, if any."""

    identifiers: tuple[TableName, ...] = ()
    next_page_token: str | None = None


class RequestedSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """The partition spec of a new table, by the column ids of the request's schema."""

    fields: tuple[PartitionField, ...]
    spec_id: Int = 0


class CreateTableRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table to create or to stage; a staged one is created by a commit with assert-create."""

    name: str
    schema: Schema
    location: str | None = None
    partition_spec: RequestedSpec | None = None
    write_order: SortOrder | None = None
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class RegisterTableRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table to register by its metadata file."""

    name: str
    metadata_location: str
    overwrite: bool | None = None


class RegisterViewRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """A view to register by its metadata file."""

    name: str
    metadata_location: str


class RenameRequest(msgspec.Struct, frozen=True):
    """A table or view to rename."""

    source: TableName
    destination: TableName


class StorageCredential(msgspec.Struct, frozen=True):
    """Storage settings and credentials for the files below a prefix."""

    prefix: str
    config: dict[str, str]


class LoadTableResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table; staged if it has no metadata location."""

    metadata: Raw
    metadata_location: str | None = None
    config: dict[str, str] | None = None
    storage_credentials: tuple[StorageCredential, ...] | None = None
    read_restrictions: Any = None
    """Whatever a server sends: see `read_restrictions`."""


class LoadCredentialsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Fresh credentials for the files of a table."""

    storage_credentials: tuple[StorageCredential, ...]


class CommitTableRequest(msgspec.Struct, Generic[AnyUpdate], frozen=True, rename="kebab", omit_defaults=True):
    """A change to one table; in a transaction with its name."""

    requirements: tuple[Requirement, ...]
    updates: tuple[AnyUpdate, ...]
    identifier: TableName | None = None


class CommitTableResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The table after a commit, or when it was unregistered."""

    metadata_location: str
    metadata: Raw


class CommitTransactionRequest(msgspec.Struct, Generic[AnyUpdate], frozen=True, rename="kebab"):
    """Changes to several tables: all or none."""

    table_changes: tuple[CommitTableRequest[AnyUpdate], ...]


class CreateViewRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A view to create; its version gets the id of the schema given here."""

    name: str
    schema: Schema
    view_version: ViewVersion
    properties: dict[str, str] | None = None
    location: str | None = None


class CommitViewRequest(msgspec.Struct, Generic[AnyUpdate], frozen=True, rename="kebab", omit_defaults=True):
    """A change to a view."""

    updates: tuple[AnyUpdate, ...]
    requirements: tuple[ViewRequirement, ...] | None = None
    identifier: TableName | None = None


class LoadViewResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A view."""

    metadata_location: str
    metadata: Raw
    config: dict[str, str] | None = None


class MetricsRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """Metrics of a client's scan or commit."""

    report_type: str
    table_name: str | None = None


class PlanRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A scan to plan: of a snapshot, or of the appends between two."""

    snapshot_id: Long | None = None
    select: tuple[str, ...] | None = None
    filter: Any | None = None
    min_rows_requested: Long | None = None
    case_sensitive: bool | None = None
    use_snapshot_schema: bool | None = None
    start_snapshot_id: Long | None = None
    end_snapshot_id: Long | None = None
    stats_fields: tuple[str, ...] | None = None


class PlanTableScanResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A scan that is planned, under way, cancelled or failed: its files, and the plan tasks to fetch further ones."""

    status: str
    plan_id: str | None = None
    file_scan_tasks: list[Any] | None = None
    delete_files: list[Any] | None = None
    plan_tasks: tuple[str, ...] | None = None
    error: "ErrorModel | None" = None


class FetchTasksRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a plan to fetch."""

    plan_task: str


class FetchScanTasksResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The files of a part of a plan, and the plan tasks for those that did not fit."""

    file_scan_tasks: list[Any]
    delete_files: list[Any]
    plan_tasks: tuple[str, ...] | None = None


class OAuthTokenResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token, in the form of OAuth2."""

    access_token: str
    token_type: str
    expires_in: int | None = None
    issued_token_type: str | None = None
    scope: str | None = None


class OAuthError(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token error, in the form of OAuth2."""

    error: str
    error_description: str | None = None


class ErrorModel(msgspec.Struct, frozen=True):
    """What went wrong."""

    message: str
    type: str
    code: int
    stack: tuple[str, ...] | UnsetType | None = UNSET


class ErrorResponse(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorModel
