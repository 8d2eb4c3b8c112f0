/** The names of the video codecs that the server forwards. */

/** A video codec that the server forwards. It reads VP9 alone, so that its enhancer makes anchors of no other. */
export type VideoCodec = "vp9" | "vp8" | "h264" | "av1";

/** The codecs, the preferred one first. */
export const VIDEO_CODECS: readonly VideoCodec[] = ["vp9", "vp8", "h264", "av1"];

/** Whether that is the name of a codec. */
export function isVideoCodec(name: string): name is VideoCodec {
  return (VIDEO_CODECS as readonly string[]).includes(name);
}
