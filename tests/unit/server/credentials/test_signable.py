"""Which requests to S3 are signed for whom."""

import hashlib
from urllib.parse import unquote

import pytest

from bergline.catalog.rest.protocol.s3_signing import RemoteSignRequest
from bergline.errors import BerglineError, InvalidInputError, RefusedError, UnsupportedError
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.s3_address import S3Endpoint
from bergline.server.credentials.signable import SignableRequest, check_signable, deleted_keys

ENDPOINT = S3Endpoint("http://s3.test:9000", "us-east-1")
HOME = "http://s3.test:9000/b"
DIRECTORIES = ["s3://b/w/t", "s3a://b/data/t/", "s3://c/x y", "file:///w/other", "s3://root", "s3://root2/"]
TABLE = f"{HOME}/w/t"
LIST = f"{HOME}?list-type=2&prefix"


def check(
    method: str,
    uri: str,
    headers: dict[str, str] | None = None,
    body: str | None = None,
    *,
    actions: FileActions = FileActions.DELETE,
) -> SignableRequest:
    values = {name: (value,) for name, value in (headers or {}).items()}
    request = RemoteSignRequest("us-east-1", uri, method, values, body=body)
    return check_signable(request, ENDPOINT, DIRECTORIES, actions)


def deleting(*keys: str) -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}<Quiet>true</Quiet></Delete>'


READS = [
    ("GET", f"{TABLE}/metadata/v1.json"),
    ("HEAD", f"{TABLE}/data/p%3D1/f.parquet?x-id=HeadObject"),
    ("GET", f"{HOME}/data/t/f"),
    ("GET", "http://b.s3.test:9000/w/t/f"),
    ("GET", "http://s3.test:9000/c/x%20y/f"),
    ("GET", f"{LIST}=w%2Ft%2F"),
    ("GET", f"{LIST}=w/t/data/&delimiter=%2F&max-keys=1000&continuation-token=abc%2B"),
    ("GET", f"{HOME}/?prefix=w/t/data/p&marker=x"),
    (
        "GET",
        f"{LIST}=w/t/&delimiter=d&max-keys=1&continuation-token=t&start-after=a&marker=m&encoding-type=url&fetch-owner=1",
    ),
]
WRITES = [
    ("PUT", f"{TABLE}/f"),
    ("PUT", f"{TABLE}/f?x-id=PutObject"),
    ("PUT", f"{TABLE}/f?partNumber=1&uploadId=u"),
    ("POST", f"{TABLE}/f?uploads"),
    ("POST", f"{TABLE}/f?uploadId=u"),
    ("DELETE", f"{TABLE}/f"),
    ("DELETE", f"{TABLE}/f?uploadId=u"),
    ("POST", f"{HOME}?delete"),
]


@pytest.mark.parametrize(("method", "uri"), READS)
def test_readers_read_and_list(method: str, uri: str) -> None:
    for actions in FileActions:
        found = check(method, uri, {"Range": "bytes=0-9", "User-Agent": "x"}, actions=actions)
        assert found.is_reusable
        assert found.headers == found.added == {}
        assert found.payload_hash == "UNSIGNED-PAYLOAD"


@pytest.mark.parametrize(("method", "uri"), WRITES)
def test_only_writers_write(method: str, uri: str) -> None:
    body = deleting("w/t/f", "data/t/é&amp;") if uri.endswith("delete") else None
    assert not check(method, uri, body=body).is_reusable
    with pytest.raises(RefusedError, match="you may read the files of this table, not write"):
        check(method, uri, body=body, actions=FileActions.READ)


@pytest.mark.parametrize(("method", "uri"), WRITES)
def test_who_may_add_files_makes_new_ones_and_deletes_none(method: str, uri: str) -> None:
    body = deleting("w/t/f") if uri.endswith("delete") else None
    if "delete" in uri or (method == "DELETE" and "uploadId" not in uri):
        with pytest.raises(RefusedError, match="you may not delete files of this table"):
            check(method, uri, body=body, actions=FileActions.WRITE)
        return
    makes = (method == "PUT" and "partNumber" not in uri) or (uri.endswith("?uploadId=u") and method == "POST")
    assert check(method, uri, actions=FileActions.WRITE).added == ({"if-none-match": "*"} if makes else {})
    assert check(method, uri).added == {}
    if makes:
        others = check(method, uri, {"Content-Type": "a/b", "Range": "x"}, actions=FileActions.WRITE)
        assert (others.headers, others.added) == ({"content-type": "a/b"}, {"if-none-match": "*"})
        own = check(method, uri, {"If-None-Match": "*"}, actions=FileActions.WRITE)
        assert (own.headers, own.added) == ({"if-none-match": "*"}, {})
        for other in ('"etag"', "", "*, *"):
            with pytest.raises(BerglineError, match="you may make new files only"):
                check(method, uri, {"If-None-Match": other}, actions=FileActions.WRITE)


