"""An authority that signs certificates for tests."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_LOOPBACK = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])


class Authority:
    """Vouches for names; `path` has its own certificate."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.path = str(directory / f"{name}.pem")
        Path(self.path).write_bytes(self._signed(name, self._key, ca=True).public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, at: str | None = None, passphrase: bytes | None = None) -> tuple[str, str]:
        """A certificate for loopback and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._signed(name, key, ca=False)
        hidden = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        paths = tuple(self._directory / f"{at or name}.{part}" for part in ("crt", "key"))
        paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden))
        return str(paths[0]), str(paths[1])

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .issuer_name(self._name)
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(_LOOPBACK, critical=False)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
