"""Which requests to S3 the server signs for a client: those on the files of one table, within the client's privilege.

Everything is on a list of what is allowed: hosts, operations, query parameters, headers. The address that is signed is
made from the parts that were checked.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

import msgspec

from bergline.catalog.rest.protocol.s3_signing import RemoteSignRequest
from bergline.errors import InvalidInputError, RefusedError, UnsupportedError
from bergline.governance.grants.file_actions import FileActions
from bergline.io.locations import directory_location, scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.credentials.file_access import is_of_the_server
from bergline.server.credentials.s3_address import S3Address, S3Endpoint, check_key, decode

UNSIGNED = "UNSIGNED-PAYLOAD"
UNSIGNED_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
PAYLOAD_HASH = "x-amz-content-sha256"
_PROVIDER = "s3"
_READS = {"GET", "HEAD"}
_X_ID = "x-id"  # SDKs say there which operation it is; S3 does not look at it
_LISTING = {
    "prefix",
    "list-type",
    "delimiter",
    "max-keys",
    "continuation-token",
    "start-after",
    "marker",
    "encoding-type",
    "fetch-owner",
}
_Operation = tuple[str, frozenset[str]]
_PUT: _Operation = ("PUT", frozenset())
_COMPLETE: _Operation = ("POST", frozenset({"uploadId"}))
_ON_OBJECTS: dict[_Operation, FileActions] = {
    ("GET", frozenset()): FileActions.READ,
    ("HEAD", frozenset()): FileActions.READ,
    _PUT: FileActions.WRITE,
    ("DELETE", frozenset()): FileActions.DELETE,
    ("POST", frozenset({"uploads"})): FileActions.WRITE,
    ("PUT", frozenset({"uploadId", "partNumber"})): FileActions.WRITE,
    _COMPLETE: FileActions.WRITE,
    ("DELETE", frozenset({"uploadId"})): FileActions.WRITE,
}
"""The operations on objects by method and query parameters, and what they need."""
_NEW_ONLY, _ANY = "if-none-match", "*"
"""A header by which S3 makes an object only under a name that is free."""
_COPY_SOURCE = "x-amz-copy-source"
_SIGNED_HEADERS = {
    "content-md5",
    "content-type",
    PAYLOAD_HASH,
    "x-amz-checksum-algorithm",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-mode",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    "x-amz-checksum-type",
    _COPY_SOURCE,
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-range",
    "x-amz-decoded-content-length",
    "x-amz-expected-bucket-owner",
    "x-amz-metadata-directive",
    "x-amz-mp-object-size",
    "x-amz-request-payer",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
    "x-amz-server-side-encryption-context",
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
    "x-amz-storage-class",
    "x-amz-te",
    "x-amz-trailer",
    "x-amz-user-agent",
}
_WITH_EACH_READ = {"x-amz-checksum-mode", "x-amz-te"}
"""Headers that an SDK sends with each read or with none."""
_METADATA = "x-amz-meta-"
_OURS = "x-amz-date"
"""A header that the signature brings; that of the client is not looked at."""
_HASH = re.compile(r"[0-9a-f]{64}")
_PROLOG = re.compile(r"""\A\s*<\?xml version=["']1\.0["'](?: encoding=["']utf-8["'])?\s*\?>""", re.IGNORECASE)
_LONGEST_BODY = 4 * 1024 * 1024
_MOST_KEYS = 1000


class SignableRequest(msgspec.Struct, frozen=True):
    """A request that may be signed, with the headers that its signature covers."""

    method: str
    uri: str
    region: str
    headers: dict[str, str]
    payload_hash: str
    is_reusable: bool
    """Whether the signature fits the same request again: a client may keep it for a moment."""
    added: dict[str, str] = {}
    """Headers that the client has to send besides its own."""


