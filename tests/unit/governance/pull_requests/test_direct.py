"""Pull requests on a database: opened, reviewed, published in one transaction."""

import threading

import pytest

import bergline
from bergline.catalog.protection.caller import acting_as
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ProtectedRefError,
    RefusedError,
    UnsupportedError,
)
from bergline.governance.pull_requests.model import EntryKind, PullRequestState, Standing
from bergline.governance.pull_requests.pull_requests import PullRequest
from bergline.governance.reviews.model import CheckState
from bergline.lake.lake import Lake
from support.fixtures.reviewing_lake import TABLES, ReviewingGuard, ids, push

pytestmark = pytest.mark.long


def opened(lake: Lake, **options: str) -> PullRequest:
    """A pull request of ann's."""
    with acting_as("ann"):
        return lake.pull_requests.open("work", **options)


def by(name: str, lake: Lake, number: int = 1) -> PullRequest:
    """A pull request as somebody sees it."""
    with acting_as(name):
        return lake.pull_requests.get(number)


def test_pull_request_is_of_all_tables_with_the_branch(lake: Lake) -> None:
    request = opened(lake, title="More rows", description="of today")
    record = request.record
    assert (record.number, record.title, record.author, record.target) == (1, "More rows", "ann", "main")
    assert {str(table.name) for table in record.tables} == set(TABLES)
    assert [(t.standing, t.snapshots, t.added_rows, t.added_files) for t in request.overview.tables] == [
        (Standing.FAST_FORWARD, 1, 1, 1)
    ] * 2
    assert request.overview.obstacles == ()


def test_publish_moves_all_tables_and_drops_the_branch(lake: Lake) -> None:
    request = opened(lake).publish()
    assert request.state is PullRequestState.PUBLISHED
    assert [ids(lake, name) for name in TABLES] == [[1, 2], [1, 2]]
    assert lake.tables_with_ref("work") == []
    assert {str(head.name) for head in request.record.published} == set(TABLES)
    with pytest.raises(ConflictError, match="which is published"):
        by("ann", lake).publish()


def test_second_open_pull_request_of_a_branch_and_target_is_refused(lake: Lake) -> None:
    opened(lake)
    with pytest.raises(AlreadyExistsError, match="pull request 1 is already open to publish"):
        opened(lake)
    with acting_as("ann"):
        lake.pull_requests.get(1).close()
        second = lake.pull_requests.open("work")
        with pytest.raises(AlreadyExistsError, match="pull request 2 is already open"):
            lake.pull_requests.get(1).reopen()
    assert second.number == 2
    assert [r.number for r in lake.pull_requests.list(None)] == [2, 1]
    assert [r.number for r in lake.pull_requests.list("closed")] == [1]


def test_pull_requests_of_other_tables_may_have_the_same_branch(lake: Lake) -> None:
    opened(lake)
    with acting_as("bob"):
        assert lake.pull_requests.open("work", tables=TABLES[:1]).number == 2
        with pytest.raises(
            AlreadyExistsError, match=r"pull request 2 is already open to publish .* of the same tables into `main`"
        ):
            lake.pull_requests.open("work", tables=TABLES[:1])


def test_approval_is_of_the_heads_that_were_seen(lake: Lake) -> None:
    opened(lake)
    seen = by("bob", lake)
    push(lake, "db.items", 3)
    with acting_as("bob"), pytest.raises(ConflictError, match=r"the head of `work` of table `db\.items` moved"):
        seen.approve()
    assert by("bob", lake).overview.approved_by == ()


def test_approval_is_void_when_a_head_moves(lake: Lake) -> None:
    opened(lake)
    with acting_as("bob"):
        lake.pull_requests.get(1).approve()
    assert by("ann", lake).overview.approved_by == ("bob",)
    push(lake, "db.items", 3)
    overview = by("ann", lake).overview
    assert (overview.approved_by, overview.stale_approvals) == ((), ("bob",))


