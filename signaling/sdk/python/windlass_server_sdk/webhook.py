"""Webhooks: their signature, and their events."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import time
from collections.abc import Mapping

from .coding import from_json
from .types_gen import Event

TOLERANCE_SECONDS = 300
"""How far the time of a request may be from ours."""


class WebhookError(Exception):
    """A request is no genuine webhook of the server, or too old. Answer it with 400 or 401."""


def read_webhook(secret: str, headers: Mapping[str, str], body: bytes) -> Event:
    """Checks the signature and age of a webhook, and gives its event. Of a type that is not known here, ignore it.

    `secret`: the server's `webhook-secret`, `whsec_…`. `headers`: the request's. `body`: as it came, not parsed and
    written again.
    """
    key = _read_secret(secret)
    said = {name.lower(): value for name, value in headers.items()}
    try:
        at, name, signatures = (said[f"webhook-{part}"] for part in ("timestamp", "id", "signature"))
    except KeyError as error:
        raise WebhookError(f"the request has no {error}") from error
    if not abs(time.time() - _number(at)) <= TOLERANCE_SECONDS:
        raise WebhookError("the webhook is too old, or a clock is wrong")
    signed = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(signed)
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures.split(" ")):
        raise WebhookError("the webhook's signature is wrong")
    try:
        return from_json(Event, json.loads(body))
    except ValueError as error:
        raise WebhookError(f"the webhook's body is no event: {error}") from error


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_secret(secret: str) -> bytes:
    prefix, _, coded = secret.partition("_")
    try:
        key = base64.b64decode(coded, validate=True)
    except binascii.Error as error:
        raise ValueError("a webhook secret is `whsec_` and Base64") from error
    if prefix != "whsec" or len(key) < 24:
        raise ValueError("a webhook secret is `whsec_` and 24 bytes or more in Base64")
    return key
