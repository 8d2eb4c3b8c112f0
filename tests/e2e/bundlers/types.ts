// What the types of the packed SDK must let a page say, by every way in which TypeScript finds them.
import { type EnhancedTrack, Room } from "windlass-client";

export async function tracks(url: string): Promise<EnhancedTrack[]> {
  const room: Room = await Room.join({ url, room: "call", name: "Typed", assets: { wasm: "/windlass.wasm" } });
  return room.tracks.filter((track) => track.kind === "video");
}