@pytest.mark.parametrize("actions", list(FileActions))
@pytest.mark.parametrize(
    "name",
    [
        "metadata/00001-a.metadata.json", "metadata/00001-a.gz.metadata.json", "metadata/00001-a.metadata.json.gz",
        "metadata/v3.METADATA.json", "data/x.metadata.json", "metadata/version-hint.text", "%76ersion-hint.text",
        "metadata/a.metadata%2Ejson",
    ],
)  # fmt: skip
def test_nobody_writes_or_deletes_metadata_files(name: str, actions: FileActions) -> None:
    assert check("GET", f"{TABLE}/{name}", actions=actions).is_reusable
    for method, uri in WRITES[:-1]:
        for headers in ({}, {"If-None-Match": "*"}, {"x-amz-copy-source": "b/w/t/f"}):
            with pytest.raises(RefusedError):
                check(method, uri.replace("/t/f", f"/t/{name}"), headers, actions=actions)
    with pytest.raises(RefusedError):
        check("POST", f"{HOME}?delete", body=deleting("w/t/f", f"w/t/{unquote(name)}"), actions=actions)


def test_other_files_beside_metadata_files_are_written() -> None:
    for name in ("snap-1-2-a.avro", "a-m0.avro", "00001-a.stats", "metadata.json", "p=a.metadata.json/f.parquet"):
        assert check("PUT", f"{TABLE}/metadata/{name}", actions=FileActions.WRITE).added


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "w/t",
        "w/t2/f",
        "w/other/f",
        "w/f",
        "W/t/f",
        "w/t/../other/f",
        "w/t/%2e%2e/other/f",
        "w/t/%252e%252e/f",
        "w/t/..%2Fother/f",
        "w/t/./f",
        "w/t/..;x/f",
        "w/t/..",
        "w//t/f",
        "w/t//f",
        "/w/t/f",
        "w%5Ct/f",
        "w/t/%5C..%5Cf",
        "w/t/f%0A",
        "w/t/f%00",
        "w%2Ft2/f",
        "c/x/f",
        "",
    ],
)
def test_files_of_others_are_refused(method: str, path: str) -> None:
    with pytest.raises(RefusedError):
        check(method, f"{HOME}/{path}")


@pytest.mark.parametrize(
    "uri",
    [
        "http://s3.test:9000/c/w/t/f",
        "http://s3.test:9000/root/f",
        "http://s3.test:9000/root2/f",
        "http://s3.test:9000/B/w/t/f",
        "http://c.s3.test:9000/w/t/f",
        "http://b.s3.test:9000/b/w/t/f",
        "http://evil.test/b/w/t/f",
        "http://s3.test:9000/b/c/x+y/f",
        "http://s3.test:9000/c/x+y/f",
    ],
)
def test_other_buckets_and_hosts_are_refused(uri: str) -> None:
    with pytest.raises(RefusedError):
        check("GET", uri)


@pytest.mark.parametrize(
    "prefix", ["", "w", "w/", "w/t", "w/t2/", "w/t/../", "%2Fw/t/", "w/t//", "w/other/", "data/", "/w/t/", "x/"]
)
def test_only_directories_of_the_table_are_listed(prefix: str) -> None:
    with pytest.raises(RefusedError):
        check("GET", f"{LIST}={prefix}")


@pytest.mark.parametrize(
    "query",
    [
        "acl", "policy", "policyStatus", "versioning", "versions&prefix=w/t/", "lifecycle", "location", "cors",
        "logging", "website", "notification", "replication", "tagging", "encryption", "object-lock", "retention",
        "publicAccessBlock", "legal-hold", "inventory", "analytics", "metrics", "accelerate", "requestPayment",
        "torrent", "restore", "select&select-type=2", "attributes", "versionId=1", "uploads&acl", "uploadId=u&acl",
        "partNumber=1", "list-type=2&prefix=w/t/&acl", "X-Amz-Signature=x", "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "response-content-type=text/html", "ACL", "%61cl", "", "list-type=2", "delete&acl", "session", "x-id=a&acl",
        "ownershipControls",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_sub_resources_are_refused(method: str, query: str) -> None:
    with pytest.raises(RefusedError):
        check(method, f"{HOME}?{query}", body=deleting("w/t/f"))
    if query:
        with pytest.raises(RefusedError):
            check(method, f"{TABLE}/f?{query}")


@pytest.mark.parametrize(
    ("method", "query"),
    [(m, "list-type=2&prefix=w/t/") for m in ("HEAD", "PUT", "POST", "DELETE")]
    + [(m, "delete") for m in ("GET", "HEAD", "PUT", "DELETE")],
)
def test_a_bucket_is_listed_by_get_and_files_are_deleted_by_post_alone(method: str, query: str) -> None:
    with pytest.raises(RefusedError, match="expected a request that reads, writes, deletes or lists files"):
        check(method, f"{HOME}?{query}", body=deleting("w/t/f"))


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "CONNECT", "get", "", "GET\nx", "POST"])
def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(RefusedError):
        check(method, f"{TABLE}/f")


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-acl", "X-Amz-Grant-Full-Control", "x-amz-grant-read", "x-amz-tagging", "x-amz-object-lock-mode",
        "x-amz-bypass-governance-retention", "x-amz-website-redirect-location", "x-amz-security-token", "x-amz-mfa",
        "x-amz-copy-source-server-side-encryption-customer-key", "x-amz-rename-source", "x-amz-write-offset-bytes",
    ],
)  # fmt: skip
def test_headers_that_do_more_are_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="expected headers of reads and writes"):
        check("PUT", f"{TABLE}/f", {name: "x"})


