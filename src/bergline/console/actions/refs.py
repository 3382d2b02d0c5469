"""Create, rename and drop branches and tags, and set how long they are kept."""

from typing import Any

from bergline.console.actions.equivalents import alter, command, python_call
from bergline.console.actions.form import Answers, Field
from bergline.console.actions.review import ConsoleAction, Equivalents, Review, ReviewedState, review_refs
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import SnapshotRef
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.quoting import quoted_name
from bergline.table.scans.version import snapshot_at
from bergline.table.table import Table

_AGE_HELP = "Such as 7 d, 12 h or 30 min. Empty: the table's setting."
_AT = Field("at", "At", "snapshot", "A snapshot id, a branch or a tag. Empty: the head of main.", required=False)
_MIN = Field("min_snapshots", "Snapshots to keep", "number", "Empty: the table's setting.", required=False)
_MAX_AGE = Field("max_snapshot_age", "Age of snapshots to keep", "age", _AGE_HELP, required=False)
_MAX_REF_AGE = Field("max_ref_age", "Age after which it may be removed", "age", _AGE_HELP, required=False)
_REF = Field("ref", "Branch or tag", "ref")
_SETTINGS = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
_UNITS = ((86_400_000, "DAYS"), (3_600_000, "HOURS"), (60_000, "MINUTES"))


def _review_create_branch(table: Table, answers: Answers, _now_ms: int) -> Review:
    return _review_create(table, answers, "branch", _retention(answers))


def _review_create_tag(table: Table, answers: Answers, _now_ms: int) -> Review:
    return _review_create(table, answers, "tag", {"max_ref_age_ms": answers.age_ms("max_ref_age")})


def _review_create(table: Table, answers: Answers, kind: str, settings: dict[str, Any]) -> Review:
    name, at = answers.text("new"), answers.snapshot("at")
    place = _place(table, at)
    return review_refs(
        table,
        lambda refs: (
            refs.create_branch(name, at=at, **settings)
            if kind == "branch"
            else refs.create_tag(name, at=at, **settings)
        ),
        _state(name, at=at),
        lambda _: (f"{kind} `{name}` is created at {place}", *_retention_lines(settings)),
        Equivalents(
            python_call(table.name, f"refs.create_{kind}", name, at=at, **settings),
            _sql(table, f"CREATE {kind.upper()}", name, at, settings),
            _command(f"{kind} create", table, name, settings, at=at),
        ),
    )


def _retention(answers: Answers) -> dict[str, int | None]:
    given = answers.number("min_snapshots"), answers.age_ms("max_snapshot_age"), answers.age_ms("max_ref_age")
    return dict(zip(_SETTINGS, given, strict=True))


def _review_rename(table: Table, answers: Answers, _now_ms: int) -> Review:
    name, to = answers.text("ref"), answers.text("new")
    kind = _kind(table, name)
    return review_refs(
        table,
        lambda refs: (refs.rename_branch if kind == "branch" else refs.rename_tag)(name, to=to),
        _state(name, to),
        lambda _: (f"{kind} `{name}` is called `{to}` from now on; its snapshot and its retention stay",),
        Equivalents(
            python_call(table.name, f"refs.rename_{kind}", name, to=to),
            None,
            command(f"{kind} rename", str(table.name), name, to),
        ),
    )


def _review_drop(table: Table, answers: Answers, _now_ms: int) -> Review:
    name = answers.text("ref")
    kind = _kind(table, name)
    head = table.metadata.ref(name).snapshot_id
    others = [other for other, ref in table.metadata.refs.items() if other != name and _leads_to(table, ref, head)]
    kept = (
        f"snapshot {head} stays: {', '.join(f'`{other}`' for other in sorted(others)[:5])} lead to it"
        if others
        else f"no other branch or tag leads to snapshot {head}: the next expiry may remove it and its files"
    )
    return review_refs(
        table,
        lambda refs: (refs.drop_branch if kind == "branch" else refs.drop_tag)(name),
        _state(name),
        lambda _: (f"{kind} `{name}` at snapshot {head} is dropped", kept),
        Equivalents(
            python_call(table.name, f"refs.drop_{kind}", name),
            alter(table.name, f"DROP {kind.upper()} {quoted_name(name)}"),
            command(f"{kind} drop", str(table.name), name, yes=True),
        ),
    )


def _review_retention(table: Table, answers: Answers, _now_ms: int) -> Review:
    name = answers.text("ref")
    kind, ref = _kind(table, name), table.metadata.ref(name)
    settings = _retention(answers)
    if kind == "tag" and any(settings[name] is not None for name in _SETTINGS[:2]):
        raise InvalidInputError(f"expected no snapshots to keep for tag `{name}`, found some: a tag names one snapshot")
    cleared = [s for s, new in settings.items() if new is None and getattr(ref, s) is not None]
    return review_refs(
        table,
        lambda refs: refs.set_retention(name, **settings, clear=cleared),
        _state(name),
        lambda _: (
            (f"the retention of {kind} `{name}` is set; nothing is removed before the next expiry",)
            + (_retention_lines(settings) or ("the table's settings apply",))
        ),
        Equivalents(
            python_call(table.name, "refs.set_retention", name, **settings, clear=cleared or None),
            None if cleared else _sql(table, f"REPLACE {kind.upper()}", name, ref.snapshot_id, settings),
            _command(f"{kind} retention", table, name, settings, clear=_cleared_options(cleared)),
        ),
    )


