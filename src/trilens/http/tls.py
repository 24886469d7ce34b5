"""The TLS context of the service."""

import os
import ssl
from pathlib import Path

from trilens.errors import BadInput

PASSWORD_VARIABLE = "TRILENS_TLS_PASSWORD"


def make_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context for TLS 1.2 and later, with a certificate chain and its private key in PEM files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, certificate, key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Read the files into a context; connections that begin later use them."""
    for file in (certificate, key):
        try:
            file.read_bytes()
        except OSError as error:
            raise BadInput(f"{file} cannot be read ({error.strerror}); expected a PEM file") from error
    try:
        context.load_cert_chain(certificate, key, password=lambda: os.environ.get(PASSWORD_VARIABLE, ""))
    except ssl.SSLError as error:
        raise BadInput(f"--tls-cert {certificate} and --tls-key {key} cannot be used: {_cause(error, key)}") from error


def _cause(error: ssl.SSLError, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not that of the certificate"
    if b"ENCRYPTED" in key.read_bytes():
        return f"the key is encrypted; set {PASSWORD_VARIABLE} to its password"
    return "expected a certificate chain and a private key in PEM format"
