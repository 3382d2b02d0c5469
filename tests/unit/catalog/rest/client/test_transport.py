"""Connections: certificates that are trusted or not, and answers that are too long."""

import datetime as dt
import gzip
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.client.transport import ResponseLostError, Transport, UnusableResponseError
from bergline.errors import InvalidInputError, UnavailableError
from support.servers.scripted_rest_server import Reply, RestScript


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for loopback that only itself vouches for, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    path = tmp_path / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def asks_for_certificates() -> ssl.TLSVersion | None:
    """The version of TLS in which a certificate is asked for, if it is."""
    return None


@pytest.fixture
def uri(certificate: Path, asks_for_certificates: bool) -> Iterator[str]:
    """A server that says its configuration over TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  (a client that does not trust it hangs up)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if asks_for_certificates:
        context.maximum_version = asks_for_certificates
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


def check_connects(uri: str, properties: dict[str, str]) -> None:
    """A catalog asks the server for its configuration first, and raises if it does not trust the certificate."""
    RestCatalog(uri, properties).close()


def test_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent(uri: str) -> None:
    with pytest.raises(UnavailableError, match=r"cannot reach https://127.*CERTIFICATE_VERIFY_FAILED") as caught:
        RestCatalog(uri, {}, sleep=lambda _: None)
    assert "SSL_CERT_FILE" in caught.value.hints[0]


def test_authorities_of_the_environment_are_trusted(
    uri: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    check_connects(uri, {})


def test_authorities_of_the_properties_are_trusted(uri: str, certificate: Path) -> None:
    check_connects(uri, {"ssl.cabundle": str(certificate)})


@pytest.mark.parametrize("name", ["ssl.cabundle", "ssl.client.cert", "ssl.client.key"])
def test_files_of_tls_that_are_not_there_are_named(name: str, certificate: Path, tmp_path: Path) -> None:
    given = {"ssl.client.cert": str(certificate), name: str(tmp_path / "none.pem")}
    with pytest.raises(InvalidInputError, match=rf"expected PEM files in `.*{name}.*none\.pem: No such file"):
        RestCatalog("https://127.0.0.1:1", given)


@pytest.mark.parametrize("asks_for_certificates", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_certificate_of_the_client_that_is_asked_for(uri: str, certificate: Path) -> None:
    trust = {"ssl.cabundle": str(certificate)}
    RestCatalog(uri, trust | {"ssl.client.cert": str(certificate)}).close()
    with pytest.raises(UnavailableError, match=r"no response from https://127") as caught:
        RestCatalog(uri, trust, sleep=lambda _: None)
    assert "ssl.client.cert" in caught.value.hints[0]


LIMIT = 1024 * 1024


@pytest.fixture
def server() -> Iterator[RestScript]:
    with RestScript() as script:
        yield script


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport((10, 10), most_bytes=LIMIT)
    yield made
    made.close()


def packed(data: bytes, encoding: str = "gzip", times: int = 1) -> Reply:
    for _ in range(times):
        data = gzip.compress(data, compresslevel=1)
    return Reply(body=data, headers={"Content-Encoding": encoding})


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_answers_in_gzip_are_unpacked(server: RestScript, transport: Transport, encoding: str) -> None:
    server.on("GET /v1/x", packed(b"x" * LIMIT, encoding))
    assert transport.send("GET", f"{server.uri}/v1/x", {}, None).body == b"x" * LIMIT
    assert server.sent("GET /v1/x")[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize(("length", "is_packed"), [(LIMIT + 1, True), (100 * LIMIT, True), (2 * LIMIT, False)])
def test_answers_that_are_too_long_once_unpacked_are_given_up(
    server: RestScript, transport: Transport, length: int, is_packed: bool
) -> None:
    body = b"x" * length
    server.on("GET /v1/x", packed(body) if is_packed else Reply(body=body))
    with pytest.raises(UnusableResponseError, match="expected a response of up to 1048576 bytes, found a longer one"):
        transport.send("GET", f"{server.uri}/v1/x", {}, None)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate"])
def test_encodings_that_nobody_asked_for_are_refused(server: RestScript, transport: Transport, encoding: str) -> None:
    server.on("GET /v1/x", packed(b"x" * 10, encoding, times=2))
    with pytest.raises(UnusableResponseError, match=f"expected a response in gzip or plain, found `{encoding}`"):
        transport.send("GET", f"{server.uri}/v1/x", {}, None)


def test_answers_that_are_no_gzip_are_lost(server: RestScript, transport: Transport) -> None:
    server.on("GET /v1/x", Reply(body=b"no gzip at all", headers={"Content-Encoding": "gzip"}))
    with pytest.raises(ResponseLostError):
        transport.send("GET", f"{server.uri}/v1/x", {}, None)


def test_useless_answers_are_not_asked_for_again(server: RestScript) -> None:
    server.on("GET /v1/namespaces", Reply(body=b"{}", headers={"Content-Encoding": "br"}))
    catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
    with pytest.raises(UnavailableError, match=r"no response from http://127.*expected a response in gzip or plain"):
        catalog.list_namespaces()
    assert len(server.sent("GET /v1/namespaces")) == 1
    catalog.close()
