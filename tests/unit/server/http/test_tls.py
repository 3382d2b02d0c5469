"""TLS of the server: who may connect, and certificates that are exchanged while it runs."""

import http.client
import os
import signal
import socket
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bergline
from bergline.errors import InvalidInputError, UnavailableError
from bergline.server.http.settings import ServerSettings
from bergline.server.http.tls import TlsFiles, TlsSettings, make_context
from bergline.server.opening import open_server
from support.servers.bergline_server import BerglineServer
from support.servers.certificates import Authority
from support.servers.server_on_socket import on_socket


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def _serial(port: int, trusted: ssl.SSLContext) -> str:
    """Which certificate a new connection gets."""
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        trusted.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        return str(connection.getpeercert()["serialNumber"])  # type: ignore[index]


@pytest.fixture
def running(authority: Authority, tmp_path: Path) -> Iterator[tuple[TlsFiles, int, list[str]]]:
    """A server in this process, its files, and what it says."""
    said: list[str] = []
    files = TlsFiles(TlsSettings(*authority.sign("server")), said.append)
    opened = open_server(f"sqlite:///{tmp_path}/catalog.db")
    with files, on_socket(opened, tls=files.context) as port:
        yield files, port, said
    opened.catalog.close()


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_new_connections_get_the_new_certificate_and_others_go_on(
    running: tuple[TlsFiles, int, list[str]], authority: Authority
) -> None:
    files, port, said = running
    trusted = ssl.create_default_context(cafile=authority.path)
    first = _serial(port, trusted)
    kept = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=10)
    kept.request("GET", "/v1/config")
    assert kept.getresponse().read()
    authority.sign("server")
    assert files.reload()
    assert _serial(port, trusted) != first
    kept.request("GET", "/v1/config")
    assert kept.getresponse().status == 200
    kept.close()
    assert "new connections get the certificate" in said[0]


def test_a_change_is_noticed_without_being_told(running: tuple[TlsFiles, int, list[str]], authority: Authority) -> None:
    _, port, _ = running
    trusted = ssl.create_default_context(cafile=authority.path)
    first = _serial(port, trusted)
    authority.sign("server")
    _until(lambda: _serial(port, trusted) != first)
    assert _serial(port, trusted) != first


@pytest.mark.parametrize("broken", ["gone", "no certificate", "key of another", "passphrase"])
def test_files_that_are_not_right_change_nothing(
    broken: str, running: tuple[TlsFiles, int, list[str]], authority: Authority, tmp_path: Path
) -> None:
    files, port, said = running
    trusted = ssl.create_default_context(cafile=authority.path)
    first = _serial(port, trusted)
    other = authority.sign("other", passphrase=b"secret" if broken == "passphrase" else None)
    match broken:
        case "gone":
            (tmp_path / "server.crt").unlink()
        case "no certificate":
            (tmp_path / "server.crt").write_text("nothing of the kind")
        case "key of another":
            (tmp_path / "server.key").write_bytes(Path(other[1]).read_bytes())
        case "passphrase":
            (tmp_path / "server.crt").write_bytes(Path(other[0]).read_bytes())
            (tmp_path / "server.key").write_bytes(Path(other[1]).read_bytes())
    assert not files.reload()
    assert said[0].startswith("the certificate stays as it was: expected PEM files for --tls-cert and --tls-key")
    assert _serial(port, trusted) == first
    authority.sign("server")
    assert files.reload()
    assert _serial(port, trusted) != first


@pytest.mark.parametrize("place", [0, 1, 2])
def test_wrong_files_are_refused_before_the_server_listens(place: int, authority: Authority, tmp_path: Path) -> None:
    paths = [*authority.sign("server"), authority.path]
    paths[place] = str(tmp_path / "none.pem")
    with pytest.raises(InvalidInputError, match=r"expected PEM files for --tls-.*none\.pem.*: No such file"):
        make_context(TlsSettings(*paths))


def test_old_versions_of_tls_are_refused(running: tuple[TlsFiles, int, list[str]], authority: Authority) -> None:
    _, port, _ = running
    old = ssl.create_default_context(cafile=authority.path)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _serial(port, old)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert _serial(port, old)


def test_what_is_refused_at_once_is_said_over_tls_too(authority: Authority, tmp_path: Path) -> None:
    """Closing the sending half is not possible there."""
    opened = open_server(f"sqlite:///{tmp_path}/catalog.db", limits=ServerSettings(max_header_bytes=1000))
    trusted = ssl.create_default_context(cafile=authority.path)
    with on_socket(opened, tls=make_context(TlsSettings(*authority.sign("server")))) as port:
        for path, status in (("/" + "x" * 2000, 431), ("no http at all", 400)):
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=10)
            connection._validate_path = lambda _: None  # type: ignore[attr-defined]
            connection.request("GET", path)
            assert connection.getresponse().status == status
            connection.close()
    opened.catalog.close()


@pytest.mark.long
def test_clients_need_a_certificate_where_it_is_asked_for(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.sign("server")
    (tmp_path / "others").mkdir()
    strangers = Authority(tmp_path / "others", "strangers")
    own, foreign = authority.sign("client"), strangers.sign("client")
    options = ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path]
    with BerglineServer(tmp_path, *options) as server:
        assert server.uri.startswith("https://127.0.0.1:")
        trust = {"ssl.cabundle": authority.path}
        mine = trust | {"ssl.client.cert": own[0], "ssl.client.key": own[1]}
        with bergline.connect(server.uri, properties=mine) as lake:
            lake.create_namespace("db")
            assert lake.list_namespaces() == ["db"]
        for wrong in (trust, trust | {"ssl.client.cert": foreign[0], "ssl.client.key": foreign[1]}):
            with pytest.raises(UnavailableError, match=r"no response from https://127.*closed connection") as refused:
                bergline.connect(server.uri, properties=wrong)
            assert "ssl.client.cert" in refused.value.hints[0]
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            bergline.connect(server.uri, properties={"ssl.client.cert": own[0], "ssl.client.key": own[1]})
        authority.sign("server")
        trusted = ssl.create_default_context(cafile=authority.path)
        trusted.load_cert_chain(*own)
        host, port = "127.0.0.1", int(server.uri.rpartition(":")[2])
        first = _serial(port, trusted)
        os.kill(server.process_id, signal.SIGHUP)
        _until(lambda: _serial(port, trusted) != first)
        signed_in = http.client.HTTPSConnection(host, port, context=trusted, timeout=10)
        signed_in.request("GET", "/")
        cookie = signed_in.getresponse().headers["set-cookie"]
        assert "; Secure" in cookie
        signed_in.close()