def test_headers_on_the_list_are_signed() -> None:
    given = {
        "Content-Type": "a/b",
        "X-Amz-Meta-Mine": "1",
        "x-amz-date": "old",
        "Authorization": "no",
        "If-None-Match": "*",
    }
    found = check("PUT", f"{TABLE}/f", given)
    assert found.headers == {"content-type": "a/b", "x-amz-meta-mine": "1"}
    assert check("GET", f"{TABLE}/f", {"x-amz-checksum-mode": "ENABLED"}).is_reusable
    assert check("GET", f"{TABLE}/f", {"x-amz-checksum-mode": "ENABLED", "x-amz-te": "trailers"}).is_reusable
    assert check("GET", f"{TABLE}/f", {"x-amz-checksum-mode": "ENABLED", "x-amz-te": "append-md5"}).is_reusable
    assert check("PUT", f"{TABLE}/f", {"Content-Type": "a/b"}, actions=FileActions.WRITE).added == {
        "if-none-match": "*"
    }
    assert not check("GET", f"{TABLE}/f", {"x-amz-request-payer": "requester"}).is_reusable
    assert check("PUT", f"{TABLE}/f", {"x-amz-trailer": "x-amz-checksum-crc32"}).payload_hash.startswith("STREAMING-UN")
    for kind in ("UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "0" * 64):
        assert check("PUT", f"{TABLE}/f", {"x-amz-content-sha256": kind}).payload_hash == kind
    with pytest.raises(UnsupportedError, match="not signed in chunks"):
        check("PUT", f"{TABLE}/f", {"x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"})


def test_headers_that_sdks_send_with_files_are_signed() -> None:
    names = """checksum-algorithm checksum-crc32 checksum-crc32c checksum-crc64nvme checksum-mode checksum-sha1
        checksum-sha256 checksum-type copy-source-if-match copy-source-if-none-match copy-source-range
        decoded-content-length expected-bucket-owner metadata-directive mp-object-size request-payer
        sdk-checksum-algorithm server-side-encryption server-side-encryption-aws-kms-key-id
        server-side-encryption-bucket-key-enabled server-side-encryption-context
        server-side-encryption-customer-algorithm server-side-encryption-customer-key
        server-side-encryption-customer-key-md5 storage-class te trailer user-agent"""
    given = {"content-md5": "x", "content-type": "x"} | {f"x-amz-{name}": "x" for name in names.split()}
    assert check("PUT", f"{TABLE}/f", given).headers == given


@pytest.mark.parametrize("values", [("a\nx-amz-acl:public-read",), ("a", "b"), (), ("é",), (" a",), ("a\r",)])
def test_header_values_cannot_carry_other_headers(values: tuple[str, ...]) -> None:
    request = RemoteSignRequest("r", f"{TABLE}/f", "PUT", {"x-amz-meta-a": values})
    with pytest.raises(InvalidInputError):
        check_signable(request, ENDPOINT, DIRECTORIES, FileActions.DELETE)
    twice = RemoteSignRequest("r", f"{TABLE}/f", "PUT", {"x-amz-meta-a": ("1",), "X-Amz-Meta-A": ("2",)})
    with pytest.raises(InvalidInputError):
        check_signable(twice, ENDPOINT, DIRECTORIES, FileActions.DELETE)


@pytest.mark.parametrize("source", ["b/w/t/f", "/b/w/t/f", "b/data/t/%C3%A9", "c/x%20y/f"])
def test_files_of_the_table_are_copied_within_it(source: str) -> None:
    assert check("PUT", f"{TABLE}/g", {"x-amz-copy-source": source}).headers == {"x-amz-copy-source": source}


@pytest.mark.parametrize(
    "source",
    [
        "b/w/other/f", "b/w/t", "c/w/t/f", "b/w/t/../other/f", "b/w/t/%2e%2e/other/f", "b/w/t/%252e%252e/f",
        "b/w/t/f?versionId=1", "b/w/t/f%3FversionId=1%252F", "c/x+y/f", "arn:aws:s3:::b/w/t/f", "b", "", "b%2Fw%2Ft2/f",
        "b/w/t/%2525", "//b/w/t/f",
    ],
)  # fmt: skip
def test_files_of_others_are_not_copied(source: str) -> None:
    with pytest.raises(BerglineError):
        check("PUT", f"{TABLE}/g", {"x-amz-copy-source": source})


def test_copies_are_writes() -> None:
    with pytest.raises(RefusedError):
        check("GET", f"{TABLE}/g", {"x-amz-copy-source": "b/w/t/f"})
    with pytest.raises(RefusedError):
        check("PUT", f"{TABLE}/g", {"x-amz-copy-source": "b/w/t/f"}, actions=FileActions.READ)


def test_the_signature_of_a_deletion_is_for_the_body_that_was_checked() -> None:
    body = deleting("w/t/a", "data/t/b")
    known = hashlib.sha256(body.encode()).hexdigest()
    assert check("POST", f"{HOME}?delete", body=body).payload_hash == known
    assert check("POST", f"{HOME}?delete=", {"x-amz-content-sha256": known}, body).payload_hash == known
    for other in ("UNSIGNED-PAYLOAD", "0" * 64):
        with pytest.raises(RefusedError, match="expected the hash of the body"):
            check("POST", f"{HOME}?delete", {"x-amz-content-sha256": other}, body)


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "x",
        "<Delete>",
        "<Other><Object><Key>w/t/f</Key></Object></Other>",
        "<Delete><Other><Key>w/t/f</Key></Other></Delete>",
        deleting("w/t/a", "w/other/f"),
        deleting("w/t/../f"),
        deleting("w/t"),
        deleting(""),
        deleting(" w/t/f"),
        deleting("w/t/&#46;&#46;/f"),
        deleting(*["w/t/f"] * 1002),
        "<Delete><Object><Key>w/t/f</Key><Key>x</Key></Object></Delete>",
        "<Delete><Object><Key>w/t/f<b>x</b></Key></Object></Delete>",
        "<Delete><Object><Key>w/t/f</Key><VersionId>1</VersionId></Object></Delete>",
        "<Delete><Object/></Delete>",
        "<Delete><Quiet><Object><Key>x</Key></Object></Quiet></Delete>",
        "<Delete><Object><Key>w/t/<!-- -->f</Key></Object></Delete>",
        "<Delete><Object><Key><![CDATA[w/t/f]]></Key></Object></Delete>",
        '<!DOCTYPE d [<!ENTITY e "x">]><Delete><Object><Key>w/t/&e;</Key></Object></Delete>',
        '<?xml version="1.0" encoding="UTF-7"?><Delete><Object><Key>w/t/f</Key></Object></Delete>',
        '<Delete><?xml version="1.0"?><Object><Key>w/t/f</Key></Object></Delete>',
        '<Delete><Object><Key>w/t/<?xml version="1.0"?>f</Key></Object></Delete>',
        '<?xml version="1.0"?><?xml version="1.0"?><Delete><Object><Key>w/t/f</Key></Object></Delete>',
        deleting(*["w/t/f"] * 1001),
        "<Delete><?x y?><Object><Key>w/t/f</Key></Object></Delete>",
        f"<Delete>{' ' * 5_000_000}</Delete>",
    ],
)
def test_bodies_that_delete_other_files_are_refused(body: str | None) -> None:
    with pytest.raises((RefusedError, InvalidInputError)):
        check("POST", f"{HOME}?delete", body=body)


def test_keys_are_read_as_the_store_reads_them() -> None:
    assert deleted_keys(deleting("a/b", "c&amp;d", "é")) == ["a/b", "c&d", "é"]
    assert deleted_keys(deleting(*["a"] * 1000)) == ["a"] * 1000
    padded = deleting("a").replace("<Quiet>", f"{' ' * (4 * 1024 * 1024 - len(deleting('a')))}<Quiet>")
    assert deleted_keys(padded) == ["a"]
    with pytest.raises(InvalidInputError, match="expected up to 4,194,304 characters"):
        deleted_keys(f"{padded} ")


def test_other_providers_are_not_signed_for() -> None:
    request = RemoteSignRequest("r", f"{TABLE}/f", "GET", {}, provider="gcs")
    with pytest.raises(UnsupportedError, match="expected `s3`"):
        check_signable(request, ENDPOINT, DIRECTORIES, FileActions.DELETE)
    for provider in (None, "", "s3"):
        request = RemoteSignRequest("r", f"{TABLE}/f", "GET", {}, provider=provider)
        assert check_signable(request, ENDPOINT, DIRECTORIES, FileActions.READ).is_reusable
