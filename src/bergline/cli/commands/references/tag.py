"""`bergline tag`: fixed names for snapshots."""

from typing import Annotated, TypeAlias

import typer

from bergline.cli.arguments import AtOption, TableArgument, complete_ref, parse_state
from bergline.cli.commands.references.refs import (
    Cleared,
    IfExists,
    RefAge,
    add_rename,
    drop_ref,
    list_refs,
    print_changed_ref,
    set_retention,
)
from bergline.cli.durations import parse_milliseconds
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson

app = typer.Typer(help="The tags of a table.", no_args_is_help=True)

TAG = typer.Argument(help="Name of the tag", metavar="TAG", autocompletion=complete_ref)
TagArgument: TypeAlias = Annotated[str, TAG]


@app.command()
@with_lake
def create(
    options: LakeOptions,
    table: TableArgument,
    tag: TagArgument,
    *,
    at: AtOption = None,
    max_ref_age: RefAge = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave an existing tag as it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tag a snapshot."""
    ref_age = parse_milliseconds(max_ref_age)
    with options.open() as lake:
        loaded = lake.load_table(table)
        state = None if at is None else parse_state(loaded, at)
        loaded.refs.create_tag(tag, at=state, max_ref_age_ms=ref_age, if_not_exists=if_not_exists)
        print_changed_ref(loaded, tag, as_json=as_json)


@app.command("list")
@with_lake
def list_tags(options: LakeOptions, table: TableArgument, *, as_json: AsJson = False) -> None:
    """List tags with the age of their snapshots and their retention."""
    list_refs(options, table, "tag", as_json=as_json)


@app.command()
@with_lake
def drop(
    options: LakeOptions,
    table: TableArgument,
    tag: TagArgument,
    *,
    if_exists: IfExists = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Drop a tag; its snapshot stays until expiry."""
    drop_ref(options, (table, tag), "tag", if_exists=if_exists, yes=yes, as_json=as_json)


add_rename(app, "tag", TAG)


@app.command()
@with_lake
def replace(
    options: LakeOptions,
    table: TableArgument,
    tag: TagArgument,
    *,
    at: AtOption = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move a tag to another snapshot: the only way a tag ever moves."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        state = None if at is None else parse_state(loaded, at)
        now = loaded.metadata.ref(tag).snapshot_id
        confirm(f"move tag `{tag}` of `{loaded.name}` from snapshot {now} to {at or 'main'}", yes)
        loaded.refs.replace_tag(tag, at=state)
        print_changed_ref(loaded, tag, as_json=as_json)


@app.command()
@with_lake
def retention(
    options: LakeOptions,
    table: TableArgument,
    tag: TagArgument,
    *,
    max_ref_age: RefAge = None,
    clear: Cleared = None,
    as_json: AsJson = False,
) -> None:
    """Set the age from which expiry removes a tag; without options, show it."""
    set_retention(options, (table, tag), {"max_ref_age_ms": parse_milliseconds(max_ref_age)}, clear, as_json=as_json)
