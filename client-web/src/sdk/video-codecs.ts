/** The browser's own forms of the video codecs that the server forwards. */
import { VIDEO_CODECS, type VideoCodec } from "./codec.js";

/** VP9 and AV1 of profile 0; H.264 of the (constrained) baseline profile, in packetization mode 1. */
const PARAMETERS: Readonly<Record<VideoCodec, (parameters: string) => boolean>> = {
  vp9: (parameters) => parameterOf("profile-id", parameters, "0") === "0",
  vp8: () => true,
  h264: (parameters) =>
    parameterOf("packetization-mode", parameters, "0") === "1" &&
    parameterOf("profile-level-id", parameters, "").startsWith("42"),
  av1: (parameters) => parameterOf("profile", parameters, "0") === "0",
};

function parameterOf(key: string, parameters: string, missing: string): string {
  const pairs = parameters.split(";").map((pair) => pair.trim().split("="));
  return pairs.find(([name]) => name === key)?.[1] ?? missing;
}

/** The forms of one codec, or of all that are forwarded, with RTX; empty where the browser has none. */
export function videoPreferences(codecs: readonly RTCRtpCodec[], only: VideoCodec | null = null): RTCRtpCodec[] {
  const formsOf = (name: VideoCodec) =>
    codecs.filter((c) => c.mimeType.toLowerCase() === `video/${name}` && PARAMETERS[name](c.sdpFmtpLine ?? ""));
  const forms = (only === null ? VIDEO_CODECS : [only]).flatMap(formsOf);
  return forms.length === 0 ? [] : [...forms, ...codecs.filter((c) => c.mimeType.toLowerCase() === "video/rtx")];
}
