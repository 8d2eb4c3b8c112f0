"""The SDK against a real server, which `WINDLASS_BIN` names."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

from windlass_server_sdk import (
    AdminClient,
    ApiError,
    Claims,
    NoAnswerError,
    WebhookError,
    read_webhook,
    sign_token,
)

from .support import KEY, SECRET, Running, enter, free_port, post

OTHER_KEY = "k1=another secret, which has 32 bytes too"
SOON = int(time.time()) + 600


def signed(body: bytes, at: str) -> dict[str, str]:
    key = base64.b64decode(SECRET[len("whsec_") :])
    signature = base64.b64encode(hmac.new(key, f"evt_1.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    return {"Webhook-Id": "evt_1", "webhook-timestamp": at, "webhook-signature": f"v1,AAAA v1,{signature}"}


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.running = Running()
        cls.addClassCleanup(cls.running.end)
        cls.admin = AdminClient(cls.running.url, key=KEY)

    def test_a_call_from_its_token_to_its_last_webhook(self) -> None:
        sample, url, admin = self.running.sample, self.running.url, self.admin
        token = sample.line()
        self.assertEqual(sample.line(), "tea-room: 0")
        self.assertEqual(enter(url, "tea-room", token), (201, None))
        for event in ["room_started tea-room", "participant_joined Ana", "track_published Ana"]:
            sample.until(event)
        room = admin.get_room("tea-room")
        ana = room.participants[0]
        self.assertEqual((room.max_participants, ana.identity), (8, "ana"))
        self.assertEqual(ana.grants, ["publish", "subscribe", "enhance", "data"])
        camera = next(track for track in ana.tracks if track.kind == "video")
        self.assertTrue(admin.mute_track("tea-room", camera.id, muted=True).muted_by_operator)
        self.assertTrue(admin.set_entry("tea-room", locked=True).locked)
        bo = sign_token(KEY, Claims(room="tea-room", sub="bo", exp=SOON))
        self.assertEqual(enter(url, "tea-room", bo)[1]["code"], "locked")
        admin.set_entry("tea-room")
        admin.remove_participant("tea-room", ana.id)
        sample.until("participant_left Ana")
        sample.until("room_finished tea-room")

    def test_names_in_paths_arrive_as_they_are(self) -> None:
        identity = "a/b ?é%2F"
        self.admin.ban("ban-room", identity, seconds=60)
        self.assertEqual([ban.identity for ban in self.admin.list_bans("ban-room").bans], [identity])
        self.admin.unban("ban-room", identity)
        self.assertEqual(self.admin.list_bans("ban-room").bans, [])
        with self.assertRaises(ValueError):
            self.admin.unban("ban-room", "..")

    def refused(self, client: AdminClient, room: str) -> tuple[int, str]:
        with self.assertRaises(ApiError) as caught:
            client.get_room(room)
        return caught.exception.status, caught.exception.code

    def test_what_the_server_refuses_has_its_reason(self) -> None:
        url = self.running.url
        self.assertEqual(self.refused(self.admin, "nowhere"), (404, "unknown_room"))
        self.assertEqual(self.refused(AdminClient(url, key=OTHER_KEY), "x"), (401, "unauthorized"))
        token = sign_token(KEY, Claims(room="one", sub="ops", grants=["admin"], exp=SOON))
        self.assertEqual(AdminClient(url, token=token).configure_room("one").room, "one")
        self.assertEqual(self.refused(AdminClient(url, token=token), "x"), (403, "forbidden"))
        self.assertEqual(enter(url, "x", sign_token(OTHER_KEY, Claims(room="x", sub="eve", exp=SOON)))[0], 401)
        nothing = sign_token(KEY, Claims(room="x", sub="eve", grants=[], exp=SOON))
        self.assertEqual(enter(url, "x", nothing)[0], 403)

    def test_what_may_be_null_is_sent(self) -> None:
        self.assertEqual(self.admin.set_policy(policy="cost-effective").policy, "cost-effective")
        self.assertIsNone(self.admin.set_policy(policy=None).policy)

    def test_no_answer_is_told_from_a_refusal(self) -> None:
        with self.assertRaises(NoAnswerError):
            AdminClient(f"http://127.0.0.1:{free_port()}", key=KEY).list_rooms()

    def test_a_token_is_sent_to_no_other_server(self) -> None:
        target = f"{self.running.url}/admin/rooms"

        class Elsewhere(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(307)
                self.send_header("location", target)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Elsewhere) as proxy:
            threading.Thread(target=proxy.handle_request).start()
            with self.assertRaises(ApiError) as caught:
                AdminClient(f"http://127.0.0.1:{proxy.server_port}", key=KEY).list_rooms()
        self.assertEqual(caught.exception.status, 307)

    def test_keys_that_the_server_would_not_take_are_refused(self) -> None:
        for key in ["", "k1", "=x", "a b=0123456789abcdef0123456789abcdef", "k1=short"]:
            with self.assertRaises(ValueError):
                sign_token(key, Claims(room="x", sub="ana", exp=SOON))

    def test_a_webhook_is_read_if_it_is_genuine_and_new(self) -> None:
        body = json.dumps({"id": "evt_1", "type": "of_later", "at": 1, "room": "x", "more": 1}).encode()
        now, old = str(int(time.time())), str(int(time.time()) - 301)
        self.assertEqual(read_webhook(SECRET, signed(body, now), body).type, "of_later")
        for headers, said in [
            (signed(body, now), body.replace(b'"x"', b'"y"')),
            (signed(body, old), body),
            (signed(body, "soon"), body),
            ({**signed(body, now), "Webhook-Id": "evt_2"}, body),
            ({**signed(body, now), "webhook-signature": "v1,AAAA"}, body),
            ({"webhook-id": "evt_1"}, body),
            (signed(b"{}", now), b"{}"),
        ]:
            with self.assertRaises(WebhookError):
                read_webhook(SECRET, headers, said)
        forged = {**signed(body, now), "webhook-signature": "v1,AAAA"}
        self.assertEqual(post(self.running.hook, forged, body)[0], 401)


if __name__ == "__main__":
    unittest.main()
