"""Addresses of buckets and objects on an S3 endpoint."""

import pytest

from bergline.errors import InvalidInputError, RefusedError
from bergline.server.credentials.s3_address import S3Endpoint

OWN = S3Endpoint("http://127.0.0.1:9000", "us-east-1")
NAMED = S3Endpoint("https://s3.example.com", "eu-west-1")
AMAZON = S3Endpoint(None, "eu-west-1")


@pytest.mark.parametrize(
    ("endpoint", "uri", "bucket", "key", "again"),
    [
        (OWN, "http://127.0.0.1:9000/b/w/t/f", "b", "w/t/f", None),
        (OWN, "http://127.0.0.1:9000/b", "b", "", None),
        (OWN, "http://127.0.0.1:9000/b/", "b", "", "http://127.0.0.1:9000/b"),
        (NAMED, "https://s3.example.com/b/f", "b", "f", None),
        (NAMED, "https://S3.example.com:443/b/f", "b", "f", "https://s3.example.com/b/f"),
        (NAMED, "https://b.s3.example.com/w/t/f", "b", "w/t/f", None),
        (NAMED, "https://a.b.s3.example.com/f", "a.b", "f", None),
        (NAMED, "https://b.s3.example.com", "b", "", "https://b.s3.example.com/"),
        (AMAZON, "https://b.s3.eu-west-1.amazonaws.com/f", "b", "f", None),
        (AMAZON, "https://s3.eu-west-1.amazonaws.com/b/f", "b", "f", None),
        (AMAZON, "https://b.s3.dualstack.eu-west-1.amazonaws.com/f", "b", "f", None),
        (S3Endpoint(), "https://b.s3.us-east-2.amazonaws.com/f", "b", "f", None),
        (OWN, "http://127.0.0.1:9000/b/p%3D%C3%A9%2520x/f+g", "b", "p=é%20x/f+g", "http://127.0.0.1:9000/b/p%3D%C3%A9%2520x/f%2Bg"),
        (OWN, "http://127.0.0.1:9000/b?prefix=a/b+c&delete", "b", "", "http://127.0.0.1:9000/b?prefix=a%2Fb%20c&delete="),
    ],
)  # fmt: skip
def test_addresses_are_parsed_and_made_again_from_their_parts(
    endpoint: S3Endpoint, uri: str, bucket: str, key: str, again: str | None
) -> None:
    found = endpoint.parse(uri, "us-east-2")
    assert (found.bucket, found.key) == (bucket, key)
    assert found.uri == (again or uri)
    assert endpoint.parse(found.uri, "us-east-2").uri == found.uri


@pytest.mark.parametrize(
    ("endpoint", "uri"),
    [
        (OWN, "http://127.0.0.1:9001/b/f"),
        (OWN, "https://127.0.0.1:9000/b/f"),
        (OWN, "http://127.0.0.1/b/f"),
        (OWN, "http://169.254.169.254/latest/meta-data"),
        (OWN, "http://127.0.0.1:9000@evil.com/b/f"),
        (OWN, "http://evil@127.0.0.1:9000/b/f"),
        (OWN, "http://127.0.0.1:9000.evil.com/b/f"),
        (OWN, "http://127.0.0.1.:9000/b/f"),
        (OWN, "//127.0.0.1:9000/b/f"),
        (OWN, "ftp://127.0.0.1:9000/b/f"),
        (OWN, "b/f"),
        (OWN, ""),
        (NAMED, "https://s3.example.com.evil.com/b/f"),
        (NAMED, "https://evils3.example.com/b/f"),
        (NAMED, "https://.s3.example.com/b/f"),
        (NAMED, "https://-.s3.example.com/b/f"),
        (NAMED, "https://example.com/b/f"),
        (AMAZON, "http://b.s3.eu-west-1.amazonaws.com/f"),
        (AMAZON, "https://b.s3.us-east-1.amazonaws.com/f"),
        (AMAZON, "https://b.s3.amazonaws.com/f"),
        (AMAZON, "https://sts.eu-west-1.amazonaws.com/"),
        (OWN, "http://127.0.0.1:9000"),
        (OWN, "http://127.0.0.1:9000//b/f"),
        (OWN, "http://127.0.0.1:9000/%2Fb/f"),
        (OWN, "http://127.0.0.1:9000/../b/f"),
        (OWN, "http://127.0.0.1:9000/b%00/f"),
        (OWN, "http://127.0.0.1:9000/arn:aws:s3:::b/f"),
    ],
)
def test_other_hosts_and_paths_to_no_bucket_are_refused(endpoint: S3Endpoint, uri: str) -> None:
    with pytest.raises((RefusedError, InvalidInputError)):
        endpoint.parse(uri, "us-east-1")


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:9000/b/f#x",
        "http://127.0.0.1:9000/b/f#",
        "http://127.0.0.1:9000/b/f\n",
        "http://127.0.0.1:9000/b/f g",
        "http://127.0.0.1:9000/b/é",
        "http://127.0.0.1:9000/b/%ff",
        "http://127.0.0.1:99999/b/f",
        "http://[::1/b/f",
        "http://127.0.0.1:9000/b?prefix=a&prefix=b",
        "http://127.0.0.1:9000/b?prefix=a&pre%66ix=b",
        "http://127.0.0.1:9000/b?prefix=%ff",
    ],
)
def test_text_that_can_be_read_in_two_ways_is_refused(uri: str) -> None:
    with pytest.raises((RefusedError, InvalidInputError)):
        OWN.parse(uri, "us-east-1")


def test_the_region_is_the_server_s_or_a_plain_word() -> None:
    assert OWN.region_for("eu-west-9") == "us-east-1"
    assert S3Endpoint().region_for("eu-west-9") == "eu-west-9"
    for region in ("", "a/b", "a\nb", "x" * 65):
        with pytest.raises(InvalidInputError, match="expected a region"):
            S3Endpoint().region_for(region)
