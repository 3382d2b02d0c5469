"""Google Cloud Storage, configured by Iceberg's properties."""

import re
from collections.abc import Mapping
from typing import Any

from bergline.errors import InvalidInputError
from bergline.io.settings import PropertyReader, StoreSettings

GCS_SCHEMES = frozenset({"gs", "gcs"})
# project and token expiry are not needed: requests name the bucket, and the server rejects expired tokens
GCS_PROPERTIES = (
    "gcs.oauth2.token",
    "gcs.oauth2.token-expires-at",
    "gcs.no-auth",
    "gcs.project-id",
    "gcs.service.host",
)
GCS_REFUSED = {
    "gcs.encryption-key": "encryption keys of the bucket itself need no property",
    "gcs.decryption-key": "encryption keys of the bucket itself need no property",
    "gcs.user-project": "buckets whose readers pay are not supported",
    "gcs.impersonate.service-account": "give a token of that account as gcs.oauth2.token",
}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,221}")


def gcs_settings(bucket: str, properties: Mapping[str, str]) -> StoreSettings:
    """Settings for a bucket."""
    if not _BUCKET.fullmatch(bucket):
        raise InvalidInputError(f"expected the name of a bucket, found `{bucket}`")
    given = PropertyReader(properties)
    given.refuse(GCS_REFUSED)
    config: dict[str, Any] = {}
    if token := given.text("gcs.oauth2.token"):
        config["bearer_token"] = token
    if given.boolean("gcs.no-auth"):
        config["skip_signature"] = True
    host = given.endpoint("gcs.service.host")
    if host:
        config["base_url"] = host
    return StoreSettings("GCSStore", bucket, config, {"allow_http": True} if host and host.startswith("http:") else {})
