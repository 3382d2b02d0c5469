"""Temporary AWS credentials for one table only: the server assumes a role for each table."""

import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.catalog.sql.table_directories import outermost
from bergline.errors import InvalidInputError, RefusedError, UnavailableError, UnsupportedError
from bergline.extras import install_hint
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.credentials.credentials_cache import CredentialsCache
from bergline.server.credentials.vending import VendedCredentials, fingerprint_of, prefixes_of, storage_config
from bergline.server.http.settings import public_settings

SHORTEST_S, LONGEST_S = 900, 43_200
MAX_POLICY_CHARACTERS = 2048
_ABOUT_THE_POLICY = {"PackedPolicyTooLarge", "PackedPolicyTooLargeException", "MalformedPolicyDocument"}
_SESSION_NAME = "bergline"
_READING = ["s3:GetObject"]
_WRITING = [*_READING, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]


class StsVending:
    """AssumeRole with a policy for the table's own directories; cached until half of the lifetime is over."""

    is_for_one_table = True

    def __init__(
        self,
        properties: Mapping[str, str],
        role: str,
        lifetime_s: int,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not SHORTEST_S <= lifetime_s <= LONGEST_S:
            raise InvalidInputError(
                f"expected a lifetime of 15 minutes to 12 hours for credentials, found {lifetime_s} seconds"
            )
        self._properties = dict(properties)
        self._role = role
        self._lifetime_s = lifetime_s
        self._sts = _open_sts(self._properties)
        self._cache = CredentialsCache(clock_ms)

    def credentials(self, locations: Sequence[str], *, may_write: bool) -> VendedCredentials:
        """Cached or new credentials; RefusedError where no policy can be limited to these directories."""
        directories = _on_s3(locations)
        if not directories:
            return VendedCredentials((), "")
        return self._cache.find((may_write, directories)) or self._assume(directories, may_write=may_write)

    def cached_credentials(self, locations: Sequence[str], *, may_write: bool) -> VendedCredentials | None:
        """Credentials that are cached and have half of their lifetime left."""
        directories = _on_s3(locations)
        return self._cache.find((may_write, directories)) if directories else VendedCredentials((), "")

    def _assume(self, directories: tuple[str, ...], *, may_write: bool) -> VendedCredentials:
        session_policy = render_policy(directories, self._role, may_write=may_write)
        try:
            assumed = self._sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=_SESSION_NAME,
                DurationSeconds=self._lifetime_s,
                Policy=session_policy,
            )["Credentials"]
        except Exception as error:
            # botocore has a class for each; only its name and its code are of use
            code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
            if code in _ABOUT_THE_POLICY:
                raise _too_long(directories, f"AWS STS says {code}") from error
            raise UnavailableError(
                f"cannot get credentials for a table: AWS STS says {code or type(error).__name__}"
            ) from error
        expires_ms = int(assumed["Expiration"].timestamp() * 1000)
        own = {
            "s3.access-key-id": assumed["AccessKeyId"],
            "s3.secret-access-key": assumed["SecretAccessKey"],
            "s3.session-token": assumed["SessionToken"],
            "s3.session-token-expires-at-ms": str(expires_ms),
        }
        public = public_settings(self._properties)
        credentials = tuple(StorageCredential(p, storage_config(public, p) | own) for p in prefixes_of(directories))
        vended = VendedCredentials(credentials, fingerprint_of(assumed["AccessKeyId"], str(expires_ms)), expires_ms)
        return self._cache.keep((may_write, directories), vended, expires_ms - 500 * self._lifetime_s)


def _on_s3(locations: Sequence[str]) -> tuple[str, ...]:
    """The directories of a table on S3, without those that lie in another one."""
    return tuple(outermost(p.rstrip("/") for p in locations if scheme_of(p) in S3_SCHEMES))


def render_policy(directories: Sequence[str], role: str, *, may_write: bool) -> str:
    """The policy for STS; RefusedError if it would cover a whole bucket, or is longer than STS accepts."""
    for directory in directories:
        if not directory.partition("://")[2].partition("/")[2]:
            raise RefusedError(
                f"expected a directory below a bucket to hand out credentials for, found the whole of `{directory}`",
                hints=["give the table a location of its own"],
            )
    # STS accepts no characters beyond Latin-1 in a policy
    text = json.dumps(policy(directories, partition_of(role), may_write=may_write), separators=(",", ":"))
    if len(text) > MAX_POLICY_CHARACTERS:
        raise _too_long(directories, f"found {len(text):,}")
    return text


def policy(directories: Sequence[str], partition: str = "aws", *, may_write: bool) -> dict[str, Any]:
    """The policy for a table: read below each directory and list it, and write and delete where the caller may."""
    actions = _WRITING if may_write else _READING
    statements: list[dict[str, Any]] = []
    below: dict[str, list[str]] = {}
    for directory in directories:
        bucket, _, path = directory.partition("://")[2].partition("/")
        arn = f"arn:{partition}:s3:::{bucket}"
        statements.append({"Effect": "Allow", "Action": actions, "Resource": f"{arn}/{_literal(path)}/*"})
        below.setdefault(arn, []).append(f"{_literal(path)}/*")
    for arn, prefixes in below.items():
        within = {"StringLike": {"s3:prefix": prefixes}}
        statements.append({"Effect": "Allow", "Action": "s3:ListBucket", "Resource": arn, "Condition": within})
        if may_write:
            statements.append({"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": arn})
    return {"Version": "2012-10-17", "Statement": statements}


def partition_of(role: str) -> str:
    """The AWS partition of a role, e.g. `aws-cn`."""
    parts = role.split(":")
    return parts[1] if len(parts) > 1 and parts[1] else "aws"


def _too_long(directories: Sequence[str], found: str) -> RefusedError:
    return RefusedError(
        f"expected directories whose policy AWS STS takes (at most {MAX_POLICY_CHARACTERS:,} characters), {found} "
        f"for {len(directories)} directories",
        hints=["give the table a shorter location, or fewer directories"],
    )


def _literal(path: str) -> str:
    """A path without wildcards."""
    return "".join(f"${{{c}}}" if c in "*?$" else c for c in path)


def _open_sts(properties: Mapping[str, str]) -> Any:
    try:
        boto3 = importlib.import_module("boto3")
    except ImportError:
        raise UnsupportedError(
            "expected the package boto3 to assume a role, found none", hints=[install_hint("glue")]
        ) from None
    given = {
        "region_name": properties.get("client.region", properties.get("s3.region")),
        "aws_access_key_id": properties.get("s3.access-key-id", properties.get("client.access-key-id")),
        "aws_secret_access_key": properties.get("s3.secret-access-key", properties.get("client.secret-access-key")),
        "aws_session_token": properties.get("s3.session-token", properties.get("client.session-token")),
    }
    try:
        return boto3.client("sts", **given)
    except Exception as error:  # noqa: BLE001  (boto3 raises its own and ValueError; none may escape)
        raise InvalidInputError(f"cannot open AWS STS: {error}") from None
