"""Signatures for requests to S3 with the server's own keys, which clients never see."""

import importlib
from collections.abc import Mapping
from typing import Any

from bergline.catalog.rest.protocol.s3_signing import RemoteSignResponse
from bergline.errors import InvalidInputError, UnavailableError, UnsupportedError
from bergline.io.s3 import s3_endpoint
from bergline.server.credentials.s3_address import S3Endpoint
from bergline.server.credentials.signable import SignableRequest
from bergline.server.credentials.vending import storage_config
from bergline.server.http.settings import public_settings

_ANY_S3 = "s3://"


class S3Signer:
    """Signs requests, and knows what clients need to ask for it."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        url = s3_endpoint(properties)
        if url and url.partition("://")[2].partition("/")[2]:
            raise InvalidInputError(
                "expected an S3 endpoint without a path to sign requests for, found one with a path"
            )
        region = properties.get("s3.region", properties.get("client.region"))
        self.endpoint = S3Endpoint(url, region)
        public = public_settings(dict(properties)) | ({"s3.endpoint": url} if url else {})
        self.storage = storage_config(public, _ANY_S3)
        """The settings of S3 for clients."""
        self._requests = _module("botocore.awsrequest")
        self._auth = _module("botocore.auth")
        self._credentials = _credentials(properties)

    def sign(self, request: SignableRequest) -> RemoteSignResponse:
        """The headers to add to a request; S3 accepts them for 15 minutes."""
        sent = self._requests.AWSRequest(
            method=request.method, url=request.uri, headers={**request.headers, **request.added}
        )
        try:
            keys = self._credentials.get_frozen_credentials()
        except Exception as error:
            # botocore raises many classes; only their names are of use
            raise UnavailableError(f"cannot sign for S3: no credentials now ({type(error).__name__})") from error
        signing = self._auth.S3SigV4Auth(keys, "s3", request.region)
        signing.payload = lambda _: request.payload_hash
        signing.add_auth(sent)
        added: dict[str, tuple[str, ...]] = {
            name: (value,) for name, value in sent.headers.items() if name.lower() not in request.headers
        }
        return RemoteSignResponse(request.uri, added)


def _credentials(properties: Mapping[str, str]) -> Any:
    """The server's credentials: those in its properties, or those that AWS's own tools would find."""
    key = properties.get("s3.access-key-id", properties.get("client.access-key-id"))
    secret = properties.get("s3.secret-access-key", properties.get("client.secret-access-key"))
    if key and secret:
        token = properties.get("s3.session-token", properties.get("client.session-token"))
        return _module("botocore.credentials").Credentials(key, secret, token)
    found = _module("botocore.session").get_session().get_credentials()
    if found is None:
        raise InvalidInputError(
            "expected credentials of S3 to sign requests with, found none",
            hints=["give them with --property s3.access-key-id=… and --property s3.secret-access-key=…"],
        )
    return found


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UnsupportedError(
            "expected the package boto3 to sign requests, found none", hints=["pip install 'bergline[glue]'"]
        ) from None
