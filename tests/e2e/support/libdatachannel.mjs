// A session of WHIP or WHEP by libdatachannel.

/** H.264 as the server forwards it, and its payload type. */
export const PAYLOAD_TYPE = 96;
export const H264 = "profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1";

/** Connects a peer whose tracks are added to an endpoint. Resolves to what ends the session. Prints the connection's states. */
export async function openSession(peer, url, token) {
  const gathered = new Promise((resolve) => peer.onGatheringStateChange((state) => state === "complete" && resolve()));
  peer.onStateChange((state) => console.log(state));
  peer.setLocalDescription();
  await gathered;
  const headers = { "content-type": "application/sdp", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(url, { method: "POST", headers, body: peer.localDescription().sdp });
  if (answer.status !== 201) throw new Error(`${answer.status}: ${await answer.text()}`);
  const session = new URL(answer.headers.get("location"), url);
  peer.setRemoteDescription(await answer.text(), "answer");
  return async () => {
    await fetch(session, { method: "DELETE", headers });
    peer.close();
  };
}
