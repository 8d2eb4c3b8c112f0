/** All pictures of a call. */
import type { ReactNode } from "react";
import { useParticipants, useTracks } from "./people.js";
import { Tile } from "./tile.js";

/** All participants in tiles, shared screens before them, and this participant's own camera last. */
export function Grid(): ReactNode {
  const participants = useParticipants();
  const sharing = new Set(useTracks("screen").map(({ participant }) => participant));
  return (
    <div className="windlass-grid">
      {[...sharing].map((participant) => (
        <Tile key={`screen ${keyOf(participant)}`} participant={participant} source="screen" />
      ))}
      {participants.map((participant) => (
        <Tile key={keyOf(participant)} participant={participant} />
      ))}
      <Tile />
    </div>
  );
}

const known = new WeakMap<object, number>();
let count = 0;

/** A key that lasts as long as the object: a participant's `id` changes when the call reconnects. */
function keyOf(participant: object): number {
  const key = known.get(participant) ?? ++count;
  known.set(participant, key);
  return key;
}
