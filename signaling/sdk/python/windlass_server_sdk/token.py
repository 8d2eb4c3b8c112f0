"""Access tokens (RFC 7519)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from pathlib import Path

from .coding import to_json
from .types_gen import Claims

MIN_SECRET_BYTES = 32
"""The shortest secret (RFC 7518 §3.2)."""


def sign_token(key: str, claims: Claims) -> str:
    """Makes an access token with HS256.

    `key`: as the server has it, `ID=SECRET` or `ID=@FILE`. Ed25519 keys are not for this function, as Python's standard
    library does not sign with them.
    """
    name, secret = _read_key(key)
    head = f"{_part({'typ': 'JWT', 'alg': 'HS256', 'kid': name})}.{_part(to_json(claims))}"
    signature = hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{_base64(signature)}"


def _read_key(key: str) -> tuple[str, bytes]:
    name, _, said = key.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise ValueError("a token key must be ID=SECRET or ID=@FILE")
    secret = Path(said[1:]).read_bytes().strip() if said.startswith("@") else said.encode()
    if secret.startswith(b"-----BEGIN "):
        raise ValueError(f"token key `{name}` is one of Ed25519; this SDK signs with secrets alone")
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(f"the secret of token key `{name}` has less than {MIN_SECRET_BYTES} bytes")
    return name, secret


def _part(value: object) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
