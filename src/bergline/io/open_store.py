"""Opens buckets and containers with obstore, which is imported on first use."""

import importlib
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.extras import install_hint
from bergline.io.azure import AZURE_SCHEMES, azure_settings
from bergline.io.gcs import GCS_SCHEMES, gcs_settings
from bergline.io.object_errors import panics_contained
from bergline.io.s3 import S3_SCHEMES, s3_settings
from bergline.io.settings import StoreSettings

OBJECT_STORE_SCHEMES = S3_SCHEMES | GCS_SCHEMES | AZURE_SCHEMES
# how long to retry an unreachable server or one that asks to slow down
RETRY_SECONDS = 10
_CLIENT = {"connect_timeout": "5s", "read_timeout": "15s", "timeout": "10min", "user_agent": "bergline"}
_BACKOFF = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2}
_LONGEST_REASON = 200
_SECRETS = frozenset(
    {
        "account_key",
        "bearer_token",
        "client_secret",
        "sas_key",
        "sse_customer_key_base64",
        "token",
    }
)


_used_in: set[int] = set()  # the processes in which obstore was used


class OpenStore(NamedTuple):
    """A bucket or container: `store` retries by itself, `once` never does. `api` is the obstore module."""

    api: Any
    store: Any
    once: Any


def open_store(scheme: str, authority: str, properties: Mapping[str, str]) -> OpenStore:
    """Open the bucket or container of a location."""
    settings = settings_of(scheme, authority, properties)
    try:
        api, stores = importlib.import_module("obstore"), importlib.import_module("obstore.store")
    except ImportError:
        raise UnsupportedError(
            f"expected the package obstore for {scheme}://{authority}, found none",
            hints=[install_hint(_kind(scheme)[0])],
        ) from None
    retry = {"max_retries": 10, "retry_timeout": timedelta(seconds=RETRY_SECONDS), "backoff": _BACKOFF}
    build = getattr(stores, settings.store)
    return OpenStore(api, _build(build, settings, scheme, retry), _build(build, settings, scheme, {"max_retries": 0}))


def settings_of(scheme: str, authority: str, properties: Mapping[str, str]) -> StoreSettings:
    """The settings with which a bucket or container is opened."""
    return _kind(scheme)[1](authority, properties)


def check_process() -> None:
    """UnsupportedError in a fork of a process that used obstore: without its threads it would hang."""
    if _used_in and os.getpid() not in _used_in:
        raise UnsupportedError(
            "an object store cannot be used in a process that was forked after the first use",
            hints=['start processes with multiprocessing.get_context("spawn")'],
        )
    _used_in.add(os.getpid())


def _kind(scheme: str) -> tuple[str, Callable[[str, Mapping[str, str]], StoreSettings]]:
    if scheme in S3_SCHEMES:
        return "s3", s3_settings
    return ("gcs", gcs_settings) if scheme in GCS_SCHEMES else ("azure", azure_settings)


def _build(build: Callable[..., Any], settings: StoreSettings, scheme: str, retry: dict[str, Any]) -> Any:
    credential, client = settings.credential, _CLIENT | settings.client
    given = {"credential_provider": lambda: credential} if credential else {}
    try:
        with panics_contained():
            return build(settings.bucket, config=settings.config, client_options=client, retry_config=retry, **given)
    except Exception as error:  # noqa: BLE001  (obstore raises its own, ValueError and TypeError; none may escape)
        reason = str(error).split("\n", 1)[0]
        for name in _SECRETS & settings.config.keys():
            reason = reason.replace(settings.config[name], "…")
        raise InvalidInputError(f"cannot open {scheme}://{settings.bucket}: {reason[:_LONGEST_REASON]}") from None
