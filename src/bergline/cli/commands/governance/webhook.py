"""`bergline webhook`: where a server sends events."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import typer

from bergline.catalog.identifiers import parse_table_name
from bergline.cli.durations import render_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, print_json, print_table
from bergline.cli.records import KeyFileOption, note_change, open_records
from bergline.errors import InvalidInputError, RefusedError, UnavailableError, UnsupportedError
from bergline.governance.events.model import table_subject
from bergline.governance.governance import governance_of
from bergline.governance.webhooks.client import RestWebhooks
from bergline.governance.webhooks.protocol import CreateWebhookRequest, DeliveryBody, WebhookBody
from bergline.governance.webhooks.secret_keys import KEY_VARIABLE, load_keys
from bergline.governance.webhooks.store import SqlWebhooks

app = typer.Typer(help="Manage where `bergline serve` sends events.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(help="The webhook, as `bergline webhook list` names it.")]


@app.command()
@with_lake
def create(
    options: LakeOptions,
    url: Annotated[str, typer.Argument(help="Where events are sent by POST, e.g. https://host/path.")],
    *,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Only of this type, e.g. table.commit or ref.*; may be repeated.")
    ] = None,
    table: Annotated[list[str] | None, typer.Option(help="Only events of this table; may be repeated.")] = None,
    after: Annotated[
        int | None, typer.Option(help="Also send the events after this position. \\[default: only new ones]", min=0)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a webhook and print its id and its secret, only this once: the receiver verifies signatures with it."""
    subjects = tuple(table_subject(parse_table_name(name)) for name in table or ())
    with _webhooks(options) as webhooks:
        made = webhooks.create(CreateWebhookRequest(url, tuple(kind or ()), subjects, after))
    if as_json:
        print_json(_json(made.webhook) | {"secret": made.secret})
    else:
        sys.stdout.write(f"{made.webhook.webhook_id}\n{made.secret}\n")


@app.command("list")
@with_lake
def list_webhooks(options: LakeOptions, *, as_json: AsJson = False) -> None:
    """List webhooks with their state: the position up to which events were sent, failures and the last error."""
    with _webhooks(options) as webhooks:
        found = webhooks.all()
    if as_json:
        print_json([_json(webhook) for webhook in found])
        return
    columns = ["id", "url", "state", "position", "failures", "delivered", "last error"]
    print_table(columns, [_cells(webhook) for webhook in found], right=(3, 4))


@app.command()
@with_lake
def delete(options: LakeOptions, webhook: IdArgument, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a webhook: nothing more is sent to it."""
    with _webhooks(options) as webhooks:
        confirm(f"delete the webhook `{webhook}`", yes)
        webhooks.delete(webhook)
    if as_json:
        print_json({"deleted": webhook})


@app.command()
@with_lake
def pause(options: LakeOptions, webhook: IdArgument, *, as_json: AsJson = False) -> None:
    """Send nothing to a webhook until it is resumed."""
    with _webhooks(options) as webhooks:
        _print(webhooks.pause(webhook), as_json)


@app.command()
@with_lake
def resume(options: LakeOptions, webhook: IdArgument, *, as_json: AsJson = False) -> None:
    """Continue sending from where it stopped; also for a webhook that was disabled after failures."""
    with _webhooks(options) as webhooks:
        _print(webhooks.resume(webhook), as_json)


@app.command()
@with_lake
def replay(
    options: LakeOptions,
    webhook: IdArgument,
    *,
    after: Annotated[int, typer.Option(help="The position after which events are sent again.", min=0)],
    as_json: AsJson = False,
) -> None:
    """Send the events after a position, again or for the first time."""
    with _webhooks(options) as webhooks:
        _print(webhooks.replay(webhook, after), as_json)


@app.command("test")
@with_lake
def send_test(options: LakeOptions, webhook: IdArgument, *, as_json: AsJson = False) -> None:
    """Send a test event now, and print how it was received."""
    with _webhooks(options) as webhooks:
        sent = webhooks.test(webhook)
    if as_json:
        print_json(msgspec.structs.asdict(sent))
    elif sent.error is None:
        sys.stdout.write(f"status {sent.status} after {sent.took_ms} ms\n")
    if sent.error is not None:
        raise UnavailableError(f"webhook `{webhook}` did not accept the event: {sent.error}")


@app.command("rotate-secrets")
@with_lake
def rotate_secrets(options: LakeOptions, *, secrets_key_file: KeyFileOption = None, as_json: AsJson = False) -> None:
    """Encrypt the secrets in the server's database, of which --catalog is the URI, by the first key."""
    keys = load_keys(secrets_key_file, os.environ)
    if not keys:
        raise InvalidInputError(f"expected a key in {KEY_VARIABLE} or --secrets-key-file, found none")
    with open_records(options) as records:
        found = SqlWebhooks(records.database, records.catalog_name, keys).rotate_secrets()
        note_change(records, "webhook-rotate-secrets", "webhooks")
    done = (*found.plain, *found.older)
    if as_json:
        print_json({"encrypted": done, "lost": found.lost})
    else:
        sys.stdout.write(f"{len(done)} secrets were re-encrypted\n")
    if found.lost:
        names = ", ".join(f"`{webhook_id}`" for webhook_id in found.lost)
        raise RefusedError(
            f"the secrets of {names} stay as they are: the key that encrypted them is not among those given",
            hints=["add it after the others, or delete these webhooks and create new ones"],
        )


@app.command()
@with_lake
def deliveries(options: LakeOptions, webhook: IdArgument, *, as_json: AsJson = False) -> None:
    """List the latest attempts to send events to a webhook, newest first."""
    with _webhooks(options) as webhooks:
        found = webhooks.deliveries(webhook)
    if as_json:
        print_json([msgspec.structs.asdict(attempt) for attempt in found])
        return
    print_table(
        ["at", "first", "last", "events", "status", "ms", "error"], map(_attempt_cells, found), right=range(1, 6)
    )


@contextmanager
def _webhooks(options: LakeOptions) -> Iterator[RestWebhooks]:
    with options.open() as lake:
        webhooks = governance_of(lake.catalog).webhooks
        if webhooks is None:
            raise UnsupportedError(
                "expected the address of a server, which sends events to webhooks, found another catalog",
                hints=["give --catalog http://host:8181, where `bergline serve` listens"],
            )
        yield webhooks


def _json(webhook: WebhookBody) -> dict[str, Any]:
    return msgspec.structs.asdict(webhook)


def _print(webhook: WebhookBody, as_json: bool) -> None:
    if as_json:
        print_json(_json(webhook))
    else:
        sys.stdout.write(f"{webhook.state}, sent up to position {webhook.position}\n")


def _cells(webhook: WebhookBody) -> list[str]:
    return [
        webhook.webhook_id,
        webhook.url,
        webhook.state,
        str(webhook.position),
        str(webhook.failures),
        render_time(webhook.delivered_ms) or "",
        webhook.last_error or "",
    ]


def _attempt_cells(attempt: DeliveryBody) -> list[str]:
    return [
        render_time(attempt.at_ms) or "",
        str(attempt.first_position),
        str(attempt.last_position),
        str(attempt.events),
        "" if attempt.status is None else str(attempt.status),
        str(attempt.took_ms),
        attempt.error or "",
    ]