def test_approval_can_be_withdrawn(lake: Lake) -> None:
    opened(lake)
    with acting_as("bob"):
        request = lake.pull_requests.get(1).approve().withdraw()
    assert (request.overview.approved_by, request.overview.stale_approvals) == ((), ())
    with acting_as("eve"), pytest.raises(NotFoundError, match="no approval of `eve`"):
        lake.pull_requests.get(1).withdraw()


def test_author_cannot_approve(lake: Lake) -> None:
    request = opened(lake)
    with acting_as("ann"), pytest.raises(RefusedError, match="`ann`, who cannot approve it"):
        request.approve()


@pytest.mark.parametrize("state", ["failed", "pending"])
def test_check_that_has_not_passed_stops_a_publish_until_a_head_without_it(lake: Lake, state: str) -> None:
    request = opened(lake).report_check("nulls", state, detail="3 rows")
    assert [check.state for check in request.overview.tables[0].checks] == [CheckState(state)]
    assert f"check `nulls` is {state}" in request.overview.obstacles[0]
    with pytest.raises(RefusedError, match=f"check `nulls` is {state}"):
        request.publish()
    request.report_check("nulls", "passed").publish()
    assert ids(lake, "db.orders") == [1, 2]


def test_push_after_the_look_refuses_the_publish(lake: Lake) -> None:
    request = opened(lake)
    request.look()
    push(lake, "db.orders", 3)
    with pytest.raises(ConflictError, match="moved"):
        request.publish()
    assert (ids(lake, "db.orders"), ids(lake, "db.items")) == ([1], [1])
    request.look()
    request.publish()
    assert ids(lake, "db.orders") == [1, 2, 3]


@pytest.mark.parametrize("meanwhile", ["close", "comment", "withdraw", "check", "push"])
def test_what_others_do_during_a_publish_rolls_it_back(lake: Lake, guard: ReviewingGuard, meanwhile: str) -> None:
    opened(lake)
    with acting_as("bob"):
        lake.pull_requests.get(1).approve()
    request = by("ann", lake)

    def others() -> None:
        with acting_as("bob"):
            other = lake.pull_requests.get(1)
            match meanwhile:
                case "close":
                    other.close()
                case "comment":
                    other.comment("wait")
                case "withdraw":
                    other.withdraw()
                case "check":
                    other.report_check("nulls", "failed")
                case _:
                    push(lake, "db.items", 3)

    def in_another_thread() -> None:
        thread = threading.Thread(target=others)
        thread.start()
        thread.join()

    guard.before_commit = in_another_thread
    with acting_as("ann"), pytest.raises(ConflictError):
        request.publish()
    assert [ids(lake, name) for name in TABLES] == [[1], [1]]
    assert by("ann", lake).state is not PullRequestState.PUBLISHED
    assert sorted(lake.tables_with_ref("work")) == sorted(TABLES)


def test_rules_decide_with_the_reviews_of_the_heads(lake: Lake, guard: ReviewingGuard) -> None:
    del guard
    for name in TABLES:
        lake.load_table(name).set_properties({"bergline.ref-rules.main": "approvals=1; checks=nulls"})
    request = opened(lake)
    assert "`nulls` passed" in (request.overview.tables[0].demands[0])
    request.report_check("nulls", "passed")
    with acting_as("ann"), pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
        request.publish()
    with acting_as("bob"):
        lake.pull_requests.get(1).approve()
    with acting_as("ann"):
        lake.pull_requests.get(1).publish()
    assert [ids(lake, name) for name in TABLES] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("method", ["merge", "squash"])
def test_target_that_moved_on_needs_a_merge(lake: Lake, method: str) -> None:
    request = opened(lake)
    push(lake, "db.orders", 9, "main")
    overview = request.look()
    assert {str(t.name): (t.standing, t.behind, t.conflict) for t in overview.tables} == {
        "db.orders": (Standing.DIVERGED, 1, None),
        "db.items": (Standing.FAST_FORWARD, 0, None),
    }
    with pytest.raises(RefusedError, match="both have moved on"):
        request.publish()
    request.publish(method=method, keep_branch=True)
    assert (ids(lake, "db.orders"), ids(lake, "db.items")) == ([1, 2, 9], [1, 2])
    assert sorted(lake.tables_with_ref("work")) == sorted(TABLES)


