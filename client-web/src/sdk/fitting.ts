/** Chooses the tracks to receive where a room has more than an offer may have sections. */

/** The fields of a track that count. */
interface Candidate {
  readonly id: string;
  readonly participant: string;
  readonly kind: "audio" | "video";
}

/**
 * The ids of at most `places` of `tracks`, which are in order of arrival. The first audio track of each participant
 * comes first, then the first video track of each, then their second ones: many tracks of one participant displace none
 * of another.
 */
export function fitting(tracks: Iterable<Candidate>, places: number): Set<string> {
  const counts = new Map<string, number>();
  const ranked = [...tracks].map(({ id, participant, kind }) => {
    const source = `${kind} ${participant}`;
    const nth = counts.get(source) ?? 0;
    counts.set(source, nth + 1);
    return { id, rank: 2 * nth + (kind === "audio" ? 0 : 1) };
  });
  ranked.sort((a, b) => a.rank - b.rank); // stable: the order of arrival is kept
  return new Set(ranked.slice(0, Math.max(0, places)).map(({ id }) => id));
}
