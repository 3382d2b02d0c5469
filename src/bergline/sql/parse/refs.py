"""Parser for ALTER TABLE … BRANCH | TAG."""

from bergline.format.metadata.refs import SnapshotRefType
from bergline.sql.statements.statements import CreateRef, DropRef, Name, ReplaceRef
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import TokenKind
from bergline.table.references.ref_changes import Retention

_UNIT_MS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
_KINDS = {"BRANCH": SnapshotRefType.BRANCH, "TAG": SnapshotRefType.TAG}


def parse_ref_statement(cursor: Cursor) -> CreateRef | ReplaceRef | DropRef | None:
    """The ref statement that the text is; None if it is another kind of statement."""
    if not cursor.accept("ALTER", "TABLE") or cursor.token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
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
