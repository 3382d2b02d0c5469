"""The handler of each endpoint."""

from bergline.catalog.rest.protocol import endpoints
from bergline.server.handlers import commits, config, credentials, dropped_tables, namespaces, planning, tables, views
from bergline.server.handlers.context import Handler
from bergline.server.handlers.governance import dropped_views

HANDLERS: dict[str, Handler] = {
    endpoints.GET_CONFIG.name: config.get_config,
    endpoints.GET_TOKEN.name: config.get_token,
    endpoints.LIST_NAMESPACES.name: namespaces.list_namespaces,
    endpoints.CREATE_NAMESPACE.name: namespaces.create_namespace,
    endpoints.LOAD_NAMESPACE.name: namespaces.load_namespace,
    endpoints.NAMESPACE_EXISTS.name: namespaces.namespace_exists,
    endpoints.DROP_NAMESPACE.name: namespaces.drop_namespace,
    endpoints.UPDATE_NAMESPACE.name: namespaces.update_namespace,
    endpoints.LIST_TABLES.name: tables.list_tables,
    endpoints.CREATE_TABLE.name: tables.create_table,
    endpoints.LOAD_TABLE.name: tables.load_table,
    endpoints.TABLE_EXISTS.name: tables.table_exists,
    endpoints.COMMIT_TABLE.name: commits.commit_table,
    endpoints.DROP_TABLE.name: dropped_tables.drop_table,
    endpoints.REGISTER_TABLE.name: tables.register_table,
    endpoints.UNREGISTER_TABLE.name: tables.unregister_table,
    endpoints.RENAME_TABLE.name: tables.rename_table,
    endpoints.LOAD_CREDENTIALS.name: credentials.load_credentials,
    endpoints.REPORT_METRICS.name: tables.report_metrics,
    endpoints.PLAN_TABLE_SCAN.name: planning.plan_table_scan,
    endpoints.FETCH_SCAN_TASKS.name: planning.fetch_scan_tasks,
    endpoints.COMMIT_TRANSACTION.name: commits.commit_transaction,
    endpoints.LIST_VIEWS.name: views.list_views,
    endpoints.CREATE_VIEW.name: views.create_view,
    endpoints.LOAD_VIEW.name: views.load_view,
    endpoints.VIEW_EXISTS.name: views.view_exists,
    endpoints.COMMIT_VIEW.name: views.commit_view,
    endpoints.DROP_VIEW.name: views.drop_view,
    endpoints.REGISTER_VIEW.name: views.register_view,
    endpoints.RENAME_VIEW.name: views.rename_view,
    endpoints.LIST_DROPPED_TABLES.name: dropped_tables.list_dropped_tables,
    endpoints.UNDROP_TABLE.name: dropped_tables.undrop_table,
    endpoints.LIST_DROPPED_VIEWS.name: dropped_views.list_dropped_views,
    endpoints.UNDROP_VIEW.name: dropped_views.undrop_view,
}
