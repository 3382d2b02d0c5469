"""What a server warns of when it starts."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bergline.governance.webhooks.secret_keys import SecretKeys, load_keys
from bergline.governance.webhooks.store import SqlWebhooks
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.start_warnings import start_warnings
from support.servers.asgi_client import AsgiClient
from support.servers.webhook_receiver import WebhookReceiver

OLD, NEW = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server whose database is for its owner alone."""
    limits = ServerSettings(webhook_allow=("127.0.0.1",))
    opened = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=limits)
    yield opened
    opened.catalog.close()


def warnings(context: ServerContext, host: str = "127.0.0.1", *, anonymous: bool = False) -> list[str]:
    return start_warnings(context, host, f"http://{host}:8181", anonymous=anonymous)


def use(context: ServerContext, keys: SecretKeys) -> None:
    context.settings = msgspec.structs.replace(context.settings, secret_keys=keys)
    context.webhooks = SqlWebhooks(context.records.database, context.records.catalog_name, keys)


def test_nothing_is_said_where_there_is_nothing(context: ServerContext) -> None:
    assert warnings(context) == []


def test_anonymous_is_said_and_on_other_addresses_louder(context: ServerContext) -> None:
    (here,) = warnings(context, anonymous=True)
    assert here.startswith(
        "warning: --anonymous: every user and program on this machine that calls http://127.0.0.1:8181 "
    )
    (everywhere,) = warnings(context, "0.0.0.0", anonymous=True)  # noqa: S104
    assert "EVERY MACHINE that reaches http://0.0.0.0:8181 (listening on 0.0.0.0)" in everywhere
    assert "without a token" in everywhere
    context.records.tokens.create("ann", "bl_ann", 1, None)
    context.authenticator = Authenticator(context.records)
    assert warnings(context, "0.0.0.0", anonymous=True) == []  # noqa: S104


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_files_that_others_may_read_are_said(context: ServerContext, tmp_path: Path) -> None:
    (tmp_path / "lake/catalog.db").chmod(0o644)
    keys = tmp_path / "keys"
    keys.write_text(NEW)
    keys.chmod(0o640)
    use(context, load_keys(str(keys), {}))
    about_database, about_keys = warnings(context)
    assert f"read or change `{tmp_path}/lake/catalog.db`" in about_database
    assert f"the keys in `{keys}`" in about_keys
    for file in (tmp_path / "lake/catalog.db", keys):
        file.chmod(0o600)
    assert warnings(context) == []


def test_secrets_that_are_not_encrypted_by_the_first_key_are_said(client: AsgiClient, context: ServerContext) -> None:
    with WebhookReceiver() as receiver:
        made = client("POST", "/bergline/v1/webhooks", {"url": receiver.url}).json["webhook"]["webhook-id"]
    (plain,) = warnings(context)
    assert "the secrets of 1 webhooks are in the database as they are" in plain
    assert "give a key in BERGLINE_SECRETS_KEY or --secrets-key-file, then `bergline webhook rotate-secrets`" in plain
    use(context, SecretKeys([OLD]))
    assert "as they are" in warnings(context)[0]
    context.webhooks.rotate_secrets()
    assert warnings(context) == []
    use(context, SecretKeys([NEW, OLD]))
    assert "1 are encrypted by an older key: `bergline webhook rotate-secrets`" in warnings(context)[0]
    use(context, SecretKeys([NEW]))
    assert warnings(context)[0].startswith(f"warning: nothing is sent to the webhooks `{made}`")
