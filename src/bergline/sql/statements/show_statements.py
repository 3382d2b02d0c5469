"""What statements ask: SHOW and DESCRIBE; and USE."""

import msgspec

from bergline.sql.statements.statements import Name


class Use(msgspec.Struct, frozen=True):
    """USE: a lake, a namespace, or both."""

    namespace: Name


class ShowCurrentNamespace(msgspec.Struct, frozen=True):
    """SHOW CURRENT NAMESPACE."""


class ShowNamespaces(msgspec.Struct, frozen=True):
    """SHOW NAMESPACES, below one or on the first level."""

    below: Name | None = None
    like: str | None = None


class ShowTables(msgspec.Struct, frozen=True):
    """SHOW TABLES, of a namespace or of the current one."""

    namespace: Name | None = None
    like: str | None = None


class ShowTableExtended(msgspec.Struct, frozen=True):
    """SHOW TABLE EXTENDED: tables whose names match, each with all about it."""

    namespace: Name | None
    like: str


class ShowViews(msgspec.Struct, frozen=True):
    """SHOW VIEWS, of a namespace or of the current one."""

    namespace: Name | None = None
    like: str | None = None


class ShowCatalogs(msgspec.Struct, frozen=True):
    """SHOW CATALOGS."""

    like: str | None = None


class ShowProcedures(msgspec.Struct, frozen=True):
    """SHOW PROCEDURES, of a namespace or of all."""

    namespace: Name | None = None
    like: str | None = None


class ShowColumns(msgspec.Struct, frozen=True):
    """SHOW COLUMNS."""

    table: Name


class ShowCreateTable(msgspec.Struct, frozen=True):
    """SHOW CREATE TABLE."""

    table: Name


class ShowProperties(msgspec.Struct, frozen=True):
    """SHOW TBLPROPERTIES, all or one."""

    table: Name
    key: str | None = None


class ShowPartitions(msgspec.Struct, frozen=True):
    """SHOW PARTITIONS; `values` are those that must be there, as text by the name of the partition field."""

    table: Name
    values: dict[str, str | None] = {}


class DescribeTable(msgspec.Struct, frozen=True):
    """DESCRIBE TABLE, or of one column."""

    table: Name
    extended: bool = False
    column: str | None = None


class DescribeNamespace(msgspec.Struct, frozen=True):
    """DESCRIBE NAMESPACE."""

    namespace: Name
    extended: bool = False


Show = (
    ShowCurrentNamespace
    | ShowNamespaces
    | ShowTables
    | ShowTableExtended
    | ShowViews
    | ShowCatalogs
    | ShowProcedures
    | ShowColumns
    | ShowCreateTable
    | ShowProperties
    | ShowPartitions
    | DescribeTable
    | DescribeNamespace
)
