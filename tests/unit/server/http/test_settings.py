"""What clients may know of the server's settings."""

from bergline.server.http.settings import public_settings


def test_secrets_are_not_public() -> None:
    public = {"s3.endpoint": "http://host", "s3.region": "eu-west-1"}
    secret = {"s3.access-key-id": "me", "s3.secret-access-key": "hush", "s3.session-token": "t"}
    assert public_settings(public | secret) == public
