"""Credentials that are kept for a time."""

from bergline.server.credentials.credentials_cache import CredentialsCache
from bergline.server.credentials.vending import VendedCredentials


def test_credentials_are_kept_by_principal_access_and_directories_until_their_time() -> None:
    now = [0]
    cache = CredentialsCache(lambda: now[0])
    vended = VendedCredentials((), "a")
    assert cache.keep(("ann", True, ("s3://b/t",)), vended, 10) is vended
    assert cache.find(("ann", True, ("s3://b/t",))) is vended
    assert cache.find(("ann", False, ("s3://b/t",))) is None
    assert cache.find(("ann", True, ("s3://b/t2",))) is None
    assert cache.find(("bob", True, ("s3://b/t",))) is None
    now[0] = 10
    assert cache.find(("ann", True, ("s3://b/t",))) is None


def test_the_oldest_go_first() -> None:
    cache = CredentialsCache(lambda: 0)
    for number in range(10_001):
        cache.keep(("ann", True, (str(number),)), VendedCredentials((), ""), 1)
    assert cache.find(("ann", True, ("0",))) is None
    assert cache.find(("ann", True, ("1",))) is not None