def check_signable(
    request: RemoteSignRequest, endpoint: S3Endpoint, directories: Sequence[str], actions: FileActions
) -> SignableRequest:
    """The request to sign; RefusedError if it is not on files in the directories, or more than the actions."""
    if request.provider not in {None, "", _PROVIDER}:
        raise UnsupportedError("expected `s3` at $.provider, found another provider")
    address = endpoint.parse(request.uri, request.region)
    table = _Directories(directories)
    needed = _check_object(request, address, table) if address.key else _check_bucket(request, address, table)
    _check_actions(request, needed, actions)
    headers = _headers(request, table)
    payload_hash = _payload_hash(request, headers, is_bound=not address.key and needed > FileActions.READ)
    is_new = actions < FileActions.DELETE and (request.method, _parameters(address)) in {_PUT, _COMPLETE}
    return SignableRequest(
        method=request.method,
        uri=address.uri,
        region=endpoint.region_for(request.region),
        headers=headers,
        payload_hash=payload_hash,
        is_reusable=request.method in _READS and headers.keys() <= _WITH_EACH_READ,
        added=_new_only(request, headers) if is_new else {},
    )


def _check_actions(request: RemoteSignRequest, needed: FileActions, actions: FileActions) -> None:
    """RefusedError for a request that does more than the caller may."""
    if needed <= actions:
        return
    if actions is FileActions.READ:
        raise RefusedError(
            f"expected a request that reads, found {request.method}: you may read the files of this table, not write"
        )
    raise RefusedError(
        f"expected a request that reads or makes new files, found {request.method}: "
        "you may not delete files of this table",
        hints=["who has the privilege `drop` on the table may delete its files"],
    )


def _new_only(request: RemoteSignRequest, headers: dict[str, str]) -> dict[str, str]:
    """Sign that the object must be new: by the client's own header if it sends that, else by one that it is given."""
    own = [value for name, values in request.headers.items() if name.lower() == _NEW_ONLY for value in values]
    if own not in ([], [_ANY]):
        raise RefusedError("expected `*` in `if-none-match`, found another text: you may make new files only")
    if own:
        headers[_NEW_ONLY] = _ANY
        return {}
    return {_NEW_ONLY: _ANY}


class _Directories:
    """The directories of a table on S3, as buckets and prefixes of keys."""

    def __init__(self, directories: Sequence[str]) -> None:
        parsed = [directory_location(d) for d in directories if scheme_of(d) in S3_SCHEMES]
        self._inside = [(found.authority, f"{found.key}/") for found in parsed if found.key]

    def check(self, bucket: str, key: str) -> None:
        """RefusedError for an object, or a prefix of keys, that is outside."""
        check_key(key)
        if not any(bucket == own and key.startswith(prefix) for own, prefix in self._inside):
            raise RefusedError(f"expected a file of this table, found {f's3://{bucket}/{key}'[:300]!a}")


def _check_object(request: RemoteSignRequest, address: S3Address, table: _Directories) -> FileActions:
    """Check a request for one object; returns what it needs."""
    table.check(address.bucket, address.key)
    needed = _ON_OBJECTS.get((request.method, _parameters(address)))
    if needed is None:
        raise _unknown(request, address)
    if needed > FileActions.READ:
        _check_of_clients(address.key)
    return needed


def _check_of_clients(key: str) -> None:
    """RefusedError for a file that the server alone writes."""
    if is_of_the_server(key):
        raise RefusedError(
            f"expected a data file, a manifest or statistics to write or delete, found {key[-300:]!a}: "
            "the server alone writes and deletes metadata files",
            hints=["change the table by a commit, or drop it"],
        )


def _check_bucket(request: RemoteSignRequest, address: S3Address, table: _Directories) -> FileActions:
    """Check a request for a bucket, to list a directory or to delete many objects; returns what it needs."""
    names = _parameters(address)
    if request.method == "GET" and "prefix" in names and names <= _LISTING:
        table.check(address.bucket, address.query["prefix"])
        return FileActions.READ
    if request.method == "POST" and names == {"delete"}:
        for key in deleted_keys(request.body):
            table.check(address.bucket, key)
            _check_of_clients(key)
        return FileActions.DELETE
    raise _unknown(request, address)


def _parameters(address: S3Address) -> frozenset[str]:
    return frozenset(address.query) - {_X_ID}


