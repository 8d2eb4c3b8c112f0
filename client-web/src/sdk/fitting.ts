/** Which tracks of a room are received, where it has more than an offer may have sections. */

/** What is told of a track. */
interface Told {
  readonly id: string;
  readonly participant: string;
  readonly kind: "audio" | "video";
}

/**
 * The ids of those of `tracks` (in order of arrival) that have a place, of `places`. Everybody's first audio track comes before
 * anybody's first video track, and that before anybody's second: who publishes many takes no place of those who publish few.
 */
export function fitting(tracks: Iterable<Told>, places: number): Set<string> {
  const counts = new Map<string, number>();
  const ranked = [...tracks].map(({ id, participant, kind }) => {
    const of = `${kind} ${participant}`;
    const nth = counts.get(of) ?? 0;
    counts.set(of, nth + 1);
    return { id, rank: 2 * nth + (kind === "audio" ? 0 : 1) };
  });
  ranked.sort((a, b) => a.rank - b.rank); // stable: who came first stays first
  return new Set(ranked.slice(0, Math.max(0, places)).map(({ id }) => id));
}
