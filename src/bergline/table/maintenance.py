"""Maintenance of a table: compaction, manifests, expiry of snapshots, and orphan files."""

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bergline.arguments import check_list, check_positive, check_text, check_texts, check_whole, shown
from bergline.catalog.metadata_files import metadata_directory
from bergline.datafiles.write.write_spec import delete_write_spec, write_spec
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.metadata.refs import MAIN
from bergline.io.locations import join
from bergline.table.commits.branches import check_write_branch
from bergline.table.commits.operation import CommitStamp, Operation
from bergline.table.compaction_run import CompactionRun
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.expiry.deletion import DEFAULT_THREADS, Progress
from bergline.table.expiry.expire import Cleanup, Expire, ExpiryResult
from bergline.table.expiry.plan import ExpiryPlan
from bergline.table.expiry.planning import PlanExpiry
from bergline.table.expiry.retention import CleanupLevel, ExpiryRequest, parse_level
from bergline.table.handle import TableHandle
from bergline.table.operations.compaction import CompactionRequest, CompactionResult, parse_order, rewrite_kind
from bergline.table.operations.rewrite_manifests import RewriteManifests
from bergline.table.operations.rewrite_options import RewriteOptions, parse_options
from bergline.table.operations.rewrite_position_deletes import PositionDeletesResult
from bergline.table.orphans.plan import OrphanPlan, OrphanRequest, PrefixMismatch
from bergline.table.orphans.search import plan_orphans
from bergline.table.orphans.sweep import SweepResult, sweep_orphans
from bergline.table.position_deletes_run import PositionDeletesRun
from bergline.table.relocation.path_prefix import PathPrefix
from bergline.table.relocation.rewrite_path import RewrittenPaths, find_versions, stage_table_path
from bergline.table.scans.scan import to_predicate
from bergline.table.scans.version import epoch_ms

_MODES: Final = tuple(mode.value for mode in PrefixMismatch)


