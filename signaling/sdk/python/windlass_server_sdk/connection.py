"""Requests to one server."""

from __future__ import annotations

import json
import time
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Optional, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .coding import from_json, to_json
from .token import sign_token
from .types_gen import AdminError, Claims

T = TypeVar("T")

TOKEN_SECONDS = 60
"""How long a token of the client's own is valid."""


class ApiError(Exception):
    """The server refused a request.

    `status`: of the answer. `code`: the reason, for programs: one of `AdminErrorCode`, a later server's, or empty if no
    Windlass server answered. `message`: what happened, for people. `hint`: what to do next, for people.
    """

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint


class NoAnswerError(Exception):
    """There was no answer, or none in time. `__cause__` says why. The request may have been carried out."""


class _Stay(HTTPRedirectHandler):
    """A token goes nowhere else than to the server that is named."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Connection:
    """Sends requests to one server, each once: nothing is tried again. It may be used by several threads."""

    def __init__(
        self, url: str, *, key: Optional[str] = None, token: Optional[str] = None, timeout: float = 15.0
    ) -> None:
        """
        `url`: the server's address, such as `https://calls.example`. `key`: its token key, by which each request gets a
        token for all rooms (see `sign_token`). `token`: an access token that grants `admin`, in the place of a key.
        `timeout`: the longest time in seconds without a sign of the server.
        """
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"not the address of a server: {url}")
        self._url = url.rstrip("/")
        self._key = key
        self._token = token
        self._timeout = timeout
        self._opener = build_opener(_Stay)

    def _send(self, method: str, path: list[str], body: Optional[object] = None) -> Any:  # noqa: ANN401
        url = f"{self._url}/admin{''.join(_segment(text) for text in path)}"
        request = Request(url, method=method)
        token = self._own_token()
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(to_json(body)).encode()
        try:
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    status, text = answer.status, answer.read()
            except HTTPError as refusal:
                with refusal:
                    status, text = refusal.code, refusal.read()
        except (OSError, HTTPException) as error:
            raise NoAnswerError(f"no answer from {url}: {error}") from error
        if not 200 <= status <= 299:
            raise _refusal(status, text)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise ApiError(status, "", "the answer is no JSON", "") from error

    def _read(self, kind: type[T], value: object) -> T:
        try:
            return from_json(kind, value)
        except ValueError as error:
            raise ApiError(200, "", f"the answer is not of the admin API: {error}", "") from error

    def _own_token(self) -> Optional[str]:
        if self._key is None:
            return self._token
        exp = int(time.time()) + TOKEN_SECONDS
        return sign_token(self._key, Claims(room="*", sub="server-sdk", grants=["admin"], exp=exp))


def _segment(text: str) -> str:
    # An address loses these, and would be another one.
    if text in ("", ".", ".."):
        raise ValueError(f"`{text}` is no name that a path can have")
    return f"/{quote(text, safe='')}"


def _refusal(status: int, text: bytes) -> ApiError:
    try:
        said = from_json(AdminError, json.loads(text))
        return ApiError(status, said.code, said.message, said.hint)
    except ValueError:
        return ApiError(status, "", f"the status is {status}", "")
