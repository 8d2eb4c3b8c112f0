"""A real server, and the README's sample beside it."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

KEY = "k1=0123456789abcdef0123456789abcdef"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HERE = Path(__file__).parent.parent


_taken: list[socket.socket] = []


def free_port() -> int:
    """A port at which nobody listens, and that no other call returns while this process runs. It is below those that
    systems give to whoever asks for any."""
    while True:
        port = random.randrange(20_000, 32_000)
        # A name that one process at a time can have stands for it, to the tests of all processes.
        taken = socket.socket(socket.AF_UNIX)
        try:
            taken.bind(f"\0windlass-test-port-{port}")
            _taken.append(taken)
        except OSError as error:
            # Linux alone has such names.
            if error.errno == errno.EADDRINUSE:
                continue
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


class Program:
    """What a program prints, a line at a time."""

    def __init__(self, args: list[str], env: dict[str, str]) -> None:
        env = {**os.environ, **env}
        self._child = subprocess.Popen(args, stdout=subprocess.PIPE, text=True, env=env)

    def line(self) -> str:
        line = self._child.stdout.readline()
        if not line:
            raise AssertionError("the program has ended")
        return line.rstrip("\n")

    def until(self, wanted: str) -> None:
        while self.line() != wanted:
            pass

    def end(self) -> None:
        self._child.kill()
        self._child.communicate()


class Running:
    """Both programs; the server reports to the sample."""

    def __init__(self) -> None:
        program = os.environ.get("WINDLASS_BIN")
        if program is None:
            raise AssertionError("WINDLASS_BIN must name the server's program (`cargo build -p windlass`)")
        port = free_port()
        self.hook = f"http://127.0.0.1:{port}"
        ours = [f"--token-key={KEY}", f"--webhook={self.hook}", f"--webhook-secret={SECRET}"]
        serve = [program, "serve", "--device=off", "--http=127.0.0.1:0", "--udp=127.0.0.1:0"]
        self.server = Program(serve + ours, {})
        self.url = re.search(r"http://[\w.:]+", self.server.line()).group()
        code = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL).group(1)
        env = {"WINDLASS_URL": self.url, "WINDLASS_TOKEN_KEY": KEY, "WINDLASS_WEBHOOK_SECRET": SECRET}
        self.sample = Program([sys.executable, "-c", code], {**env, "PORT": str(port), "PYTHONPATH": str(HERE)})

    def end(self) -> None:
        self.sample.end()
        self.server.end()


def post(url: str, headers: dict[str, str], body: bytes) -> tuple[int, object]:
    """Status and JSON, if it is any, of an answer."""
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, None
    except urllib.error.HTTPError as refusal:
        with refusal:
            text = refusal.read()
            return refusal.code, json.loads(text) if text else None


def enter(url: str, room: str, token: str) -> tuple[int, object]:
    """Enters a room with a microphone and a camera, by WHIP."""
    headers = {"content-type": "application/sdp", "authorization": f"Bearer {token}"}
    return post(f"{url}/whip/{room}", headers, (HERE / "../offer.sdp").read_bytes())