def _state(*names: str, at: int | str | None = None) -> ReviewedState:
    """Where these refs are, with their retention, and what `at` means."""

    def state(base: TableMetadata) -> list[object]:
        found = [base.refs.get(name) for name in names]
        known = [None if r is None else (r.snapshot_id, str(r.snapshot_ref_type), *_settings(r)) for r in found]
        place = base.head("main") if at is None else snapshot_at(base, at)
        return [known, place.snapshot_id if place is not None and not isinstance(place, int) else place]

    return state


def _settings(ref: SnapshotRef) -> tuple[int | None, ...]:
    return tuple(getattr(ref, name) for name in _SETTINGS)


def _kind(table: Table, name: str) -> str:
    return "branch" if table.metadata.ref(name).is_branch else "tag"


def _place(table: Table, at: int | str | None) -> str:
    if at is None:
        head = table.metadata.head("main")
        return (
            "an empty snapshot, for the table has none"
            if head is None
            else f"snapshot {head.snapshot_id}, the head of `main`"
        )
    found = snapshot_at(table.metadata, at)
    return f"snapshot {found}" + (f", the head of `{at}`" if isinstance(at, str) else "")


def _leads_to(table: Table, ref: SnapshotRef, snapshot_id: int) -> bool:
    return ref.snapshot_id == snapshot_id or (
        ref.is_branch and table.metadata.is_ancestor(snapshot_id, of=ref.snapshot_id)
    )


def _retention_lines(settings: dict[str, int | None]) -> tuple[str, ...]:
    texts = {
        "min_snapshots_to_keep": "at least {} of its snapshots are kept",
        "max_snapshot_age_ms": "its snapshots are kept for {}",
        "max_ref_age_ms": "it may be removed once its snapshot is older than {}",
    }
    return tuple(
        texts[name].format(f"{value:,}" if name == "min_snapshots_to_keep" else _age(value))
        for name, value in settings.items()
        if value is not None
    )


def _age(milliseconds: int) -> str:
    for unit, name in _UNITS:
        if milliseconds % unit == 0:
            count = milliseconds // unit
            return f"{count:,} {name.lower() if count != 1 else name.lower()[:-1]}"
    return f"{milliseconds:,} ms"


def _sql(table: Table, verb: str, name: str, at: int | str | None, settings: dict[str, int | None]) -> str | None:
    """The statement; None where SQL cannot say it, because it counts whole minutes."""
    ages = {key: _sql_age(settings.get(key)) for key in ("max_ref_age_ms", "max_snapshot_age_ms")}
    if None in ages.values():
        return None
    parts = [verb, quoted_name(name)]
    if at is not None:
        parts.append(f"AS OF VERSION {snapshot_at(table.metadata, at)}")
    if ages["max_ref_age_ms"]:
        parts.append(f"RETAIN {ages['max_ref_age_ms']}")
    keep = settings.get("min_snapshots_to_keep")
    kept = [*([f"{keep} SNAPSHOTS"] if keep is not None else []), *filter(None, [ages["max_snapshot_age_ms"]])]
    if kept:
        parts.append(f"WITH SNAPSHOT RETENTION {' '.join(kept)}")
    return alter(table.name, " ".join(parts))


def _sql_age(milliseconds: int | None) -> str | None:
    """A time span as SQL writes it, empty if there is none; None if it has no whole minutes."""
    if milliseconds is None:
        return ""
    return next((f"{milliseconds // unit} {name}" for unit, name in _UNITS if milliseconds % unit == 0), None)


def _command(verb: str, table: Table, name: str, settings: dict[str, int | None], **more: object) -> str | None:
    """The command; None where the command line cannot say it, because it counts whole minutes."""
    options: dict[str, object] = {"min_snapshots_to_keep": settings.get("min_snapshots_to_keep")}
    for key in ("max_snapshot_age_ms", "max_ref_age_ms"):
        age = _sql_age(settings.get(key))
        if age is None:
            return None
        number, _, unit = age.partition(" ")
        options[key.removesuffix("_ms")] = f"{number}{unit[0].lower()}" if age else None
    return command(verb, str(table.name), name, **more, **options)


def _cleared_options(cleared: list[str]) -> list[str]:
    return [key.removesuffix("_ms").replace("_", "-") for key in cleared]


CREATE_BRANCH = ConsoleAction(
    "create-branch",
    "Create a branch",
    (Field("new", "Name of the branch"), _AT, _MIN, _MAX_AGE, _MAX_REF_AGE),
    _review_create_branch,
    "Create the branch",
)
CREATE_TAG = ConsoleAction(
    "create-tag",
    "Create a tag",
    (Field("new", "Name of the tag"), _AT, _MAX_REF_AGE),
    _review_create_tag,
    "Create the tag",
)
RENAME_REF = ConsoleAction(
    "rename-ref", "Rename a branch or tag", (_REF, Field("new", "New name")), _review_rename, "Rename it"
)
DROP_REF = ConsoleAction("drop-ref", "Drop a branch or tag", (_REF,), _review_drop, "Drop it", destroys=True)
SET_RETENTION = ConsoleAction(
    "set-retention",
    "Set the retention of a branch or tag",
    (_REF, _MIN, _MAX_AGE, _MAX_REF_AGE),
    _review_retention,
    "Set the retention",
)
