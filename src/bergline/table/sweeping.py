"""What a user does about files that no snapshot knows: plan, look, sweep."""

import datetime as dt
from collections.abc import Mapping

from bergline.arguments import check_positive, check_text, check_texts, shown
from bergline.errors import InvalidInputError
from bergline.table.expiry.deletion import DEFAULT_THREADS, Progress
from bergline.table.handle import TableHandle
from bergline.table.orphans.plan import OrphanPlan, OrphanRequest, PrefixMismatch
from bergline.table.orphans.search import plan_orphans
from bergline.table.orphans.sweep import SweepResult, sweep_orphans
from bergline.table.scans.version import epoch_ms

_MODES = tuple(mode.value for mode in PrefixMismatch)


class TableSweeping(TableHandle):
    """Orphan files: left by writers that died, or by expiry that could not delete them."""

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

        They must be older than a time, by default three days ago; less than 24 hours is refused, unless
        `allow_recent` says that certainly nobody writes. A `location` narrows it down to one directory. Files that
        metadata names under another scheme, authority or encoding stop it, unless the mappings (`{"s3a,s3n": "s3"}`)
        say that those are equal, or `prefix_mismatch` is "ignore" or "delete". RefusedError where another table of the
        catalog has files in the same place, or the table says `gc.enabled=false`; `read_all_tables` reads the manifests
        of all tables to know, not only of those that may have files there. `progress` is called with the files listed
        and found so far.
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
        return plan_orphans(self._catalog, self._loaded, request, self._timing.clock_ms(), progress)

    def sweep_orphans(
        self, plan: OrphanPlan, *, threads: int = DEFAULT_THREADS, progress: Progress | None = None
    ) -> SweepResult:
        """Delete the files of a plan, but none that is needed by now or was written again.

        `progress` is called with the files looked at so far, and how many there are.
        """
        self._check_no_transaction()
        if not isinstance(plan, OrphanPlan):
            raise InvalidInputError(f"expected a plan from plan_orphans, found {shown(plan)}")
        if plan.table != self.name:
            raise InvalidInputError(f"expected a plan for table `{self.name}`, found one for `{plan.table}`")
        return sweep_orphans(self._catalog, plan, threads=check_positive(threads, "threads"), progress=progress)

    def _check_no_transaction(self) -> None:
        if self._chain is not None:
            raise InvalidInputError("expected no transaction around orphan files, which are no part of it, found one")
