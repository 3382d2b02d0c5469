"""`lake.rules` and `lake.reviews`: rules about refs for many tables at once, and what they ask for."""

from collections.abc import Iterable

from bergline.arguments import check_text, check_whole
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.protection.kept_rules import (
    CheckState,
    KeptRule,
    KeptRules,
    RuleKeepingCatalog,
    SnapshotApproval,
    SnapshotCheck,
    SnapshotReviews,
)
from bergline.catalog.protection.ref_rule import make_rule
from bergline.catalog.sql.governance.ref_rules import SqlRefRules
from bergline.catalog.sql.governance.snapshot_reviews import SqlSnapshotReviews
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import UnsupportedError
from bergline.lake.handle import LakeHandle


class LakeRules:
    """Rules that hold for all tables of the catalog, or for those in a namespace and below it.

    They are kept in the catalog's database, beside those in the properties of tables; all that name a ref hold.
    """

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog

    def list(self, namespace: str | Namespace | None = None) -> tuple[KeptRule, ...]:
        """All rules, or those that hold in a namespace: its own, those above it and those of the catalog."""
        return kept_rules(self._catalog).rules(None if namespace is None else parse_namespace(namespace))

    def protect(
        self,
        pattern: str,
        *,
        namespace: str | Namespace | None = None,
        kind: str | None = None,
        writers: Iterable[str] | None = None,
        only_publish: bool = False,
        fast_forward_only: bool = False,
        no_drop: bool = False,
        no_move: bool = False,
        no_rollback: bool = False,
        no_expiry: bool = False,
        checks: Iterable[str] = (),
        approvals: int = 0,
        bypass: Iterable[str] = (),
    ) -> None:
        """Protect the refs that a pattern names in all tables, or in those of a namespace, as `table.refs.protect`."""
        rule = make_rule(
            pattern,
            kind=kind,
            writers=writers,
            only_publish=only_publish,
            fast_forward_only=fast_forward_only,
            no_drop=no_drop,
            no_move=no_move,
            no_rollback=no_rollback,
            no_expiry=no_expiry,
            checks=checks,
            approvals=approvals,
            bypass=bypass,
        )
        kept_rules(self._catalog).set_rule(() if namespace is None else parse_namespace(namespace), rule)

    def unprotect(self, pattern: str, *, namespace: str | Namespace | None = None) -> None:
        """Remove the rule of a pattern; NotFoundError if there is none."""
        check_text(pattern, "the pattern of a rule")
        kept_rules(self._catalog).remove_rule(() if namespace is None else parse_namespace(namespace), pattern)


class LakeReviews:
    """Checks and approvals, each of one snapshot of a table: a branch that moves on has none of them."""

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog

    def report_check(
        self,
        table: str | TableName,
        snapshot_id: int,
        check: str,
        *,
        passed: bool | None = True,
        detail: str | None = None,
    ) -> None:
        """Record that a check passed on a snapshot, or failed; with None, that it is still running."""
        states = {True: CheckState.PASSED, False: CheckState.FAILED, None: CheckState.PENDING}
        self._reviews.report_check(parse_table_name(table), _number(snapshot_id), check, states[passed], detail)

    def checks(self, table: str | TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        """The checks of a snapshot, by name."""
        return self._reviews.checks(parse_table_name(table), _number(snapshot_id))

    def approve(self, table: str | TableName, snapshot_id: int, *, detail: str | None = None) -> None:
        """Approve a snapshot: on a server by the name of the token, else by that of the user."""
        self._reviews.approve(parse_table_name(table), _number(snapshot_id), detail)

    def withdraw(self, table: str | TableName, snapshot_id: int) -> None:
        """Withdraw one's own approval; NotFoundError if there is none."""
        self._reviews.withdraw(parse_table_name(table), _number(snapshot_id))

    def approvals(self, table: str | TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        """Who approves a snapshot or has withdrawn it, by name."""
        return self._reviews.approvals(parse_table_name(table), _number(snapshot_id))

    @property
    def _reviews(self) -> SnapshotReviews:
        catalog = self._catalog
        if isinstance(catalog, RuleKeepingCatalog):
            return catalog.snapshot_reviews()
        if isinstance(catalog, PointerCatalog) and isinstance(catalog.store, SqlPointerStore):
            return SqlSnapshotReviews(catalog)
        raise _unsupported("checks and approvals")


def kept_rules(catalog: Catalog) -> KeptRules:
    """The rules that a catalog keeps beside its tables; UnsupportedError where it keeps none."""
    if isinstance(catalog, RuleKeepingCatalog):
        return catalog.ref_rules()
    if isinstance(catalog, PointerCatalog) and isinstance(catalog.store, SqlPointerStore):
        return SqlRefRules(catalog.store)
    raise _unsupported("rules of its own")


def _number(snapshot_id: int) -> int:
    return check_whole(snapshot_id, "the id of a snapshot")


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"expected a catalog in SQLite or PostgreSQL, or behind `bergline serve`, which keeps {what}, found another",
        hints=["a table of any catalog has rules of its own: `table.refs.protect`"],
    )
