"""Bodies of requests and answers, in the protocol's words.

Metadata in answers stays the bytes that it is: whoever reads it parses it as a metadata file.
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
"""An update as it is sent (`updates.Update`), or as clients old and new send it (`updates_json.WireUpdate`)."""


class ConfigResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Settings of the catalog: defaults stand below the client's own, overrides above; and what the server can do."""

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
    """Namespaces, and the token of the next page where there is one."""

    namespaces: tuple[Namespace, ...] = ()
    next_page_token: str | None = None


class UpdateNamespaceRequest(msgspec.Struct, frozen=True):
    """Properties to remove and to set."""

    removals: tuple[str, ...] | None = None
    updates: dict[str, str] | None = None


class UpdateNamespacePropertiesResponse(msgspec.Struct, frozen=True):
    """Properties that were set, that were removed, and that were not there to be removed."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...] | None = None


class ListTablesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Tables or views, and the token of the next page where there is one."""

    identifiers: tuple[TableName, ...] = ()
    next_page_token: str | None = None


class RequestedSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """The partitioning of a new table, by the column ids of the request's schema."""

    fields: tuple[PartitionField, ...]
    spec_id: Int = 0


class CreateTableRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table to create, or to stage: then it comes into being with a commit that asserts that it does not exist."""

    name: str
    schema: Schema
    location: str | None = None
    partition_spec: RequestedSpec | None = None
    write_order: SortOrder | None = None
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class RegisterTableRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table that exists, by its metadata file."""

    name: str
    metadata_location: str
    overwrite: bool | None = None


class RegisterViewRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """A view that exists, by its metadata file."""

    name: str
    metadata_location: str


class RenameRequest(msgspec.Struct, frozen=True):
    """Another name for a table or view."""

    source: TableName
    destination: TableName


class StorageCredential(msgspec.Struct, frozen=True):
    """Settings for the files below a prefix."""

    prefix: str
    config: dict[str, str]


class LoadTableResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A table; without a metadata location it is only staged."""

    metadata: Raw
    metadata_location: str | None = None
    config: dict[str, str] | None = None
    storage_credentials: tuple[StorageCredential, ...] | None = None


class LoadCredentialsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Fresh settings for the files of a table."""

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
    """What a scan or a commit of a client measured."""

    report_type: str
    table_name: str | None = None


class PlanRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A scan to plan: of a snapshot, or of what came between two."""

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
    """A scan that was planned: its files, and the tasks by which further ones are fetched."""

    status: str
    plan_id: str
    file_scan_tasks: list[Any]
    delete_files: list[Any]
    plan_tasks: tuple[str, ...] | None = None


class FetchTasksRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a plan to fetch."""

    plan_task: str


class FetchScanTasksResult(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The files of a part of a plan, and the tasks by which those are fetched that did not fit."""

    file_scan_tasks: list[Any]
    delete_files: list[Any]
    plan_tasks: tuple[str, ...] | None = None


class OAuthTokenResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token, as OAuth2 words it."""

    access_token: str
    token_type: str
    expires_in: int | None = None
    issued_token_type: str | None = None
    scope: str | None = None


class OAuthError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is no token, as OAuth2 words it."""

    error: str
    error_description: str | None = None


class ErrorModel(msgspec.Struct, frozen=True):
    """What went wrong."""

    message: str
    type: str
    code: int
    stack: tuple[str, ...] | UnsetType | None = UNSET


class ErrorResponse(msgspec.Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: ErrorModel
