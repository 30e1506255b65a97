"""Certificates for tests, made by the system's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(directory: Path, days: int = 2) -> tuple[Path, Path]:
    """A key, and a certificate that signs itself."""
    key, chain = directory / "key.pem", directory / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(chain), "-days", str(days), "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return key, chain


def expired(key: Path, chain: Path) -> Path:
    """The same certificate, good for no time at all."""
    command = ["openssl", "x509", "-in", str(chain), "-signkey", str(key), "-days", "0"]
    made = chain.with_name("expired.pem")
    subprocess.run([*command, "-out", str(made)], check=True, capture_output=True)
    return made
