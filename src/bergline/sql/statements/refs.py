"""ALTER TABLE … CREATE, REPLACE and DROP of branches and tags."""

import pyarrow as pa

from bergline.format.metadata.refs import SnapshotRefType
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind
from bergline.table.references.ref_changes import Retention
from bergline.table.table import Table

_UNIT_MS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
_KINDS = {"BRANCH": SnapshotRefType.BRANCH, "TAG": SnapshotRefType.TAG}


class CreateRef(LakeStatement, frozen=True):
    """ALTER TABLE … CREATE [OR REPLACE] BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    snapshot_id: int | None = None
    retention: Retention = Retention()
    if_not_exists: bool = False
    or_replace: bool = False


class ReplaceRef(LakeStatement, frozen=True):
    """ALTER TABLE … REPLACE BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    snapshot_id: int | None = None
    retention: Retention = Retention()


class DropRef(LakeStatement, frozen=True):
    """ALTER TABLE … DROP BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    if_exists: bool = False


RefStatement = CreateRef | ReplaceRef | DropRef


def parse_ref_statement(cursor: Cursor) -> RefStatement | None:
    """Parse what follows ALTER TABLE; None if the statement is not about a branch or tag."""
    if not cursor.is_at_name:
        return None
    table = cursor.expect_subject("a table name")
    replaces = False
    if cursor.accept("CREATE"):
        verb = "CREATE"
        if cursor.accept("OR"):
            cursor.expect("REPLACE")
            replaces = True
    elif cursor.accept("REPLACE"):
        verb = "REPLACE"
    elif cursor.accept("DROP"):
        verb = "DROP"
    else:
        return None
    if not cursor.token.is_word(*_KINDS):
        if verb == "CREATE":  # nothing else can be created in a table
            cursor.fail("`BRANCH`, `TAG`" if replaces else "`BRANCH`, `TAG`, `OR REPLACE`")
        return None
    kind = _KINDS[cursor.advance().text.upper()]
    if verb == "DROP":
        return _drop(cursor, table, kind)
    return _create_or_replace(cursor, table, kind, verb, replaces=replaces)


def _drop(cursor: Cursor, table: Name, kind: SnapshotRefType) -> DropRef:
    if_exists = cursor.accept("IF", "EXISTS")
    ref = cursor.expect_name("a name (put others than letters, digits and _ in back-quotes)")
    cursor.expect_end()
    return DropRef(table, ref, kind, if_exists)


def _create_or_replace(
    cursor: Cursor, table: Name, kind: SnapshotRefType, verb: str, *, replaces: bool
) -> CreateRef | ReplaceRef:
    if_not_exists = verb == "CREATE" and not replaces and cursor.accept("IF", "NOT", "EXISTS")
    ref = cursor.expect_name("a name (put others than letters, digits and _ in back-quotes)")
    snapshot_id = None
    if cursor.accept("AS", "OF"):
        cursor.expect("VERSION")
        snapshot_id = cursor.expect_whole_number()
    retention = _retention(cursor, kind)
    if verb == "REPLACE":
        return ReplaceRef(table, ref, kind, snapshot_id, retention)
    return CreateRef(table, ref, kind, snapshot_id, retention, if_not_exists, replaces)


def _retention(cursor: Cursor, kind: SnapshotRefType) -> Retention:
    max_ref_age_ms = least = max_snapshot_age_ms = None
    is_branch = kind is SnapshotRefType.BRANCH
    if cursor.accept("RETAIN"):
        number = cursor.expect_whole_number()
        if is_branch and cursor.accept("SNAPSHOTS"):
            least = number
        else:
            max_ref_age_ms = number * _unit(cursor, "`SNAPSHOTS`" if is_branch else None)
    if is_branch and cursor.accept("WITH"):
        cursor.expect("SNAPSHOT", "RETENTION")
        number = cursor.expect_whole_number()
        if least is None and cursor.accept("SNAPSHOTS"):
            least = number
            if cursor.token.kind is TokenKind.NUMBER:
                max_snapshot_age_ms = cursor.expect_whole_number() * _unit(cursor)
        else:
            max_snapshot_age_ms = number * _unit(cursor, "`SNAPSHOTS`" if least is None else None)
    options = ["`AS OF VERSION`", "`RETAIN`", *(["`WITH SNAPSHOT RETENTION`"] if is_branch else [])]
    if cursor.token.kind is TokenKind.SYMBOL:
        options.append("back-quotes around the name")
    cursor.expect_end(*options)
    return Retention(least, max_snapshot_age_ms, max_ref_age_ms)


def _unit(cursor: Cursor, other: str | None = None) -> int:
    if not cursor.token.is_word(*_UNIT_MS):
        cursor.fail(", ".join([*(f"`{u}`" for u in _UNIT_MS), *([other] if other else [])]))
    return _UNIT_MS[cursor.advance().text.upper()]


def change_ref(statement: RefStatement, lakes: Lakes) -> pa.Table | None:
    """Create, replace or drop a ref."""
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    refs, is_branch = table.refs, statement.kind is SnapshotRefType.BRANCH
    match statement:
        case CreateRef():
            _create_ref(statement, table)
        case ReplaceRef(_, ref, _, snapshot_id, retention):
            replace = refs.replace_branch if is_branch else refs.replace_tag
            replace(ref, at=snapshot_id, retention=retention)
        case DropRef(_, ref, _, if_exists):
            drop = refs.drop_branch if is_branch else refs.drop_tag
            drop(ref, if_exists=if_exists)
    return NO_ROWS


def _create_ref(statement: CreateRef, table: Table) -> None:
    flags = {"if_not_exists": statement.if_not_exists, "or_replace": statement.or_replace}
    retention = statement.retention
    if statement.kind is SnapshotRefType.TAG:
        table.refs.create_tag(statement.ref, at=statement.snapshot_id, max_ref_age_ms=retention.max_ref_age_ms, **flags)
        return
    table.refs.create_branch(
        statement.ref,
        at=statement.snapshot_id,
        min_snapshots_to_keep=retention.min_snapshots_to_keep,
        max_snapshot_age_ms=retention.max_snapshot_age_ms,
        max_ref_age_ms=retention.max_ref_age_ms,
        **flags,
    )


def _ref_move(statement: RefStatement) -> str | None:
    if isinstance(statement, CreateRef) and not statement.or_replace:
        return None
    return f"ALTER TABLE with {statement.kind} `{statement.ref}`"


REFS: StatementKind[RefStatement] = StatementKind(
    variants=(CreateRef, ReplaceRef, DropRef),
    parsers={"ALTER TABLE": parse_ref_statement},
    run=change_ref,
    ref_move=_ref_move,
)
