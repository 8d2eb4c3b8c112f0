// What the types of the packed SDK must let a page say, by every way in which TypeScript finds them.
import { type RemoteVideoTrack, join, type Room } from "windlass-client";

export async function tracks(url: string): Promise<RemoteVideoTrack[]> {
  const room: Room = await join(url, { room: "call", name: "Typed", camera: { facing: "user" }, assets: { wasm: "/windlass.wasm" } });
  return room.tracks.filter((track) => track.kind === "video");
}
