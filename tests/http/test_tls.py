"""HTTPS over real sockets, with a certificate that is made for the test."""

import signal
import socket
import ssl
import time
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from trilens.errors import BadInput
from trilens.http.tls import make_context

from ..cli.conftest import Trilens
from .running import Running, running

AUTHORITY = trustme.CA()
PATIENCE = 30


def certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    made = AUTHORITY.issue_cert("127.0.0.1", common_name=name)
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    return chain, key


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


def presented(service: Running) -> str:
    """The common name in the certificate of a service."""
    address = urlsplit(service.address)
    with (
        socket.create_connection((address.hostname, address.port or 0), timeout=PATIENCE) as connection,
        client_context().wrap_socket(connection, server_hostname="127.0.0.1") as secure,
    ):
        subject = secure.getpeercert()["subject"]  # type: ignore[index]
    return str(dict(pair[0] for pair in subject)["commonName"])  # type: ignore[misc]


def test_requests_over_tls(plain: Path, tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    with running(plain, "--tls-cert", chain, "--tls-key", key, "--max-head", 1) as service:
        assert service.address.startswith("https://127.0.0.1:")
        with httpx.Client(verify=client_context(), timeout=PATIENCE) as client:
            for _ in range(3):
                answer = client.post(f"{service.address}api/v1/collections/plain/search", json={"queries": ["directory"]})
                assert answer.json()["answers"][0]["hits"]
            body = b"x" * 300_000  # more than the buffers of one read
            assert client.post(f"{service.address}api/v1/encode", content=body).status_code == 422
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(service.address)
        old = client_context()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with pytest.raises(httpx.ConnectError):
            httpx.get(service.address, verify=old)
        address = urlsplit(service.address)
        for sent in (b"", b"GET / HTTP/1.1\r\n\r\n"):  # no handshake, and another protocol
            with socket.create_connection((address.hostname, address.port or 0), timeout=PATIENCE) as connection:
                connection.sendall(sent)
                try:
                    while connection.recv(1000):
                        pass
                except ConnectionResetError:
                    pass
        assert httpx.get(f"{service.address}api/v1/health", verify=client_context()).status_code == 200
        certificate(tmp_path, "renewed")
        for suffix in (".pem", ".key"):
            (tmp_path / f"renewed{suffix}").replace(tmp_path / f"server{suffix}")
        assert presented(service) == "server"
        service.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while presented(service) != "renewed" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert presented(service) == "renewed"
        key.write_text("nothing")
        service.process.send_signal(signal.SIGHUP)
        assert service.process.stderr is not None
        assert service.process.stderr.readline().startswith("the certificate stays as it was: ")
        assert presented(service) == "renewed"


def test_files_that_do_not_fit_are_one_line(plain: Path, tmp_path: Path, trilens: Trilens) -> None:
    chain, key = certificate(tmp_path)
    other = certificate(tmp_path, "other")[1]
    empty = tmp_path / "empty.pem"
    empty.touch()
    for arguments, says in (
        ([chain, other], "the key is not that of the certificate"),
        ([chain, empty], "expected a certificate chain and a private key in PEM format"),
        ([empty, key], "expected a certificate chain and a private key in PEM format"),
        ([chain, tmp_path / "none"], "cannot be read (No such file or directory)"),
    ):
        outcome = trilens("serve", plain, "--port", 0, "--tls-cert", arguments[0], "--tls-key", arguments[1])
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1), outcome.err
        assert says in outcome.err


def test_an_encrypted_key_needs_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, key = certificate(tmp_path)
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    protection = serialization.BestAvailableEncryption(b"open sesame")
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, protection))
    for password in ("", "wrong"):
        monkeypatch.setenv("TRILENS_TLS_PASSWORD", password)
        with pytest.raises(BadInput, match="the key is encrypted; set TRILENS_TLS_PASSWORD to its password"):
            make_context(chain, key)
    monkeypatch.setenv("TRILENS_TLS_PASSWORD", "open sesame")
    assert make_context(chain, key).minimum_version == ssl.TLSVersion.TLSv1_2
