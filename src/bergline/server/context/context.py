"""What handlers work with: the catalog, cached responses and the server's settings."""

from collections.abc import Callable
from functools import partial

from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.directories.staged_tables import SqlStagedTables
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.catalog.sql.rules.ref_guard import SqlRefGuard
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.governance.audit.store import SqlAuditedRequests
from bergline.governance.events.store import SqlEvents
from bergline.governance.grants.store import SqlGrants
from bergline.governance.webhooks.addresses import WebhookAddresses
from bergline.governance.webhooks.sender import WebhookSender
from bergline.governance.webhooks.store import SqlWebhooks
from bergline.server.access.access import Access
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.concealment import Concealment
from bergline.server.access.directory_claims import DirectoryClaims
from bergline.server.access.granted_changes import GrantedChanges
from bergline.server.access.granted_files import GrantedFiles
from bergline.server.access.locations import Locations
from bergline.server.access.named_files import NamedFiles
from bergline.server.access.policy import Policy
from bergline.server.access.request_audit import RequestAudit
from bergline.server.cache.load_responses import LoadResponses
from bergline.server.commits.locks import TableLocks
from bergline.server.commits.overtaken_clients import OvertakenClients
from bergline.server.commits.replayed_files import replays_same_files
from bergline.server.commits.turns import KnownTurns
from bergline.server.context.changed_metadata import ChangedMetadata
from bergline.server.credentials.file_credentials import FileCredentials
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import Vending
from bergline.server.http.metrics import Metrics
from bergline.server.http.request import Request
from bergline.server.http.response import Response
from bergline.server.http.settings import ServerSettings
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.row_reading import RowReading
from bergline.server.planning.submitted_plans import SubmittedPlans
from bergline.server.planning.worker_pool import WorkerPool

Handler = Callable[["ServerContext", Request], Response]


class ServerContext:
    """One catalog as it is served, and the services that handlers work with."""

    def __init__(
        self,
        catalog: PointerCatalog,
        settings: ServerSettings,
        vending: Vending | None = None,
        signer: S3Signer | None = None,
    ) -> None:
        self.catalog = catalog
        self.settings = settings
        self.records = records_of(catalog)
        database, name = self.records.database, self.records.catalog_name
        self.loads = LoadResponses(settings.table_config)
        self.filters = FilterCache()
        self.plan_workers = WorkerPool(catalog.io, settings.planning_processes)
        self.row_reading = RowReading(catalog.io)
        self.submitted_plans = SubmittedPlans()
        self.locks = TableLocks(settings.max_waiting_commits, settings.max_held_bytes // 4)
        self.turns = KnownTurns(lambda table: self.store.read_with_turn(table)[1], settings.max_waiting_commits)
        self.overtaken = OvertakenClients(catalog, self.turns)
        self.metrics = Metrics()
        self.store.digests.noticed = ChangedMetadata(self.records).note
        self.authenticator = Authenticator(
            self.records, issuers=settings.issuers, max_failed_logins=settings.max_failed_logins
        )
        self.events = SqlEvents(database, name)
        self.request_audit = RequestAudit(
            SqlAuditedRequests(database, name),
            file=settings.audit_log,
            retention_s=settings.request_audit_retention_s,
            with_reads=settings.audits_reads,
        )
        self.webhooks = SqlWebhooks(database, name, settings.secret_keys)
        self.webhook_sender = WebhookSender(WebhookAddresses(settings.webhook_allow))
        policy = None if settings.policy_url is None else Policy(settings.policy_url, settings.name)
        self.access = Access(SqlGrants(database, name, from_afar=True), policy=policy)
        rules = catalog.guard.rules if isinstance(catalog.guard, GrantedChanges) else catalog.guard
        replay_check = partial(replays_same_files, catalog.io)
        if isinstance(rules, SqlRefGuard):
            rules.replay_check = replay_check
        catalog.guard = GrantedChanges(self.access, rules, replay_check)
        self.concealment = Concealment(catalog, self.access)
        staged = SqlStagedTables(database, name)
        self.credentials = FileCredentials(vending, signer, GrantedFiles(self.access), staged)
        self.locations = Locations(catalog.io, settings.warehouse)
        self.claims = DirectoryClaims(
            catalog,
            self.locations,
            self.access,
            vends=lambda: self.credentials.are_for_one_table,
            keeps_dropped=lambda: self.settings.drop_retention_s > 0,
        )
        self.named_files = NamedFiles(catalog.io, self.access, self.locations, self.claims)

    @property
    def store(self) -> SqlPointerStore:
        """The pointers; InvalidInputError after the catalog was closed."""
        return sql_store_of(self.catalog)
