"""S3, configured by Iceberg's properties, as named by Java and PyIceberg."""

import os
import re
from collections.abc import Mapping
from typing import Any

from bergline.errors import InvalidInputError
from bergline.io.settings import PropertyReader, StoreSettings, check_endpoint, is_ip_address

S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
S3_PROPERTIES = (
    "s3.endpoint",
    "s3.region",
    "client.region",
    "s3.access-key-id",
    "client.access-key-id",
    "s3.secret-access-key",
    "client.secret-access-key",
    "s3.session-token",
    "client.session-token",
    "s3.anonymous",
    "s3.path-style-access",
    "s3.force-virtual-addressing",
    "s3.sse.type",
    "s3.sse.key",
    "s3.proxy-uri",
    "s3.connect-timeout",
    "s3.request-timeout",
)
S3_REFUSED = {
    "s3.remote-signing-enabled": "set the credentials: s3.access-key-id and s3.secret-access-key",
    "s3.signer": "set the credentials: s3.access-key-id and s3.secret-access-key",
    "s3.role-arn": "assume the role outside, and set its credentials with s3.session-token",
    "client.role-arn": "assume the role outside, and set its credentials with s3.session-token",
    "s3.profile-name": "export the profile's credentials to the environment, or set them as properties",
    "client.profile-name": "export the profile's credentials to the environment, or set them as properties",
}
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
_ENCRYPTION = {
    "none": None,
    "s3": "AES256",
    "kms": "aws:kms",
    "dsse-kms": "aws:kms:dsse",
    "custom": "sse-c",
}


def s3_settings(bucket: str, properties: Mapping[str, str]) -> StoreSettings:
    """Settings for a bucket."""
    if not _BUCKET.fullmatch(bucket):
        shown = bucket.rpartition("@")[2]  # there is a password before an @
        raise InvalidInputError(f"expected the name of an S3 bucket, found `{shown}`")
    given = PropertyReader(properties)
    given.refuse(S3_REFUSED)
    endpoint, setting = _endpoint(given)
    config: dict[str, Any] = {}
    if endpoint:
        config["endpoint"] = config["aws_endpoint_url_s3"] = endpoint
    if region := given.text("s3.region", "client.region"):
        if not _REGION.fullmatch(region):
            raise InvalidInputError(f"expected a region like `eu-central-1` in property `s3.region`, found `{region}`")
        config["region"] = region
    if given.boolean("s3.anonymous"):
        config["skip_signature"] = True
    if _virtual_hosts(given):
        config["virtual_hosted_style_request"] = True
        if endpoint:
            if is_ip_address(endpoint):
                raise InvalidInputError(
                    f"expected an address with a name, to put the bucket before it, in {setting}, found `{endpoint}`",
                    hints=["set s3.path-style-access to true: the bucket then stands in the path"],
                )
            with_bucket = endpoint.replace("://", f"://{bucket}.", 1)
            check_endpoint(with_bucket, f"{setting} with bucket `{bucket}`")
            config["endpoint"] = config["aws_endpoint_url_s3"] = with_bucket
    return StoreSettings(
        "S3Store", bucket, config | _encryption(given), _client(given, endpoint), credential=_credential(given)
    )


def s3_endpoint(properties: Mapping[str, str]) -> str | None:
    """The endpoint that properties or the environment name; None for Amazon's."""
    return _endpoint(PropertyReader(properties))[0]


def _endpoint(given: PropertyReader) -> tuple[str | None, str]:
    """The endpoint and the name of its setting; None for Amazon's."""
    if endpoint := given.endpoint("s3.endpoint"):
        return endpoint, "property `s3.endpoint`"
    variable = next((v for v in _ENDPOINT_VARIABLES if os.environ.get(v)), None)
    if variable is None:
        return None, ""
    setting = f"the environment's {variable}"
    check_endpoint(os.environ[variable], setting)
    return os.environ[variable].rstrip("/"), setting


def _credential(given: PropertyReader) -> dict[str, Any] | None:
    """The credentials; a session token from the environment is never combined with credentials from properties."""
    secrets = ("s3.secret-access-key", "client.secret-access-key")
    credentials = given.pair(("s3.access-key-id", "client.access-key-id"), secrets)
    token = given.text("s3.session-token", "client.session-token")
    if credentials is None:
        if token:
            raise InvalidInputError("expected `s3.access-key-id` with `s3.session-token`, found only the token")
        return None
    return {"access_key_id": credentials[0], "secret_access_key": credentials[1], "token": token, "expires_at": None}


def _virtual_hosts(given: PropertyReader) -> bool:
    """Whether to use virtual-hosted addressing; with an endpoint the default is path style, as in PyIceberg."""
    path_style = given.boolean("s3.path-style-access")
    virtual = given.boolean("s3.force-virtual-addressing")
    if path_style and virtual:
        raise InvalidInputError("expected `s3.path-style-access` or `s3.force-virtual-addressing`, found both")
    return bool(virtual) or path_style is False


def _encryption(given: PropertyReader) -> dict[str, str]:
    kind, key = given.text("s3.sse.type"), given.text("s3.sse.key")
    if kind is None:
        return {}
    if kind.lower() not in _ENCRYPTION:
        raise InvalidInputError(f"expected {' or '.join(_ENCRYPTION)} in property `s3.sse.type`, found `{kind}`")
    algorithm = _ENCRYPTION[kind.lower()]
    if algorithm is None:
        return {}
    config = {"server_side_encryption": algorithm}
    if key:
        config["sse_customer_key_base64" if algorithm == "sse-c" else "sse_kms_key_id"] = key
    return config


def _client(given: PropertyReader, endpoint: str | None) -> dict[str, Any]:
    client: dict[str, Any] = {"allow_http": True} if endpoint and endpoint.startswith("http:") else {}
    if proxy := given.endpoint("s3.proxy-uri"):
        client["proxy_url"] = proxy
    if connect := given.seconds("s3.connect-timeout"):
        client["connect_timeout"] = connect
    if request := given.seconds("s3.request-timeout"):
        client["read_timeout"] = request
    return client
