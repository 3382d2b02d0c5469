"""Signatures for S3 with the server's own keys; that S3 accepts them is shown in `tests/s3`."""

import pytest

from bergline.errors import InvalidInputError
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.signable import SignableRequest

PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}
GET = SignableRequest("GET", "https://b.s3.eu-west-1.amazonaws.com/w/f", "eu-west-1", {}, "UNSIGNED-PAYLOAD", True)


def test_only_headers_that_are_missing_are_returned() -> None:
    signed = S3Signer(PROPERTIES).sign(GET)
    assert signed.uri == GET.uri
    assert set(signed.headers) == {"Authorization", "X-Amz-Date", "X-Amz-Content-SHA256"}
    ((authorization,), (payload,)) = signed.headers["Authorization"], signed.headers["X-Amz-Content-SHA256"]
    assert "Credential=server-key/" in authorization
    assert "/eu-west-1/s3/aws4_request" in authorization
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date," in authorization
    assert payload == "UNSIGNED-PAYLOAD"
    given = {"x-amz-content-sha256": "0" * 64, "x-amz-meta-a": "b"}
    put = S3Signer(PROPERTIES).sign(SignableRequest("PUT", GET.uri, "eu-west-1", given, "0" * 64, False))
    assert set(put.headers) == {"Authorization", "X-Amz-Date"}
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta-a," in put.headers["Authorization"][0]


def test_the_secret_is_nowhere() -> None:
    signer = S3Signer(PROPERTIES | {"s3.session-token": "server-token"})
    signed = signer.sign(GET)
    assert signed.headers["X-Amz-Security-Token"] == ("server-token",)
    assert "server-secret" not in f"{signed}{signer.storage}{signer!r}"
    assert "server-token" not in str(signer.storage)


def test_settings_for_clients_name_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert S3Signer(PROPERTIES).storage == {"s3.region": "eu-west-1", "client.region": "eu-west-1"}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3.test:9000")
    signer = S3Signer(PROPERTIES)
    assert signer.endpoint.url == signer.storage["s3.endpoint"] == "http://s3.test:9000"
    assert signer.storage["s3.path-style-access"] == "true"


def test_servers_that_cannot_sign_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="without a path"):
        S3Signer(PROPERTIES | {"s3.endpoint": "http://s3.test/path"})
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidInputError, match="expected credentials of S3 to sign requests with"):
        S3Signer({"s3.region": "eu-west-1"})
