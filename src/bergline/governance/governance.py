"""What a catalog keeps beside its tables; None for everything that it does not keep.

All callers ask here, so that only this module knows the kinds of catalogs.
"""

from collections.abc import Callable

from bergline.catalog.at_ref.catalog_at_ref import CatalogAtRef
from bergline.catalog.catalog import Catalog
from bergline.catalog.protection.kept_rules import KeptRules
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.sql.records import find_sql_store
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.governance.events.client import RestEvents
from bergline.governance.events.events import EventLog
from bergline.governance.events.store import SqlEvents
from bergline.governance.granted_catalog import GrantedCatalog
from bergline.governance.grants.client import RestAccess
from bergline.governance.grants.management import AccessManagement
from bergline.governance.grants.store import SqlGrants
from bergline.governance.lake_branches.client import RestLakeBranches
from bergline.governance.lake_branches.model import LakeBranches
from bergline.governance.lake_branches.protocol import LIST_LAKE_BRANCHES
from bergline.governance.lake_branches.store import SqlLakeBranches
from bergline.governance.pull_requests.client import RestPullRequests
from bergline.governance.pull_requests.direct import DirectPullRequests, PublishTables
from bergline.governance.pull_requests.model import PullRequestCalls
from bergline.governance.reviews.client import RestSnapshotReviews
from bergline.governance.reviews.model import SnapshotReviews
from bergline.governance.reviews.store import SqlSnapshotReviews
from bergline.governance.rules.client import RestRefRules
from bergline.governance.rules.store import SqlRefRules
from bergline.governance.webhooks.client import RestWebhooks


class Governance:
    """What a catalog keeps; this one keeps nothing."""

    @property
    def access(self) -> AccessManagement | None:
        """Grants, roles and owners."""
        return None

    @property
    def events(self) -> EventLog | None:
        """The log of what happened."""
        return None

    @property
    def webhooks(self) -> RestWebhooks | None:
        """Where a server sends events."""
        return None

    @property
    def rules(self) -> KeptRules | None:
        """Rules about refs of all tables, or of those in a namespace."""
        return None

    @property
    def reviews(self) -> SnapshotReviews | None:
        """Checks and approvals of snapshots."""
        return None

    @property
    def lake_branches(self) -> LakeBranches | None:
        """Branches of the whole lake."""
        return None

    def pull_requests(self, publish: PublishTables, clock_ms: Callable[[], int]) -> PullRequestCalls | None:
        """Its pull requests; a catalog that does not publish by itself uses `publish`."""
        return None


class DatabaseGovernance(Governance):
    """What SQLite and PostgreSQL keep."""

    def __init__(self, catalog: Catalog, store: SqlPointerStore) -> None:
        self._catalog = catalog
        self._store = store

    @property
    def access(self) -> AccessManagement:
        """In the database, for everybody who can connect to it."""
        return SqlGrants(self._store.database, self._store.catalog_name)

    @property
    def events(self) -> EventLog:
        """In the database; UnsupportedError until a server has started a log."""
        log = SqlEvents(self._store.database, self._store.catalog_name)
        log.check_there()
        return log

    @property
    def rules(self) -> KeptRules:
        """In the database."""
        return SqlRefRules(self._store)

    @property
    def reviews(self) -> SnapshotReviews:
        """In the database."""
        return SqlSnapshotReviews(self._catalog, self._store)

    @property
    def lake_branches(self) -> LakeBranches:
        """In the database."""
        return SqlLakeBranches(self._catalog, self._store)

    def pull_requests(self, publish: PublishTables, clock_ms: Callable[[], int]) -> PullRequestCalls:
        """In the database."""
        return DirectPullRequests(self._catalog, self._store, publish, clock_ms)


class ServerGovernance(Governance):
    """What a server keeps; UnsupportedError for the rest."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    @property
    def access(self) -> AccessManagement:
        """On the server."""
        return RestAccess(self._session)

    @property
    def events(self) -> EventLog:
        """On the server."""
        return RestEvents(self._session)

    @property
    def webhooks(self) -> RestWebhooks:
        """On the server, which sends the events."""
        return RestWebhooks(self._session)

    @property
    def rules(self) -> KeptRules:
        """On the server."""
        return RestRefRules(self._session)

    @property
    def reviews(self) -> SnapshotReviews:
        """On the server, which knows who sends them."""
        return RestSnapshotReviews(self._session)

    @property
    def lake_branches(self) -> LakeBranches | None:
        """On the server; None if it has none, as those of others."""
        return RestLakeBranches(self._session) if self._session.calls.has(LIST_LAKE_BRANCHES) else None

    def pull_requests(self, publish: PublishTables, clock_ms: Callable[[], int]) -> PullRequestCalls:
        """On the server, which publishes them."""
        return RestPullRequests(self._session)


class GrantedGovernance(Governance):
    """What one caller may see and change."""

    def __init__(self, catalog: GrantedCatalog) -> None:
        self._catalog = catalog

    @property
    def access(self) -> AccessManagement:
        """All grants, roles and owners, for administrators alone."""
        return self._catalog.management()

    @property
    def lake_branches(self) -> LakeBranches:
        """Those of the server, as the caller may use them."""
        return self._catalog.lake_branches

    def pull_requests(self, publish: PublishTables, clock_ms: Callable[[], int]) -> PullRequestCalls:
        """Those of the server that the caller may see."""
        return self._catalog.pull_requests


def governance_of(catalog: Catalog) -> Governance:
    """What a catalog keeps beside its tables; at a ref of the lake it is the same."""
    if isinstance(catalog, CatalogAtRef):
        return governance_of(catalog.inner)
    if isinstance(catalog, GrantedCatalog):
        return GrantedGovernance(catalog)
    if isinstance(catalog, RestCatalog):
        return ServerGovernance(catalog.session)
    store = find_sql_store(catalog)
    return Governance() if store is None else DatabaseGovernance(catalog, store)
