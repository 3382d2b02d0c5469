"""Settings that are refused before the first token comes."""

import pytest

from bergline.errors import InvalidInputError
from bergline.server.access.oidc.issuer_settings import check_issuers
from bergline.server.http.settings import OidcIssuer

CORP = OidcIssuer("corp", "https://id.example/realms/corp", "bergline")


def test_issuers_with_aliases_and_urls_of_their_own_are_taken() -> None:
    check_issuers([CORP, OidcIssuer("ci", "http://localhost:8080", "x", jwks_url="https://id.example/keys")])


@pytest.mark.parametrize(
    ("issuers", "why"),
    [
        ([OidcIssuer("Corp", CORP.url, "x")], "alias"),
        ([OidcIssuer("a:b", CORP.url, "x")], "alias"),
        ([OidcIssuer("", CORP.url, "x")], "alias"),
        ([OidcIssuer("corp", "http://id.example", "x")], "https"),
        ([OidcIssuer("corp", "https://user:secret@id.example", "x")], "URL like"),
        ([OidcIssuer("corp", "https://[id", "x")], "URL like"),
        ([OidcIssuer("corp", "id.example", "x")], "URL like"),
        ([OidcIssuer("corp", "file:///etc/keys", "x")], "URL like"),
        ([OidcIssuer("corp", CORP.url, "x", jwks_url="http://id.example/keys")], "keys of issuer"),
        ([OidcIssuer("corp", CORP.url, " ")], "audience"),
        ([OidcIssuer("corp", CORP.url, "x", principal_claim="")], "claim for names"),
        ([CORP, OidcIssuer("corp", "https://other.example", "x")], "each alias"),
        ([CORP, OidcIssuer("other", CORP.url, "x")], "each URL"),
    ],
)
def test_ambiguous_or_unsafe_settings_are_refused(issuers: list[OidcIssuer], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why) as refused:
        check_issuers(issuers)
    assert "secret" not in str(refused.value)