def _unknown(request: RemoteSignRequest, address: S3Address) -> RefusedError:
    shown = ", ".join(sorted(_parameters(address)))[:200]
    what = f"{request.method[:20]!a} on {'an object' if address.key else 'a bucket'}"
    return RefusedError(
        "expected a request that reads, writes, deletes or lists files, found "
        f"{what}{f' with the parameters {shown!a}' if shown else ''}"
    )


def deleted_keys(body: str | None) -> list[str]:
    """The keys in the body of DeleteObjects; anything in it that parsers could read in two ways is refused."""
    if not body:
        raise InvalidInputError(
            "expected the list of objects to delete at $.body, found none",
            hints=["this client does not send it: delete objects one by one"],
        )
    if len(body) > _LONGEST_BODY:
        raise InvalidInputError(f"expected up to {_LONGEST_BODY:,} characters at $.body, found {len(body):,}")
    rest = _PROLOG.sub("", body)
    if "<!" in rest or "<?" in rest:
        raise InvalidInputError("expected plain XML in UTF-8 at $.body, found declarations")
    try:
        root = ET.fromstring(rest)  # noqa: S314  (no declarations are left, so no entities either)
    except (ET.ParseError, ValueError):
        raise InvalidInputError("expected XML at $.body, found another text") from None
    keys = []
    if _tag(root) != "Delete" or len(root) > _MOST_KEYS + 1:
        raise InvalidInputError(f"expected the XML of DeleteObjects, with up to {_MOST_KEYS} objects, at $.body")
    for child in root:
        if _tag(child) == "Quiet" and not len(child):
            continue
        if _tag(child) != "Object" or [_tag(part) for part in child] != ["Key"] or len(child[0]):
            raise RefusedError("expected objects with a key alone at $.body, found other elements")
        keys.append(child[0].text or "")
    return keys


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _headers(request: RemoteSignRequest, table: _Directories) -> dict[str, str]:
    """The headers to sign; RefusedError for one of S3's that is not on the list, as it could change what is done."""
    signed: dict[str, str] = {}
    for given, values in request.headers.items():
        name = given.lower()
        if name in signed:
            raise InvalidInputError("expected each header once at $.headers, found one again")
        if name in _SIGNED_HEADERS or name.startswith(_METADATA):
            signed[name] = _value(name, values)
        elif name.startswith("x-amz-") and name != _OURS:
            raise RefusedError(f"expected headers of reads and writes at $.headers, found {name[:80]!a}")
    if _COPY_SOURCE in signed:
        _check_source(request.method, signed[_COPY_SOURCE], table)
    return signed


def _value(name: str, values: Sequence[str]) -> str:
    if len(values) != 1 or not (values[0].isascii() and values[0].isprintable()) or values[0] != values[0].strip():
        raise InvalidInputError(f"expected one value of printable characters for header {name[:80]!a} at $.headers")
    return values[0]


def _check_source(method: str, value: str, table: _Directories) -> None:
    """Check the object that is copied; stores differ in how they decode the header, so there must be one way only."""
    source = decode(value, "$.headers").removeprefix("/")
    bucket, _, key = source.partition("/")
    if method != "PUT" or re.search(r"[+?]", value) or "%" in source:
        raise RefusedError("expected an object of this table in `x-amz-copy-source`, found another text")
    table.check(bucket, key)


def _payload_hash(request: RemoteSignRequest, headers: Mapping[str, str], *, is_bound: bool) -> str:
    """What the signature says of the body: nothing, unless the body says what is done; then it must be that one."""
    given = headers.get(PAYLOAD_HASH)
    if is_bound:
        known = hashlib.sha256((request.body or "").encode()).hexdigest()
        if given not in {None, known}:
            raise RefusedError("expected the hash of the body, which says what is deleted, in `x-amz-content-sha256`")
        return known
    if given is None:
        return UNSIGNED_CHUNKS if "x-amz-trailer" in headers else UNSIGNED
    if given not in {UNSIGNED, UNSIGNED_CHUNKS} and not _HASH.fullmatch(given):
        raise UnsupportedError("expected a body that is not signed in chunks, found another `x-amz-content-sha256`")
    return given
