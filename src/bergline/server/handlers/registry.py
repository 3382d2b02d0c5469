"""The handler of each endpoint: the function of its name in one of these modules."""

from bergline.governance.endpoints import ENDPOINTS
from bergline.server.context.context import Handler
from bergline.server.handlers import (
    commits,
    config,
    credentials,
    namespaces,
    planning,
    remote_signing,
    tables,
    trash,
    turns,
    views,
)
from bergline.server.handlers.governance import (
    events,
    grants,
    lake_branches,
    pull_requests,
    ref_rules,
    snapshot_reviews,
    webhooks,
)

_TABLES = (commits, config, credentials, namespaces, planning, remote_signing, tables, trash, turns, views)
_GOVERNANCE = (events, grants, lake_branches, pull_requests, ref_rules, snapshot_reviews, webhooks)
_NAMES = {endpoint.name for endpoint in ENDPOINTS}

HANDLERS: dict[str, Handler] = {
    name: function
    for module in (*_TABLES, *_GOVERNANCE)
    for name, function in vars(module).items()
    if name in _NAMES and function.__module__ == module.__name__  # not what a module imports under such a name
}
