/** The succession of tracks in a migration: which track succeeds which, and whether the successors are as good. */
import type { ParticipantInfo } from "./protocol.js";
import { type RemoteTrack, RemoteVideoTrack } from "./tracks.js";

/** What identifies the source of a track: participants have one track of each kind and name. */
export interface Source {
  readonly participant: string;
  readonly kind: string;
  readonly name: string;
}

/** Tracks received by a successor, compared with those of the former session. */
export type Comparison = "incomplete" | "worse" | "as good";

/** Whether two tracks have the same kind and name. */
export const isSameSource = (a: Omit<Source, "participant">, b: Omit<Source, "participant">): boolean =>
  a.kind === b.kind && a.name === b.name;

/** The track of the former session that `track` succeeds; `owner`: its participant, with the id that it had there. */
export function findPredecessor(
  track: Source,
  owner: ParticipantInfo | undefined,
  former: { readonly participants: readonly ParticipantInfo[]; readonly tracks: readonly RemoteTrack[] },
): RemoteTrack | null {
  const was = former.participants.find(({ id }) => id === owner?.was);
  const owners = [track.participant, was?.id];
  return former.tracks.find((t) => owners.includes(t.participant) && isSameSource(t, track)) ?? null;
}

/** The tracks of the former session that a successor must receive: those that are neither muted nor paused. */
export const expectedTracks = (former: readonly RemoteTrack[]): RemoteTrack[] =>
  former.filter((track) => !track.muted && !(track instanceof RemoteVideoTrack && track.paused));

/**
 * Compares the successors of `expected` with them: whether each has a picture, and is rebuilt if its predecessor is.
 */
export async function compareTracks(
  expected: readonly RemoteTrack[],
  successorOf: (track: RemoteTrack) => RemoteTrack | undefined,
): Promise<Comparison> {
  let worse = false;
  for (const predecessor of expected) {
    const successor = successorOf(predecessor);
    if (successor === undefined) return "incomplete";
    if (!(successor instanceof RemoteVideoTrack) || !(predecessor instanceof RemoteVideoTrack)) continue;
    if (!(await successor.begun())) return "incomplete";
    worse ||= successor.state === "native" && predecessor.state !== "native";
  }
  return worse ? "worse" : "as good";
}
