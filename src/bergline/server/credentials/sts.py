"""Temporary AWS credentials for one table only: the server assumes a role for each table."""

import hashlib
import importlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.catalog.sql.directories.table_directories import outermost
from bergline.errors import InvalidInputError, RefusedError, UnavailableError, UnsupportedError
from bergline.extras import install_hint
from bergline.governance.grants.file_actions import FileActions
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.credentials.credentials_cache import CredentialsCache
from bergline.server.credentials.file_access import METADATA_MARK, VERSION_HINT
from bergline.server.credentials.vending import VendedCredentials, fingerprint_of, prefixes_of, storage_config
from bergline.server.http.settings import public_settings

SHORTEST_S, LONGEST_S = 900, 43_200
MAX_POLICY_CHARACTERS = 2048
_ABOUT_THE_POLICY = {"PackedPolicyTooLarge", "PackedPolicyTooLargeException", "MalformedPolicyDocument"}
_NOT_IN_A_SESSION_NAME = re.compile(r"[^A-Za-z0-9_+=,.@-]")
_LONGEST_NAME, _HASH_DIGITS = 42, 12  # with the prefix and a dash 64, the most that STS takes
_READING = ["s3:GetObject"]
_DECRYPTING = ["kms:Decrypt"]
_DECRYPTING_AND_ENCRYPTING = [*_DECRYPTING, "kms:GenerateDataKey"]  # the parts of a large object are read again
_KMS_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
_WRITING = [*_READING, "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
_DELETING = [*_WRITING, "s3:DeleteObject"]
_OF_THE_SERVER = (f"*{METADATA_MARK}*", f"*/{VERSION_HINT}")


class StsVending:
    """AssumeRole for each principal, with a policy for the directories of a table; kept until half of the lifetime."""

    is_for_one_table = True
    keeps_files = False

    def __init__(
        self,
        properties: Mapping[str, str],
        role: str,
        lifetime_s: int,
        *,
        kms_keys: Sequence[str] = (),
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not SHORTEST_S <= lifetime_s <= LONGEST_S:
            raise InvalidInputError(
                f"expected a lifetime of 15 minutes to 12 hours for credentials, found {lifetime_s} seconds"
            )
        for key in kms_keys:
            if not _KMS_KEY.fullmatch(key):
                raise InvalidInputError(
                    f"expected the ARN of a key of AWS KMS (arn:aws:kms:REGION:ACCOUNT:key/ID), found `{key[:200]}`",
                    hints=["policies know keys by their own ARN only: that of an alias opens none"],
                )
        self._kms_keys = tuple(kms_keys)
        self._properties = dict(properties)
        self._role = role
        self._lifetime_s = lifetime_s
        self._sts = _open_sts(self._properties)
        self._cache = CredentialsCache(clock_ms)

    def credentials(self, locations: Sequence[str], actions: FileActions, *, principal: str) -> VendedCredentials:
        """Cached or new credentials; RefusedError where no policy can be limited to these directories."""
        directories = _on_s3(locations)
        if not directories:
            return VendedCredentials((), "")
        known = self._cache.find((principal, actions, directories))
        return known or self._assume(directories, actions, principal)

    def cached_credentials(
        self, locations: Sequence[str], actions: FileActions, *, principal: str
    ) -> VendedCredentials | None:
        """Credentials that are cached and have half of their lifetime left."""
        directories = _on_s3(locations)
        return self._cache.find((principal, actions, directories)) if directories else VendedCredentials((), "")

    def _assume(self, directories: tuple[str, ...], actions: FileActions, principal: str) -> VendedCredentials:
        session_policy = render_policy(directories, self._role, actions, self._kms_keys)
        try:
            assumed = self._sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=session_name(principal),
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
        return self._cache.keep((principal, actions, directories), vended, expires_ms - 500 * self._lifetime_s)


def _on_s3(locations: Sequence[str]) -> tuple[str, ...]:
    """The directories of a table on S3, without those that lie in another one."""
    return tuple(outermost(p.rstrip("/") for p in locations if scheme_of(p) in S3_SCHEMES))


def session_name(principal: str) -> str:
    """The name of a principal's sessions, which AWS logs with each request: the principal as far as STS takes it.

    A hash keeps principals apart whose names look the same then.
    """
    digest = hashlib.sha256(principal.encode(errors="surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"bergline-{_NOT_IN_A_SESSION_NAME.sub('-', principal)[:_LONGEST_NAME]}-{digest}"


def render_policy(directories: Sequence[str], role: str, actions: FileActions, kms_keys: Sequence[str] = ()) -> str:
    """The policy for STS; RefusedError if it would cover a whole bucket, or is longer than STS accepts."""
    for directory in directories:
        if not directory.partition("://")[2].partition("/")[2]:
            raise RefusedError(
                f"expected a directory below a bucket to hand out credentials for, found the whole of `{directory}`",
                hints=["give the table a location of its own"],
            )
    # STS accepts no characters beyond Latin-1 in a policy
    text = json.dumps(policy(directories, actions, partition_of(role), kms_keys), separators=(",", ":"))
    if len(text) > MAX_POLICY_CHARACTERS:
        raise _too_long(directories, f"found {len(text):,}")
    return text


def policy(
    directories: Sequence[str], actions: FileActions, partition: str = "aws", kms_keys: Sequence[str] = ()
) -> dict[str, Any]:
    """The policy for a table: read below each directory and list it, and write and delete where the caller may.

    Files that the server alone writes are denied: the patterns of that hold in the whole bucket, to be short. Objects
    that are encrypted with keys of KMS need these too; only S3 may use them, on the caller's behalf.
    """
    allowed = _READING if actions < FileActions.WRITE else _WRITING if actions < FileActions.DELETE else _DELETING
    statements: list[dict[str, Any]] = []
    below: dict[str, list[str]] = {}
    for directory in directories:
        bucket, _, path = directory.partition("://")[2].partition("/")
        arn = f"arn:{partition}:s3:::{bucket}"
        statements.append({"Effect": "Allow", "Action": allowed, "Resource": f"{arn}/{_literal(path)}/*"})
        below.setdefault(arn, []).append(f"{_literal(path)}/*")
    for arn, prefixes in below.items():
        within = {"StringLike": {"s3:prefix": prefixes}}
        statements.append({"Effect": "Allow", "Action": "s3:ListBucket", "Resource": arn, "Condition": within})
        if actions >= FileActions.WRITE:
            statements.append({"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": arn})
            denied = [action for action in allowed if action not in _READING]
            kept = [f"{arn}/{pattern}" for pattern in _OF_THE_SERVER]
            statements.append({"Effect": "Deny", "Action": denied, "Resource": kept})
    if kms_keys:
        using = _DECRYPTING if actions < FileActions.WRITE else _DECRYPTING_AND_ENCRYPTING
        through_s3 = {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com*"}}  # in China it ends with `.cn`
        keys = list(kms_keys)
        statements.append({"Effect": "Allow", "Action": using, "Resource": keys, "Condition": through_s3})
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
