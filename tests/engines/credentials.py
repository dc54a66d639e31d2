"""A certificate authority, a server's certificate and nodes' keys, for tests on the loopback."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PLAIN = serialization.NoEncryption()


def certificates(folder: Path) -> None:
    """``ca.crt``, ``server.pem`` and ``server.key`` for 127.0.0.1, valid for a day."""
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("test", "localhost")
    ]
    made = []
    for place, (key, name) in enumerate(zip(keys, names, strict=True)):
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=place == 0, path_length=None), critical=True)
        )
        if place:
            loopback = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName("localhost"), *loopback]), critical=False
            )
        made.append(builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "ca.crt").write_bytes(made[0])
    (folder / "server.pem").write_bytes(made[1])
    (folder / "server.key").write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, _PLAIN
        )
    )


def node_key(path: Path) -> None:
    """A node's key pair as ``ssh-keygen -t ecdsa -b 384`` makes it: ``path`` and ``path``.pub."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, _PLAIN)
    )
    path.chmod(0o600)
    path.with_name(f"{path.name}.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    )
