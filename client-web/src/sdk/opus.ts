/**
 * The codec settings of audio: Opus with discontinuous transmission (DTX), with or without redundancy (RED, RFC 2198).
 */

/**
 * The codecs to offer for audio. RED is always among them: the server accepts it once for all audio of a connection.
 * The first codec of the answer is the one that is sent, see {@link preferAudio}.
 */
export function opusPreferences(codecs: readonly RTCRtpCodec[]): RTCRtpCodec[] {
  const named = (name: string) => codecs.filter((codec) => codec.mimeType.toLowerCase() === `audio/${name}`);
  return [...named("opus"), ...named("red")];
}

/**
 * Changes the audio sections of an answer before it is applied: DTX for every Opus stream (RFC 7587 §6.1: the receiver
 * asks for it), and RED first in the sections whose `mid` is in `redundant`, last in the others.
 */
export function preferAudio(sdp: string, redundant: ReadonlySet<string>): string {
  const sections = sdp.split(/^(?=m=)/m);
  return sections
    .map((section) => (section.startsWith("m=audio") ? audioSection(section, redundant) : section))
    .join("");
}

function audioSection(section: string, redundant: ReadonlySet<string>): string {
  const type = (name: string) => section.match(new RegExp(`^a=rtpmap:(\\d+) ${name}/48000`, "im"))?.[1];
  const [opus, red, mid] = [type("opus"), type("red"), section.match(/^a=mid:(\S+)/m)?.[1]];
  let preferred = section;
  if (red !== undefined) {
    preferred = preferred.replace(/^(m=audio \S+ \S+)((?: \d+)+)/m, (_, head: string, types: string) => {
      const others = types
        .trim()
        .split(" ")
        .filter((t) => t !== red);
      const wanted = mid !== undefined && redundant.has(mid);
      return [head, ...(wanted ? [red, ...others] : [...others, red])].join(" ");
    });
  }
  if (opus === undefined || new RegExp(`^a=fmtp:${opus} .*usedtx`, "m").test(preferred)) return preferred;
  if (new RegExp(`^a=fmtp:${opus} `, "m").test(preferred))
    return preferred.replace(new RegExp(`^(a=fmtp:${opus} [^\r\n]*)`, "m"), "$1;usedtx=1");
  return preferred.replace(new RegExp(`^(a=rtpmap:${opus} [^\r\n]*)(\r?\n)`, "m"), `$1$2a=fmtp:${opus} usedtx=1$2`);
}
