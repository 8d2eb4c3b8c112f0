/** How audio is sent: Opus, with or without redundancy (RED, RFC 2198), and next to nothing while nobody speaks (DTX). */

/**
 * The codecs to offer for audio. Redundancy is among them even where it is not wanted: the server agrees to it once for all
 * of a connection's audio, and what is sent is the first codec of its answer.
 */
export function opusPreferences(codecs: readonly RTCRtpCodec[]): RTCRtpCodec[] {
  const named = (name: string) => codecs.filter((codec) => codec.mimeType.toLowerCase() === `audio/${name}`);
  return [...named("opus"), ...named("red")];
}

/**
 * The server's answer as this side takes it: with DTX of every Opus stream (RFC 7587 §6.1: the receiver says it), and with redundancy
 * first in the sections whose names are `redundant`, last in the others.
 */
export function asWished(sdp: string, redundant: ReadonlySet<string>): string {
  const sections = sdp.split(/^(?=m=)/m);
  return sections.map((section) => (section.startsWith("m=audio") ? audio(section, redundant) : section)).join("");
}

function audio(section: string, redundant: ReadonlySet<string>): string {
  const type = (name: string) => section.match(new RegExp(`^a=rtpmap:(\\d+) ${name}/48000`, "im"))?.[1];
  const [opus, red, mid] = [type("opus"), type("red"), section.match(/^a=mid:(\S+)/m)?.[1]];
  let wished = section;
  if (red !== undefined) {
    wished = wished.replace(/^(m=audio \S+ \S+)((?: \d+)+)/m, (_, head: string, types: string) => {
      const others = types
        .trim()
        .split(" ")
        .filter((t) => t !== red);
      const wanted = mid !== undefined && redundant.has(mid);
      return [head, ...(wanted ? [red, ...others] : [...others, red])].join(" ");
    });
  }
  if (opus === undefined || new RegExp(`^a=fmtp:${opus} .*usedtx`, "m").test(wished)) return wished;
  if (new RegExp(`^a=fmtp:${opus} `, "m").test(wished))
    return wished.replace(new RegExp(`^(a=fmtp:${opus} [^\r\n]*)`, "m"), "$1;usedtx=1");
  return wished.replace(new RegExp(`^(a=rtpmap:${opus} [^\r\n]*)(\r?\n)`, "m"), `$1$2a=fmtp:${opus} usedtx=1$2`);
}
