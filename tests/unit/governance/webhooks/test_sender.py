"""Messages to webhooks."""

import base64
import datetime as dt
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bergline.governance.webhooks.addresses import WebhookAddresses
from bergline.governance.webhooks.sender import WebhookSender, sign
from bergline.governance.webhooks.store import WebhookSecret
from support.servers.webhook_receiver import WebhookReceiver

SECRET = WebhookSecret("whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode())
LOCAL = WebhookAddresses(["127.0.0.0/8"])


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


def test_signature_is_that_of_standard_webhooks() -> None:
    """The example of its text."""
    secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert (
        sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
    assert "MfKQ" not in repr(secret)


def test_message_is_signed(receiver: WebhookReceiver) -> None:
    result = WebhookSender(LOCAL).send(f"{receiver.url}?a=b", SECRET, "m-1", b"[]")
    assert (result.status, result.error) == (200, None)
    (message,) = receiver.messages
    assert message.is_signed_by(SECRET.reveal())
    assert (message.path, message.body) == ("/hook?a=b", b"[]")
    assert message.headers["content-type"] == "application/cloudevents-batch+json"
    assert message.headers["webhook-id"] == "m-1"
    assert abs(int(message.headers["webhook-timestamp"]) - time.time()) < 60


@pytest.mark.parametrize("status", [301, 302, 400, 404, 410, 500, 503])
def test_other_status_than_success_is_an_error_and_redirects_are_not_followed(
    receiver: WebhookReceiver, status: int
) -> None:
    receiver.statuses, receiver.location = [status], f"{receiver.url}/elsewhere"
    result = WebhookSender(LOCAL).send(receiver.url, SECRET, "m", b"[]")
    assert (result.status, result.error) == (status, f"the receiver responded with status {status}")
    assert result.is_gone == (status == 410)
    assert len(receiver.messages) == 1


def test_private_address_is_not_called(receiver: WebhookReceiver) -> None:
    result = WebhookSender(WebhookAddresses()).send(receiver.url, SECRET, "m", b"[]")
    assert result.error == "host `127.0.0.1` has no address, or one that is not public"
    assert receiver.messages == []


def test_name_is_looked_up_once_and_the_checked_address_is_called(receiver: WebhookReceiver) -> None:
    """A name that is at an allowed address when it is checked, and at another one right after."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Any:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(asked) == 1 else "169.254.169.254", port))]

    sender = WebhookSender(WebhookAddresses(["127.0.0.1"], rebinding))
    url = f"http://rebound.example:{receiver.port}/"
    assert sender.send(url, SECRET, "m", b"[]").status == 200
    assert asked == ["rebound.example"]
    assert receiver.messages[0].headers["host"] == f"rebound.example:{receiver.port}"
    assert "not public" in str(sender.send(url, SECRET, "m", b"[]").error)
    assert len(receiver.messages) == 1


def test_receiver_that_does_not_answer_is_given_up(receiver: WebhookReceiver) -> None:
    receiver.stalled = threading.Event()
    result = WebhookSender(LOCAL, timeout_s=0.2).send(receiver.url, SECRET, "m", b"[]")
    assert (result.status, result.error) == (None, "the receiver did not respond within 0.2 s")


def test_receiver_that_answers_bit_by_bit_is_given_up() -> None:
    """Each byte comes in time, the answer does not."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def drip() -> None:
            connected, _ = listening.accept()
            with connected:
                for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000:
                    if ended.wait(0.02):
                        return
                    try:
                        connected.sendall(bytes([byte]))
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        started = time.monotonic()
        result = WebhookSender(LOCAL, timeout_s=0.3).send(url, SECRET, "m", b"[]")
        took = time.monotonic() - started
        ended.set()
        thread.join()
    assert result.error == "the receiver did not respond within 0.3 s"
    assert took < 5


def test_receiver_that_is_not_there_or_talks_nonsense() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def nonsense() -> None:
            for said in (b"220 mail ready secret-banner\r\n", b""):
                connected, _ = listening.accept()
                with connected:
                    connected.recv(65536)
                    connected.sendall(said)

        thread = threading.Thread(target=nonsense)
        thread.start()
        talked, silent = (WebhookSender(LOCAL).send(f"http://127.0.0.1:{port}/", SECRET, "m", b"[]") for _ in range(2))
        thread.join()
    gone = WebhookSender(LOCAL).send(f"http://127.0.0.1:{port}/", SECRET, "m", b"[]")
    assert talked.error == "cannot reach the receiver: BadStatusLine"
    assert silent.error is not None
    assert silent.error.startswith("the receiver closed the connection")
    assert gone.error == "cannot reach the receiver: Connection refused"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for `hooks.example`, with its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hooks.example")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(("host", "works"), [("hooks.example", True), ("others.example", False)])
def test_certificate_is_verified_for_the_name_in_the_url(
    receiver: WebhookReceiver, certificate: Path, host: str, works: bool
) -> None:
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate)
    receiver._server.socket = serving.wrap_socket(receiver._server.socket, server_side=True)
    local = ipaddress.ip_address("127.0.0.1")
    addresses = WebhookAddresses(["127.0.0.1"], lambda _, port: [(2, 1, 6, "", (str(local), port))])
    sender = WebhookSender(addresses, tls=ssl.create_default_context(cafile=str(certificate)))
    result = sender.send(f"https://{host}:{receiver.port}/hook", SECRET, "m", b"[]")
    if works:
        assert (result.status, result.error) == (200, None)
    else:
        assert "certificate is not valid" in str(result.error)
        assert receiver.messages == []
