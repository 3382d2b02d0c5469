"""Where the rows of a write go, determined once: planning, checks and commit all use the same target."""

import msgspec
from pyspark.sql import SparkSession

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.lake.lake import Lake
from bergline.spark.writes.scope import WriteScope, WritingSession
from bergline.sql.names.resolve import Target
from bergline.sql.statements.registry import ref_move
from bergline.sql.statements.statement import LakeStatement
from bergline.table.references.stream_batches import StreamBatch
from bergline.table.table import Table

WAP_BRANCH = "spark.wap.branch"
WAP_ID = "spark.wap.id"
_OPT_OUT = "write.wap.enabled"


class WriteTarget(msgspec.Struct, frozen=True):
    """A branch, and whether the write may create it: not one that existed when the write was planned."""

    branch: str = MAIN
    starts_branch: bool = True
    wap_id: str | None = None
    """With it the snapshot is only staged: no ref names it, and the branch is what it builds on."""
    summary: dict[str, str] = {}
    """Entries for the snapshot's summary: those of a pipeline's step."""
    batch: StreamBatch | None = None
    """The batch of a streaming query that the rows are, to be committed once."""

    @property
    def commits_empty(self) -> bool:
        """Whether even a command that changes no row is a snapshot.

        Who publishes looks for what was staged, and for a branch that was to begin; a pipeline for its steps.
        """
        return self.wap_id is not None or bool(self.summary) or (self.branch != MAIN and self.starts_branch)


def wap_settings(spark: SparkSession) -> dict[str, str | None]:
    """The session's WAP settings as they are now."""
    return {key: spark.conf.get(key, None) or None for key in (WAP_BRANCH, WAP_ID)}


def session_branch(spark: SparkSession, scope: WriteScope | None, table: Table) -> str | None:
    """The branch that a session reads and writes: that of a pipeline's step, or of `spark.wap.branch`.

    None if neither names one, or if the table opted out.
    """
    return _wap_setting(spark, scope, table, WAP_BRANCH)


def resolve_write_target(session: WritingSession, target: Target, option: str | None) -> WriteTarget:
    """Where a write goes; tags, snapshots, moments and metadata tables refuse writes."""
    table, selector = target.table, target.selector
    if selector.ref is not None:
        if selector.ref not in table.refs:
            missing = f"no tag `{selector.ref}` of `{table.name}`"
            raise NotFoundError(missing, kind="ref", name=selector.ref, known=table.refs)
        table.check_branch(selector.ref)
    if selector.metadata_table or selector.ref or selector.snapshot_id or selector.as_of_ms:
        raise RefusedError(f"cannot write to `{table.name}` with time travel or to its metadata tables")
    named = selector.branch
    if option is not None and named is not None and option != named:
        raise InvalidInputError(
            f"expected one branch, found `{named}` in the name and `{option}` in the option `branch`"
        )
    if named is not None and named != MAIN and named not in table.refs:
        raise NotFoundError(f"no branch `{named}` of `{table.name}`", kind="ref", name=named, known=table.refs)
    asked = named if option is None else option
    scope = session.scope
    branch, wap_id = _with_wap(session.spark, scope, table, asked)
    table.check_branch(branch)
    if scope is not None:
        scope.check_write(table, branch, wap_id)
    summary = {} if scope is None else scope.summary
    return WriteTarget(branch, branch == MAIN or branch not in table.refs, wap_id, summary)


def check_replaceable(session: WritingSession, lake: Lake, name: TableName, option: str | None = None) -> None:
    """Refuse to replace a table while writes go to a branch: it is replaced as a whole, and `main` would be empty."""
    if not lake.table_exists(name):
        return
    table = lake.load_table(name)
    scope = session.scope
    branch, wap_id = _with_wap(session.spark, scope, table, option)
    if scope is not None:
        scope.check_write(table, branch, wap_id)
    if branch != MAIN or wap_id is not None or scope is not None:
        place = f"under WAP id `{wap_id}`" if wap_id is not None else f"on branch `{branch}`"
        raise RefusedError(
            f"cannot replace `{name}` {place}: a table begins again as a whole, and `main` would be empty",
            hints=["INSERT OVERWRITE replaces the rows of a branch"],
        )


def check_moves_no_ref(session: WritingSession, statement: LakeStatement) -> None:
    """Refuse to move or drop refs in a pipeline: that would stay if an audit fails."""
    what = ref_move(statement)
    if what is not None and session.scope is not None:
        raise RefusedError(
            f"cannot run {what} in a pipeline: it moves refs at once, and `main` must stay if an audit fails"
        )


def opted_out(table: Table) -> bool:
    """Whether a table ignores the session's branch and WAP id."""
    return table.properties.get(_OPT_OUT, "true").lower() == "false"


def _with_wap(spark: SparkSession, scope: WriteScope | None, table: Table, asked: str | None) -> tuple[str, str | None]:
    """The branch and the WAP id, by what was asked for and by the session."""
    branch, wap_id = session_branch(spark, scope, table), _wap_setting(spark, scope, table, WAP_ID)
    if branch is not None and wap_id is not None:
        raise InvalidInputError(
            f"expected one of {WAP_BRANCH} and {WAP_ID}, found both: `{branch}` and `{wap_id}`",
            hints=[f'unset one of them: spark.conf.unset("{WAP_ID}")'],
        )
    if branch is not None and asked is not None and asked != branch:
        raise InvalidInputError(
            f"expected one branch, found `{asked}` and `{branch}` in {scope or WAP_BRANCH}",
            hints=[] if scope else [f'spark.conf.unset("{WAP_BRANCH}") lets you write to other branches'],
        )
    return asked or branch or MAIN, wap_id


def _wap_setting(spark: SparkSession, scope: WriteScope | None, table: Table, key: str) -> str | None:
    """What the session says; in a pipeline's step, what the step says, unless the setting was changed meanwhile."""
    if opted_out(table):
        return None
    setting = spark.conf.get(key, None) or None
    if scope is None or setting != scope.wap_settings.get(key):
        return setting
    return scope.branch if key == WAP_BRANCH else None
