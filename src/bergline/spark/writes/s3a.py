"""Whether Spark's S3A connector writes to S3 as the lake's own storage does: to the same store, as the same user."""

import re
from typing import Final

from bergline.io.fileio import FileIO
from bergline.io.locations import object_location
from bergline.io.schemes import store_settings
from bergline.spark.runtime.backend import SparkBackend

_AMAZON: Final = re.compile(r"(?:https://)?s3(?:[.-][a-z0-9-]+)*\.amazonaws\.com")
_ENDPOINT: Final = "fs.s3a.endpoint"
_WITH_TLS: Final = "fs.s3a.connection.ssl.enabled"
_KEYS: Final = {
    "access_key_id": "fs.s3a.access.key",
    "secret_access_key": "fs.s3a.secret.key",
    "token": "fs.s3a.session.token",
}
_PROVIDERS: Final = "fs.s3a.aws.credentials.provider"
_OF_TOKEN, _OF_KEYS = "TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider"
_IMPLEMENTATION: Final = ("fs.s3a.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
_OTHERWISE: Final = (
    "fs.s3a.encryption.algorithm",
    "fs.s3a.server-side-encryption-algorithm",
    "fs.s3a.delegation.token.binding",
    "fs.s3a.security.credential.provider.path",
    "hadoop.security.credential.provider.path",
)
"""What changes who writes, or what is written, beside the keys."""
_NAMES: Final = (_ENDPOINT, _WITH_TLS, *_KEYS.values(), _PROVIDERS, _IMPLEMENTATION[0], *_OTHERWISE)


def s3a_write_refusal(backend: SparkBackend, io: FileIO, location: str) -> str | None:
    """Why Spark must not write to a location on S3 through its connector; None if nobody could tell the difference."""
    return backend.s3a_refusal() or other_writer(backend, io, location)


def other_writer(backend: SparkBackend, io: FileIO, location: str) -> str | None:
    """How what the connector would write there differs from what the lake's storage would; None if nothing does."""
    ours = store_settings(io, location)
    if ours is None or ours.credential is None:
        return "the lake's storage was given no keys, so others may be found by Spark's S3A connector"
    theirs = backend.s3a_settings(object_location(location).authority, _NAMES)
    if _endpoint(theirs) != _plain(ours.config.get("endpoint")):
        return "Spark's S3A connector has another endpoint than the lake's storage"
    if any((ours.credential[name] or None) != theirs.get(key) for name, key in _KEYS.items()) or not _takes_keys(
        theirs
    ):
        return "Spark's S3A connector has other keys than the lake's storage"
    if "server_side_encryption" in ours.config or any(name in theirs for name in _OTHERWISE):
        return "Spark's S3A connector may encrypt otherwise than the lake's storage, or ask elsewhere for keys"
    name, own = _IMPLEMENTATION
    return None if theirs.get(name, own) == own else f"`{name}` is not Hadoop's"


def _endpoint(settings: dict[str, str]) -> str | None:
    text = settings.get(_ENDPOINT)
    if text is None or "://" in text:
        return _plain(text)
    return _plain(f"{'https' if settings.get(_WITH_TLS, 'true') == 'true' else 'http'}://{text}")


def _plain(endpoint: str | None) -> str | None:
    """An endpoint without what does not matter; None for Amazon's, all of which know a key and a bucket alike."""
    text = None if endpoint is None else endpoint.rstrip("/").lower()
    return None if text is None or _AMAZON.fullmatch(text) else text


def _takes_keys(settings: dict[str, str]) -> bool:
    """Whether the first of the connector's providers that can give something gives the keys of the settings."""
    texts = settings.get(_PROVIDERS, f"{_OF_TOKEN},{_OF_KEYS}").split(",")
    names = [text.strip().rpartition(".")[2] for text in texts]
    has_token = _KEYS["token"] in settings
    return next((n for n in names if has_token or n != _OF_TOKEN), "") == (_OF_TOKEN if has_token else _OF_KEYS)
