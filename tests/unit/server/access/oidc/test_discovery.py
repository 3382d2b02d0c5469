"""What an issuer says of itself."""

import msgspec
import pytest

from bergline.errors import UnavailableError
from bergline.server.access.oidc.discovery import IssuerDocuments
from bergline.server.http.settings import OidcIssuer
from support.servers.oidc_issuer import OidcIssuerServer


class Said(msgspec.Struct, frozen=True):
    issuer: str
    token_endpoint: str


def test_document_of_the_issuer_alone_is_taken(issuer: OidcIssuerServer) -> None:
    documents = IssuerDocuments(issuer.settings())
    assert documents.discover(Said).token_endpoint == f"{issuer.url}/token"
    issuer.issuer_said = "https://id.example"
    with pytest.raises(UnavailableError, match="expected the issuer"):
        documents.discover(Said)


@pytest.mark.parametrize("url", ["http://id.example/token", "https://u@id.example/", "javascript:1", "/token", ""])
def test_address_that_others_could_listen_to_is_refused(url: str) -> None:
    with pytest.raises(UnavailableError, match="token_endpoint"):
        IssuerDocuments(OidcIssuer("corp", "https://id.example", "x")).checked(url, "token_endpoint")


def test_issuer_elsewhere_names_no_address_on_this_machine() -> None:
    documents = IssuerDocuments(OidcIssuer("corp", "https://id.example", "x"))
    with pytest.raises(UnavailableError, match="on this machine"):
        documents.checked("https://127.0.0.1/token", "token_endpoint")
    assert documents.checked("https://id.example/token", "token_endpoint") == "https://id.example/token"