class TableMaintenance:
    """Each rewrite is one snapshot on a branch; expiry is one commit; deleting orphan files is no commit."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def compact(
        self,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        strategy: str | None = None,
        sort_order: str | Iterable[str] | None = None,
        target_size: int | None = None,
        min_files: int = 2,
        options: Mapping[str, Any] | None = None,
        summary: Mapping[str, str] | None = None,
        engine: RowEngine | None = None,
    ) -> CompactionResult:
        """Rewrite small files, and files with deletes, to files of about the target size.

        This runs in this process, or on Spark's executors if `engine` is `bergline.spark.row_engine(spark)`.

        The filter selects files: those that may hold matching rows. The strategy is "binpack", or "sort" by the
        `sort_order` (`"region, id desc"`, `["bucket(16, id)"]`, `"zorder(id, amount)"`) or the table's own order.
        `options` are those of Iceberg's `rewrite_data_files`, with its names or Python's: `{"rewrite_all": True}`.

        Appends by others never conflict. If others delete rows of files that are being rewritten, these are planned
        again on the new head, a few times, and the rest is committed.
        """
        defaults = RewriteOptions(
            target_file_size_bytes=None if target_size is None else check_positive(target_size, "target_size"),
            min_input_files=check_positive(min_files, "min_files"),
            delete_file_threshold=1,
            remove_dangling_deletes=True,
        )
        request = self._compaction(to_predicate(row_filter), strategy, sort_order, options, defaults, only_fewer=True)
        return self._run_compaction(request, branch, summary, engine)

    def rewrite_data_files(
        self,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        strategy: str | None = None,
        sort_order: str | Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
        summary: Mapping[str, str] | None = None,
        engine: RowEngine | None = None,
    ) -> CompactionResult:
        """Compact with the rules and defaults of Iceberg's `rewrite_data_files`, which differ from those of `compact`.

        Files of older partition specs are rewritten to the current one, or to that of the option `output_spec_id`;
        delete files stay unless `remove_dangling_deletes` is set, except for deletion vectors of rewritten files.
        """
        defaults = RewriteOptions(output_spec_id=self._table.metadata.spec.spec_id)
        request = self._compaction(to_predicate(row_filter), strategy, sort_order, options, defaults, only_fewer=False)
        return self._run_compaction(request, branch, summary, engine)

    def rewrite_position_deletes(
        self,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        options: Mapping[str, Any] | None = None,
        summary: Mapping[str, str] | None = None,
        engine: RowEngine | None = None,
    ) -> PositionDeletesResult:
        """Merge small position delete files, dropping deletes of data files that are gone.

        The filter selects partitions. In format version 3, deletion vectors replace the position delete files of
        version 2. `options` are those of Iceberg's `rewrite_position_delete_files`, with its names or Python's.
        """
        parsed = parse_options({} if options is None else options, "position deletes", RewriteOptions())
        parsed.sizes(delete_write_spec(self._table.metadata).target_file_size)
        predicate, engine = to_predicate(row_filter), check_row_engine(engine)
        run = PositionDeletesRun(self._table, predicate, parsed, branch=branch, summary=summary, engine=engine)
        return run.run()

    def rewrite_manifests(
        self,
        manifests: Iterable[str] | None = None,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        """Rewrite manifests, all or those given by path, to manifests of the target size, grouped by partition."""
        check_write_branch(self._table.metadata, branch)
        operation = RewriteManifests(
            self._table.io,
            paths=None if manifests is None else check_list(manifests, "manifest"),
            branch=branch,
            summary=self._table.snapshot_summary(summary),
        )
        self._table.commit(operation)

    def rewrite_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
    ) -> RewrittenPaths:
        """Stage the table's metadata for another location, with a list of which files to copy where.

        Every location below `source_prefix` is replaced. Versions are names of metadata files: all that the log has, or
        those after `start_version` and up to `end_version`, with the files that only they need. The table itself does
        not change. The default staging location is a new directory in the table's metadata directory.
        """
        source, target = (
            check_text(prefix, f"text for {what}").rstrip("/")
            for prefix, what in ((source_prefix, "source_prefix"), (target_prefix, "target_prefix"))
        )
        if not source or not target or source == target:
            raise InvalidInputError(f"expected two different prefixes, found `{source_prefix}` and `{target_prefix}`")
        if self._table.in_transaction:
            raise InvalidInputError(
                "expected no transaction around rewrite_path, which reads metadata files, found one"
            )
        metadata, io = self._table.metadata, self._table.io
        staging = staging_location or join(metadata_directory(metadata), f"copy-table-staging-{uuid.uuid4()}")
        versions = find_versions(io, self._table.metadata_location, metadata, start_version, end_version)
        prefix = PathPrefix(source, target, check_text(staging, "text for staging_location").rstrip("/"))
        return stage_table_path(io, versions, prefix, file_list=create_file_list)

    def expire(
        self,
        *,
        older_than: dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        level: str | CleanupLevel = CleanupLevel.ALL,
        clean_metadata: bool = False,
        dry_run: bool = False,
        threads: int = DEFAULT_THREADS,
        progress: Progress | None = None,
    ) -> ExpiryResult:
        """Remove snapshots that no live ref protects, and delete the files that only they needed.

        `level` says what is deleted: "all", "metadata" (no data and delete files) or "none". `clean_metadata` also
        removes partition specs and schemas that nothing uses any more. A dry run changes nothing, and reports what
        would be removed. Files are deleted by up to this many `threads`; `progress` is called with the number of files
        done and of all files.
        """
        cleaning = Cleanup(parse_level(level), bool(clean_metadata), check_positive(threads, "threads"), progress)
        request = self._expiry_request(older_than, retain_last, snapshot_ids)
        operation = Expire(
            self._table.io, request, cleaning, lambda: self._table.load_newest().metadata, dry_run=bool(dry_run)
        )
        if dry_run:
            self._dry_run(operation)
        else:
            self._table.commit(operation)
        if operation.interruption is not None:
            raise operation.interruption
        return operation.result

    def plan_expiry(
        self,
        *,
        older_than: dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        level: str | CleanupLevel = CleanupLevel.ALL,
        clean_metadata: bool = False,
    ) -> ExpiryPlan:
        """What `expire` would do with these arguments, and why, and what each ref alone holds.

        `print(plan)` shows it, `plan.to_arrow()` returns it as rows; the table does not change.
        """
        request = self._expiry_request(older_than, retain_last, snapshot_ids)
        operation = PlanExpiry(self._table.io, request, Cleanup(parse_level(level), bool(clean_metadata)))
        self._dry_run(operation)
        return operation.plan

    def plan_orphans(
        self,
        *,
        older_than: dt.datetime | None = None,
        location: str | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch: str = "error",
        allow_recent: bool = False,
        read_all_tables: bool = False,
        progress: Progress | None = None,
    ) -> OrphanPlan:
        """Find the files in the table's directories that nothing needs, and change nothing.

        They must be older than a time, by default three days ago; less than 24 hours is refused, unless `allow_recent`
        confirms that nobody is writing. A `location` limits the search to one directory. Files that metadata names
        under another scheme, authority or encoding stop it, unless the mappings (`{"s3a,s3n": "s3"}`) say that those
        are equal, or `prefix_mismatch` is "ignore" or "delete". RefusedError if another table of the catalog has files
        in the same directory, or the table says `gc.enabled=false`; to find out, `read_all_tables` reads the manifests
        of all tables, not only of those that may have files there. `progress` is called with the files listed and found
        so far.
        """
        self._check_no_transaction()
        if prefix_mismatch not in _MODES:
            raise InvalidInputError(f"expected prefix_mismatch of {', '.join(_MODES)}, found {shown(prefix_mismatch)}")
        request = OrphanRequest(
            None if older_than is None else epoch_ms(older_than),
            None if location is None else check_text(location, "text for the location"),
            check_texts(equal_schemes or {}, "scheme"),
            check_texts(equal_authorities or {}, "authority"),
            PrefixMismatch(prefix_mismatch),
            allow_recent,
            read_all_tables,
        )
        return plan_orphans(self._table.catalog, self._table.loaded, request, self._table.timing.clock_ms(), progress)

    def sweep_orphans(
        self, plan: OrphanPlan, *, threads: int = DEFAULT_THREADS, progress: Progress | None = None
    ) -> SweepResult:
        """Delete the files of a plan, except those that are needed by now or were written again.

        `progress` is called with the number of files checked so far and of all files.
        """
        self._check_no_transaction()
        if not isinstance(plan, OrphanPlan):
            raise InvalidInputError(f"expected a plan from plan_orphans, found {shown(plan)}")
        if plan.table != self._table.name:
            raise InvalidInputError(f"expected a plan for table `{self._table.name}`, found one for `{plan.table}`")
        return sweep_orphans(self._table.catalog, plan, threads=check_positive(threads, "threads"), progress=progress)

    def _compaction(
        self,
        row_filter: Predicate,
        strategy: str | None,
        sort_order: str | Iterable[str] | None,
        options: Mapping[str, Any] | None,
        defaults: RewriteOptions,
        *,
        only_fewer: bool,
    ) -> CompactionRequest:
        metadata, kind = self._table.metadata, rewrite_kind(strategy, sort_order)
        parsed = parse_options({} if options is None else options, kind, defaults)
        parsed.check_spec(metadata)
        return CompactionRequest(row_filter, parse_order(kind, sort_order, metadata, parsed), parsed, only_fewer)

    def _run_compaction(
        self, request: CompactionRequest, branch: str, summary: Mapping[str, str] | None, engine: RowEngine | None
    ) -> CompactionResult:
        engine = check_row_engine(engine)
        request.options.sizes(write_spec(self._table.metadata).target_file_size)
        return CompactionRun(self._table, request, branch=branch, summary=summary, engine=engine).run()

    def _dry_run(self, operation: Operation) -> None:
        """Run an operation that changes nothing on the current table; a transaction must not repeat it."""
        if not self._table.in_transaction:
            self._table.commit(operation)
        else:
            operation.attempt(self._table.metadata, CommitStamp(1, self._table.timing.clock_ms()))

    def _expiry_request(
        self, older_than: dt.datetime | None, retain_last: int | None, snapshot_ids: Iterable[int]
    ) -> ExpiryRequest:
        if not isinstance(snapshot_ids, Iterable):
            raise InvalidInputError(f"expected a list of snapshot ids, found {shown(snapshot_ids)}")
        return ExpiryRequest(
            None if older_than is None else epoch_ms(older_than),
            None if retain_last is None else check_whole(retain_last, "retain_last"),
            frozenset([check_whole(i, "a snapshot id") for i in snapshot_ids]),
            self._table.rule_levels(),
        )

    def _check_no_transaction(self) -> None:
        if self._table.in_transaction:
            raise InvalidInputError("expected no transaction around orphan files, which are no part of it, found one")
