/** Whether the browser receives VP9, and sends it in layers. */
import { videoEncodings } from "../publication.js";
import { layerSettings } from "../uplink/layers.js";
import { videoPreferences } from "../video-codecs.js";
import { bounded } from "./bounded.js";
import { type Finding, TEXTS } from "./texts.js";

/** Max time of each, milliseconds. */
const CODEC_MS = 6000;
/** VP9, profile 0, of small pictures. */
const CODEC = "vp09.00.10.08";
/** Side of the picture that goes through encoder and decoder, pixels. */
const SIDE = 64;

/** Tries to receive: the codec of calls, and where the browser has WebCodecs, a picture through encoder and decoder. */
export function probeDecode(): Promise<Finding> {
  return bounded(async () => {
    const codecs = RTCRtpReceiver.getCapabilities("video")?.codecs ?? [];
    if (videoPreferences(codecs, "vp9").length === 0) return TEXTS.noVp9();
    const tried = await roundTrip();
    if (tried === null) return TEXTS.decodes("VP9 in calls; no WebCodecs to try it with.");
    return tried ? TEXTS.decodes("VP9, and a picture comes back whole.") : TEXTS.decodesWrong();
  }, CODEC_MS);
}

/** Whether a picture comes back from the decoder; null where it cannot be tried. */
async function roundTrip(): Promise<boolean | null> {
  if (typeof VideoEncoder === "undefined" || typeof VideoDecoder === "undefined") return null;
  const size = { width: SIDE, height: SIDE };
  const encoding = { codec: CODEC, ...size };
  const known = await Promise.all([
    VideoEncoder.isConfigSupported(encoding),
    VideoDecoder.isConfigSupported({ codec: CODEC }),
  ]);
  if (!known.every(({ supported }) => supported)) return null;
  return new Promise((resolve) => {
    const no = () => resolve(false);
    const decoder = new VideoDecoder({
      output: (picture) => {
        resolve(picture.codedWidth >= SIDE && picture.codedHeight >= SIDE);
        picture.close();
      },
      error: no,
    });
    decoder.configure({ codec: CODEC });
    const encoder = new VideoEncoder({ output: (chunk) => decoder.decode(chunk), error: no });
    encoder.configure(encoding);
    const frame = new VideoFrame(new Uint8Array(SIDE * SIDE * 4).fill(128), {
      format: "RGBX",
      codedWidth: SIDE,
      codedHeight: SIDE,
      timestamp: 0,
    });
    encoder.encode(frame, { keyFrame: true });
    frame.close();
    encoder
      .flush()
      .then(() => decoder.flush())
      .then(() => {
        encoder.close();
        decoder.close();
        no(); // without effect after a picture
      })
      .catch(no);
  });
}

/** Tries to send: what the browser offers for a camera in three layers. */
export function probeEncode(connection = (): RTCPeerConnection => new RTCPeerConnection()): Promise<Finding> {
  let end = (): void => undefined;
  const probe = async (): Promise<Finding> => {
    const codecs = videoPreferences(RTCRtpSender.getCapabilities("video")?.codecs ?? [], "vp9");
    if (codecs.length === 0) return TEXTS.noVp9();
    const pc = connection();
    end = () => pc.close();
    const sendEncodings = videoEncodings(layerSettings("qhf", new Map()), "camera");
    const transceiver = pc.addTransceiver("video", { direction: "sendonly", sendEncodings });
    transceiver.setCodecPreferences(codecs);
    const { sdp = "" } = await pc.createOffer();
    if (!/VP9\/90000/i.test(sdp)) return TEXTS.noVp9();
    const layers = /^a=simulcast:send (\S+)/m.exec(sdp)?.[1]?.split(";").length ?? 1;
    return layers < sendEncodings.length ? TEXTS.sendsOne() : TEXTS.sends(layers);
  };
  return bounded(probe, CODEC_MS).finally(() => end());
}