def test_conflict_is_seen_before_it_happens(lake: Lake) -> None:
    lake.load_table("db.orders").delete("id = 1", branch="work")
    lake.load_table("db.orders").delete("id = 1")
    request = opened(lake)
    conflicts = {str(t.name): t.conflict is not None for t in request.overview.tables}
    assert conflicts == {"db.orders": True, "db.items": False}
    with pytest.raises((RefusedError, ConflictError)):
        request.publish(method="merge")


@pytest.mark.parametrize(
    ("lose", "problem"), [("branch", "branch `work`"), ("table", "is gone"), ("replaced", "another table")]
)
def test_what_is_gone_is_said_and_can_be_closed(lake: Lake, lose: str, problem: str) -> None:
    request = opened(lake)
    match lose:
        case "branch":
            lake.drop_ref("work", tables=["db.items"])
        case "table":
            lake.drop_table("db.items")
        case _:
            schema = lake.load_table("db.items").schema
            lake.drop_table("db.items")
            lake.create_table("db.items", schema)
    gone = [t for t in request.look().tables if t.standing is Standing.GONE]
    assert [problem in (t.problem or "") for t in gone] == [True]
    for refused in (request.publish, lambda: by("bob", lake).approve()):
        with acting_as("bob"), pytest.raises(NotFoundError, match=problem):
            refused()
    assert request.close().state is PullRequestState.CLOSED
    assert ids(lake, "db.orders") == [1]


def test_nothing_left_to_publish_is_published(lake: Lake) -> None:
    request = opened(lake)
    lake.publish("work", keep_branch=True)
    assert {t.standing for t in request.look().tables} == {Standing.UP_TO_DATE}
    assert request.publish(keep_branch=True).state is PullRequestState.PUBLISHED
    assert [ids(lake, name) for name in TABLES] == [[1, 2], [1, 2]]


def test_history_has_comments_and_changes_in_order(lake: Lake) -> None:
    request = opened(lake).comment("why?").edit(title="Rows").close().reopen()
    history = request.overview.history
    assert [entry.what for entry in history] == [
        EntryKind.OPENED,
        EntryKind.COMMENTED,
        EntryKind.EDITED,
        EntryKind.CLOSED,
        EntryKind.REOPENED,
    ]
    assert ([entry.text for entry in request.overview.comments], request.record.title) == (["why?"], "Rows")
    assert request.record.version == 5


def test_bad_input_is_refused_and_nothing_changed(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="no table with a branch `wrok`"):
        lake.pull_requests.open("wrok")
    with pytest.raises(InvalidInputError, match="two branches"):
        lake.pull_requests.open("work", into="work")
    for title in ("", "x" * 256, "a\0b"):
        with pytest.raises(InvalidInputError):
            lake.pull_requests.open("work", title=title)
    with pytest.raises(NotFoundError, match="branch `prod`"):
        lake.pull_requests.open("work", into="prod")
    with pytest.raises(NotFoundError, match="no pull request 7"):
        lake.pull_requests.get(7)
    with pytest.raises(NotFoundError, match="no pull request 7"):
        opened(lake)._calls.comment(7, "x")
    request = by("bob", lake)
    for call in (
        lambda: request.comment(" "),
        request.edit,
        lambda: request.report_check("nulls", "green"),
        lambda: request.publish(method="rebase"),
        lambda: request.report_check("nulls", "passed", heads={}),
    ):
        with pytest.raises(InvalidInputError):
            call()
    with pytest.raises(NotFoundError, match=r"no table `db\.other`"):
        request.report_check("nulls", "passed", heads={"db.other": 1})
    with pytest.raises(NotFoundError, match="no snapshot with id 7"):
        request.report_check("nulls", "passed", heads={"db.orders": 7})
    assert by("bob", lake).record.version == 1


def test_other_catalogs_say_that_they_have_none() -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="with pull requests"):
        lake.pull_requests.list()
