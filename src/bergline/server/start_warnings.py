"""What a server warns of when it starts: who may come in, and who else on its machine can read what it keeps."""

import os
from pathlib import Path

from bergline.governance.webhooks.secret_keys import KEY_VARIABLE
from bergline.server.access.oidc.issuer_settings import is_loopback
from bergline.server.context.context import ServerContext

_OTHERS = 0o066


def start_warnings(context: ServerContext, host: str, url: str, *, anonymous: bool) -> list[str]:
    """The warnings, a text each."""
    found = [] if not anonymous or context.authenticator.has_tokens else [_about_anonymous(host, url)]
    if (database := context.records.database.file_open_to_others()) is not None:
        found.append(
            f"warning: other users of this machine may read or change `{database}`, with its rules, audit log and "
            f"hashes of tokens: `chmod 600 {database}*` ends that"
        )
    keys = context.settings.secret_keys
    if keys.file is not None and _is_open(keys.file):
        found.append(f"warning: other users of this machine may read the keys in `{keys.file}`: `chmod 600` ends that")
    return found + _about_webhooks(context)


def _about_anonymous(host: str, url: str) -> str:
    what = "may read, change and drop every table without a token; the audit log names nobody"
    if is_loopback(host):
        return f"warning: --anonymous: every user and program on this machine that calls {url} {what}"
    return (
        f"{'!' * 72}\n"
        f"WARNING: --anonymous: EVERY MACHINE that reaches {url} (listening on {host})\n"
        f"{what}.\n"
        "Make a token with `bergline token create NAME`, or listen on 127.0.0.1.\n"
        f"{'!' * 72}"
    )


def _about_webhooks(context: ServerContext) -> list[str]:
    report = context.webhooks.secrets_report()
    found = []
    if report.plain or report.older:
        how = "`bergline webhook rotate-secrets`"
        if not context.settings.secret_keys:
            how = f"give a key in {KEY_VARIABLE} or --secrets-key-file, then {how}"
        found.append(
            f"warning: the secrets of {len(report.plain)} webhooks are in the database as they are, and those of "
            f"{len(report.older)} are encrypted by an older key: {how}"
        )
    if report.lost:
        names = ", ".join(f"`{webhook_id}`" for webhook_id in report.lost)
        found.append(
            f"warning: nothing is sent to the webhooks {names}: the key that encrypted their secrets is not here; give "
            f"it too, behind the others, in {KEY_VARIABLE} or --secrets-key-file, or make new webhooks"
        )
    return found


def _is_open(file: str) -> bool:
    try:
        return os.name == "posix" and bool(Path(file).stat().st_mode & _OTHERS)
    except OSError:
        return False
