"""Addresses that webhooks may have."""

from typing import Any

import pytest

from bergline.errors import InvalidInputError, RefusedError
from bergline.governance.webhooks.addresses import WebhookAddresses, WebhookTarget, parse_target


def answering(*addresses: str) -> Any:
    return lambda _host, port: [(2, 1, 6, "", (address, port)) for address in addresses]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "::1",
        "::",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "2002:7f00:0001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "192.0.0.192",  # metadata of Oracle's cloud
        "192.0.0.9",
        "168.63.129.16",  # the host in Azure
        "100.100.100.200",  # metadata of Alibaba's cloud
        "fd20:ce::254",  # metadata of Google's cloud
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "::ffff:168.63.129.16",
        "::ffff:0:10.0.0.1",
        "64:ff9b::192.0.0.192",
        "64:ff9b::168.63.129.16",
        "64:ff9b:1::1",
        "2002:a83f:8110::1",
        "2001::1",
        "2001:1::1",
        "2001:20::1",
        "2001:db8::1",
        "100::1",
        "100:0:0:1::1",
        "2620:4f:8000::1",
        "3fff::1",
        "5f00::1",
        "4000::1",
    ],
)
def test_address_that_is_not_public_is_refused_alone_and_beside_a_public_one(address: str) -> None:
    for found in ([address], ["93.184.216.34", address]):
        with pytest.raises(RefusedError, match="has no address, or one that is not public") as refused:
            WebhookAddresses(resolve=answering(*found)).find("hooks.example", 443)
        assert address.partition("%")[0] not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "168.63.129.17",
        "192.0.1.1",
        "2606:2800:220:1::1",
        "2001:200::1",
        "::ffff:93.184.216.34",
        "64:ff9b::5db8:d822",
        "2002:5db8:d822::1",
    ],
)
def test_public_address_is_allowed(address: str) -> None:
    assert len(WebhookAddresses(resolve=answering(address)).find("hooks.example", 443)) == 1


@pytest.mark.parametrize("text", ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::1]"])
def test_loopback_is_refused_however_it_is_written(text: str) -> None:
    target = parse_target(f"http://{text}/")
    with pytest.raises(RefusedError):
        WebhookAddresses().find(target.host, target.port)


@pytest.mark.parametrize("allow", ["10.0.0.0/8", "10.1.2.3", "hooks.example", "Hooks.Example."])
def test_operator_allows_networks_and_hosts(allow: str) -> None:
    found = WebhookAddresses([allow], answering("10.1.2.3")).find("hooks.example", 80)
    assert list(map(str, found)) == ["10.1.2.3"]
    with pytest.raises(RefusedError):
        WebhookAddresses([allow], answering("192.168.0.1")).find("others.example", 80)


@pytest.mark.parametrize("allow", ["10.0.0.0/99", "a b", ""])
def test_what_is_neither_host_nor_network_is_refused(allow: str) -> None:
    with pytest.raises(InvalidInputError, match="--webhook-allow"):
        WebhookAddresses([allow])


def test_host_without_an_address_is_refused_in_the_same_words() -> None:
    def fails(*_: object) -> Any:
        raise OSError

    for resolve in (fails, answering()):
        with pytest.raises(RefusedError, match="has no address, or one that is not public"):
            WebhookAddresses(resolve=resolve).find("nowhere.example", 80)


def test_parts_of_a_url() -> None:
    assert parse_target("https://Host.example/a?b=c") == WebhookTarget("https", "host.example", 443, "/a?b=c")
    assert parse_target("http://[2606::1]:8080").host_header == "[2606::1]:8080"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/path",
        "ftp://host/",
        "file:///etc/passwd",
        "gopher://host/",
        "https://",
        "https://user:password@host/",
        "https://host/#part",
        "https://host:0/",
        "https://host:99999/",
        "https://[::1/",
        "https://host/a b",
        "https://host/\r\nx: y",
        "https://höst/",
        f"https://host/{'a' * 2000}",
    ],
)
def test_other_urls_are_invalid(url: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_target(url)
    assert "password@" not in str(error.value)
