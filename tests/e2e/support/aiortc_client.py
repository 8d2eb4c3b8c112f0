"""Sends a drawn picture and silence by aiortc to a WHIP endpoint, or counts what a WHEP endpoint gives.

    python aiortc_client.py whip|whep URL CODEC [TOKEN]

`CODEC` is `vp8` or `h264`: aiortc has no other video. Prints a line a second: the frames of video and audio decoded and
the picture's width (WHEP), or the packets sent (WHIP). Ends its session on SIGINT.
"""
import asyncio
import signal
import sys
import urllib.parse

import aiohttp
import av
from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError, VideoStreamTrack
from square import square

class Square(VideoStreamTrack):
    """A bright square that moves over a ramp."""

    async def recv(self):
        pts, base = await self.next_timestamp()
        frame = square(pts // 600)
        frame.pts, frame.time_base = pts, base
        return frame


async def count(track, counts):
    try:
        while True:
            frame = await track.recv()
            counts[track.kind] += 1
            if track.kind == "video":
                counts["width"] = frame.width
    except MediaStreamError:
        pass


async def main(way, url, codec, token=None):
    pc, counts = RTCPeerConnection(), {"video": 0, "audio": 0, "width": 0}
    sends = way == "whip"
    video = pc.addTransceiver(Square() if sends else "video", direction="sendonly" if sends else "recvonly")
    pc.addTransceiver(AudioStreamTrack() if sends else "audio", direction="sendonly" if sends else "recvonly")
    codecs = RTCRtpSender.getCapabilities("video").codecs
    video.setCodecPreferences([c for c in codecs if c.mimeType.lower() in (f"video/{codec}", "video/rtx")])
    pc.on("track", lambda track: asyncio.ensure_future(count(track, counts)))
    pc.on("connectionstatechange", lambda: print(pc.connectionState, flush=True))
    await pc.setLocalDescription(await pc.createOffer())
    headers = {"Content-Type": "application/sdp"} | ({"Authorization": f"Bearer {token}"} if token else {})
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    async with aiohttp.ClientSession() as http:
        async with http.post(url, data=pc.localDescription.sdp, headers=headers) as answer:
            text = await answer.text()
            if answer.status != 201:
                raise SystemExit(f"{answer.status}: {text}")
            session = urllib.parse.urljoin(url, answer.headers["Location"])
        await pc.setRemoteDescription(RTCSessionDescription(text, "answer"))
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), 1)
            except TimeoutError:
                pass
            if sends:
                stats = await video.sender.getStats()
                out = next(s for s in stats.values() if s.type == "outbound-rtp")
                print("sent", out.packetsSent, flush=True)
            else:
                print("got", counts["video"], counts["audio"], counts["width"], flush=True)
        await http.delete(session, headers=headers)
    await pc.close()


asyncio.run(main(*sys.argv[1:]))
