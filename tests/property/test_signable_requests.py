"""Whatever is asked for, only requests on the table's own files are signed."""

from urllib.parse import parse_qsl, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from bergline.catalog.rest.protocol.s3_signing import RemoteSignRequest
from bergline.errors import BerglineError
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.s3_address import S3Endpoint
from bergline.server.credentials.signable import check_signable

ENDPOINT = S3Endpoint("http://s3.test:9000", "r")
PIECES = [
    "w", "t", "t2", "b", "f", "/", "//", ".", "..", "%2e", "%2E%2e", "%2F", "%252e", "%5c", ";", "?", "&", "=", "#",
    "@", ":", "+", "%20", "%00", "%", "é", "b/w/t/", "w/t/", "s3.test", ":9000", "http://", "b.s3.test:9000",
    "prefix=w/t/", "list-type=2", "acl", "delete", "uploads", "uploadId=u", "partNumber=1", "versionId=1",
    "policy", "x-id=GetObject", "a.metadata.json", "version-hint.text",
]  # fmt: skip
NASTY = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
START = st.sampled_from(
    ["http://s3.test:9000/b/w/t/", "http://s3.test:9000/b", "http://b.s3.test:9000/w/t/", "http:", ""]
)
METHODS = st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"])
KNOWN = {"prefix", "list-type", "uploads", "uploadId", "partNumber", "x-id"}


@given(START, NASTY, METHODS, st.sampled_from(FileActions))
def test_signed_addresses_are_inside_the_table(start: str, rest: str, method: str, actions: FileActions) -> None:
    request = RemoteSignRequest("r", start + rest, method, {})
    try:
        signed = check_signable(request, ENDPOINT, ["s3://b/w/t"], actions)
    except BerglineError:
        return
    parts = urlsplit(signed.uri)
    assert parts.scheme == "http"
    assert parts.netloc in {"s3.test:9000", "b.s3.test:9000"}
    path = unquote(parts.path).lstrip("/")
    if parts.netloc == "s3.test:9000":
        bucket, _, path = path.partition("/")
        assert bucket == "b"
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    assert query.keys() <= KNOWN
    place = path or query["prefix"]
    assert place.startswith("w/t/")
    assert not {"", ".", ".."} & set(place.removesuffix("/").split("/"))
    if signed.method not in {"GET", "HEAD"}:
        assert actions >= (FileActions.DELETE if signed.method == "DELETE" and not query else FileActions.WRITE)
        assert ".metadata.json" not in path.rpartition("/")[2].lower()
    assert (path != "") or signed.method == "GET"
