"""Where the rows of a write go, found out once: planning, checks and commit all use the same answer."""

import json

import msgspec
from pyspark.sql import SparkSession

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.lake.lake import Lake
from bergline.sql.names.resolve import Target
from bergline.sql.parse.analyze import Statement
from bergline.sql.statements.statements import CallProcedure, DropRef, ReplaceRef
from bergline.table.table import Table

WAP_BRANCH = "spark.wap.branch"
WAP_ID = "spark.wap.id"
PIPELINE = "spark.bergline.pipeline"
"""Set while a pipeline's step or audits run: the branch and the tables that writes of a step may go to."""
_OPT_OUT = "write.wap.enabled"
_MOVE_REFS = frozenset(
    [
        "cherrypick_snapshot",
        "fast_forward",
        "merge",
        "publish_changes",
        "rebase",
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
    ]
)


class WriteTarget(msgspec.Struct, frozen=True):
    """A branch, and whether the write may make it: not one that was there when the write was planned."""

    branch: str = MAIN
    starts_branch: bool = True
    wap_id: str | None = None
    """With it the snapshot is only staged: no ref names it, and the branch is what it builds on."""


def wap_branch(spark: SparkSession, table: Table) -> str | None:
    """The branch that `spark.wap.branch` names, unless the table opted out."""
    return _wap_setting(spark, table, WAP_BRANCH)


def resolve_write_target(spark: SparkSession, target: Target, option: str | None) -> WriteTarget:
    """Where a write goes; tags, snapshots, moments and metadata tables refuse writes."""
    table, selector = target.table, target.selector
    if selector.ref is not None and selector.ref in table.refs:
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
    branch, wap_id = _with_wap(spark, table, asked)
    table.check_branch(branch)
    write_target = WriteTarget(branch, branch == MAIN or branch not in table.refs, wap_id)
    _check_pipeline(spark, table, write_target)
    return write_target


def check_replaceable(spark: SparkSession, lake: Lake, name: TableName, option: str | None = None) -> None:
    """Refuse to replace a table while writes go to a branch: it begins again as a whole, and `main` would be empty."""
    if not lake.table_exists(name):
        return
    table = lake.load_table(name)
    branch, wap_id = _with_wap(spark, table, option)
    _check_pipeline(spark, table, WriteTarget(branch, wap_id=wap_id))
    if branch != MAIN or wap_id is not None or spark.conf.get(PIPELINE, None):
        place = f"under WAP id `{wap_id}`" if wap_id is not None else f"on branch `{branch}`"
        raise RefusedError(
            f"cannot replace `{name}` {place}: a table begins again as a whole, and `main` would be empty",
            hints=["INSERT OVERWRITE replaces the rows of a branch"],
        )


def check_moves_no_ref(spark: SparkSession, statement: Statement) -> None:
    """Refuse to move or drop refs in a pipeline: that would stay if an audit fails."""
    match statement:
        case CallProcedure(procedure=(*_, name)) if name.lower() in _MOVE_REFS:
            what = f"CALL {name}"
        case ReplaceRef() | DropRef():
            what = f"ALTER TABLE with {statement.kind} `{statement.ref}`"
        case _:
            return
    if spark.conf.get(PIPELINE, None):
        raise RefusedError(
            f"cannot run {what} in a pipeline: it moves refs at once, and `main` must stay if an audit fails"
        )


def _with_wap(spark: SparkSession, table: Table, asked: str | None) -> tuple[str, str | None]:
    """The branch and the WAP id, by what was asked for and by the session's settings."""
    session_branch, wap_id = wap_branch(spark, table), _wap_setting(spark, table, WAP_ID)
    if session_branch is not None and wap_id is not None:
        raise InvalidInputError(
            f"expected one of {WAP_BRANCH} and {WAP_ID}, found both: `{session_branch}` and `{wap_id}`",
            hints=[f'unset one of them: spark.conf.unset("{WAP_ID}")'],
        )
    if session_branch is not None and asked is not None and asked != session_branch:
        raise InvalidInputError(
            f"expected one branch, found `{asked}` and `{session_branch}` in {WAP_BRANCH}",
            hints=[f'spark.conf.unset("{WAP_BRANCH}") lets you write to other branches'],
        )
    return asked or session_branch or MAIN, wap_id


def opted_out(table: Table) -> bool:
    """Whether a table takes no notice of the session's branch and id."""
    return table.properties.get(_OPT_OUT, "true").lower() == "false"


def _check_pipeline(spark: SparkSession, table: Table, write_target: WriteTarget) -> None:
    """A step of a pipeline writes to its own branch of its own tables, and nowhere else."""
    scope = spark.conf.get(PIPELINE, None)
    if not scope:
        return
    allowed = json.loads(scope)
    if allowed["step"] is None:
        raise RefusedError(f"cannot write to `{table.name}` in an audit: what is audited is what is published")
    if table.metadata.table_uuid not in allowed["tables"]:
        raise RefusedError(
            f"cannot write to `{table.name}` in a pipeline of {', '.join(allowed['tables'].values())}",
            hints=["add it to the pipeline's `tables`"],
        )
    if write_target.branch != allowed["branch"] or write_target.wap_id is not None:
        raise RefusedError(
            f"cannot write to `{write_target.branch}` in a pipeline, whose branch is `{allowed['branch']}`"
        )


def _wap_setting(spark: SparkSession, table: Table, key: str) -> str | None:
    if opted_out(table):
        return None
    return spark.conf.get(key, None) or None
