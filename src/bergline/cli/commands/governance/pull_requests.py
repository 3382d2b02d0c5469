"""`bergline pr`: requests to publish branches, with checks, approvals and comments."""

import time
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import typer

from bergline.cli.commands.references.branch import json_difference, print_difference
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.problems import end_with_problems
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.governance.pull_requests.model import PublishMethod, PullRequestOverview, PullRequestState
from bergline.governance.pull_requests.pull_requests import PullRequest
from bergline.governance.pull_requests.report import (
    describe_approvals,
    describe_change,
    describe_entry,
    describe_record,
    describe_reviews,
    overview_values,
    record_values,
)
from bergline.governance.reviews.model import CheckState
from bergline.reports.difference import ref_difference
from bergline.reports.units import render_age

app = typer.Typer(help="Pull requests: review branches, then publish them.", no_args_is_help=True)

NumberArgument: TypeAlias = Annotated[int, typer.Argument(help="Its number", metavar="NUMBER", min=1)]
HeadOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="TABLE=SNAPSHOT",
        help="The head of a table as you saw it; may be repeated. \\[default: those there are now]",
    ),
]


@app.command()
@with_lake
def create(
    options: LakeOptions,
    branch: Annotated[str, typer.Argument(help="The branch to publish", metavar="BRANCH")],
    *,
    into: Annotated[str, typer.Option(help="The branch to publish it into.", metavar="BRANCH")] = MAIN,
    title: Annotated[str | None, typer.Option(help="What it is about. \\[default: the branch]")] = None,
    description: Annotated[str, typer.Option(help="More about it.")] = "",
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="TABLE", help="A table; may be repeated. \\[default: all with the branch]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open a pull request to publish a branch of one or several tables."""
    with options.open() as lake:
        request = lake.pull_requests.open(branch, into=into, title=title, description=description, tables=tables)
    _print(request, "opened", as_json=as_json)


@app.command("list")
@with_lake
def list_pull_requests(
    options: LakeOptions,
    *,
    state: Annotated[PullRequestState, typer.Option(help="Which ones.")] = PullRequestState.OPEN,
    every: Annotated[bool, typer.Option("--all", help="Include closed and published ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List pull requests, newest first."""
    with options.open() as lake:
        found = [request.record for request in lake.pull_requests.list(None if every else state.value)]
    if as_json:
        print_json([record_values(record) for record in found])
        return
    now = time.time_ns() // 1_000_000
    rows = [
        [str(r.number), r.title, r.state, f"{r.branch} → {r.target}", r.author, render_age(r.updated_ms, now)]
        for r in found
    ]
    print_table(["number", "title", "state", "branch", "author", "changed"], rows, right={0})


@app.command()
@with_lake
def show(options: LakeOptions, number: NumberArgument, *, as_json: AsJson = False) -> None:
    """Show what a pull request would do, its checks and approvals, and what prevents publishing it."""
    with options.open() as lake:
        overview = lake.pull_requests.get(number).overview
    if as_json:
        print_json(overview_values(overview))
    else:
        print_lines(_lines(overview))


@app.command()
@with_lake
def diff(
    options: LakeOptions,
    number: NumberArgument,
    *,
    rows: Annotated[int, typer.Option("--rows", help="How many rows that differ are shown as well.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Show how the branch differs from its target in every table."""
    with options.open() as lake:
        record = lake.pull_requests.get(number).record
        if record.state is PullRequestState.PUBLISHED:
            raise InvalidInputError(f"expected an open pull request, found {number}, which is published")
        found = {
            str(table.name): ref_difference(lake.load_table(table.name), record.target, record.branch, sample=rows)
            for table in record.tables
        }
    if as_json:
        print_json([{"table": table, **json_difference(difference)} for table, difference in found.items()])
    else:
        for table, difference in found.items():
            print_lines([f"table `{table}`:"])
            print_difference(difference)
    end_with_problems([problem for difference in found.values() for problem in difference.problems])


@app.command()
@with_lake
def comment(
    options: LakeOptions,
    number: NumberArgument,
    text: Annotated[str, typer.Argument(help="The comment", metavar="TEXT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Add a comment to a pull request."""
    _act(options, number, lambda request: request.comment(text), "commented on", as_json=as_json)


@app.command()
@with_lake
def approve(options: LakeOptions, number: NumberArgument, *, head: HeadOption = None, as_json: AsJson = False) -> None:
    """Approve the heads of all tables; the approval is void as soon as one of them moves."""
    heads = _heads(head)
    _act(options, number, lambda request: request.approve(heads=heads), "approved", as_json=as_json)


@app.command()
@with_lake
def withdraw(options: LakeOptions, number: NumberArgument, *, as_json: AsJson = False) -> None:
    """Withdraw your approval."""
    _act(options, number, lambda request: request.withdraw(), "withdrew your approval of", as_json=as_json)


@app.command()
@with_lake
def check(
    options: LakeOptions,
    number: NumberArgument,
    name: Annotated[str, typer.Argument(help="Name of the check", metavar="NAME")],
    state: Annotated[CheckState, typer.Argument(help="What it found")],
    *,
    detail: Annotated[str | None, typer.Option(help="More about it.")] = None,
    head: HeadOption = None,
    as_json: AsJson = False,
) -> None:
    """Report the result of a check on the heads of a pull request."""
    heads = _heads(head)

    def act(request: PullRequest) -> PullRequest:
        return request.report_check(name, state, detail=detail, heads=heads)

    _act(options, number, act, f"reported check `{name}` of", as_json=as_json)


@app.command()
@with_lake
def publish(
    options: LakeOptions,
    number: NumberArgument,
    *,
    method: Annotated[PublishMethod, typer.Option(help="How to publish.")] = PublishMethod.FAST_FORWARD,
    keep_branch: Annotated[bool, typer.Option("--keep-branch", help="Leave the branch where it is.")] = False,
    head: HeadOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish all tables in one commit, and drop the branch."""
    heads = _heads(head)

    def act(request: PullRequest) -> PullRequest:
        return request.publish(method=method, keep_branch=keep_branch, heads=heads)

    _act(options, number, act, "published", as_json=as_json)


@app.command()
@with_lake
def close(options: LakeOptions, number: NumberArgument, *, as_json: AsJson = False) -> None:
    """Close a pull request; its branch stays."""
    _act(options, number, lambda request: request.close(), "closed", as_json=as_json)


@app.command()
@with_lake
def reopen(options: LakeOptions, number: NumberArgument, *, as_json: AsJson = False) -> None:
    """Reopen a closed pull request."""
    _act(options, number, lambda request: request.reopen(), "reopened", as_json=as_json)


def _act(
    options: LakeOptions, number: int, act: Callable[[PullRequest], PullRequest], done: str, *, as_json: bool
) -> None:
    with options.open() as lake:
        request = act(lake.pull_requests.get(number))
    _print(request, done, as_json=as_json)


def _print(request: PullRequest, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(record_values(request.record))
    else:
        print_lines([f"{done} {describe_record(request.record)}"])


def _lines(overview: PullRequestOverview) -> list[str]:
    record = overview.record
    lines = [f"{record.title}, by {record.author}", describe_record(record)]
    lines += [record.description] if record.description else []
    for change in overview.tables:
        head = "" if change.head is None else f" at snapshot {change.head}"
        lines += [f"table `{change.name}`{head}: {describe_change(change)}"]
        lines += [f"  {line}" for line in describe_reviews(change)]
    lines += [f"approved by {', '.join(describe_approvals(overview))}"] if overview.approved_by else []
    if overview.stale_approvals:
        lines.append(f"approved before a head moved: {', '.join(overview.stale_approvals)}")
    lines += [f"cannot be published: {obstacle}" for obstacle in overview.obstacles]
    return [*lines, "", *map(describe_entry, overview.history)]


def _heads(texts: list[str] | None) -> dict[str, int] | None:
    if texts is None:
        return None
    found: dict[str, Any] = settings_of(texts, "--head")
    wrong = next((text for text in found.values() if not text.isdecimal()), None)
    if wrong is not None:
        raise InvalidInputError(f"expected the id of a snapshot behind --head TABLE=, found `{wrong}`")
    return {table: int(snapshot) for table, snapshot in found.items()}
