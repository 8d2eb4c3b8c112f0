/** Browser interfaces that TypeScript's DOM library lacks. */

/** Insertable streams for media: a video track fed from frames (Chromium). */
declare class MediaStreamTrackGenerator extends MediaStreamTrack {
  constructor(init: { kind: "video" });
  readonly writable: WritableStream<VideoFrame>;
}

/** A video track as a stream of frames (Chromium). */
declare class MediaStreamTrackProcessor {
  constructor(init: { track: MediaStreamTrack; maxBufferSize?: number });
  readonly readable: ReadableStream<VideoFrame>;
}

interface RTCRtpHeaderExtensionToNegotiate {
  uri: string;
  direction: RTCRtpTransceiverDirection | "stopped";
}

interface RTCRtpTransceiver {
  getHeaderExtensionsToNegotiate?(): RTCRtpHeaderExtensionToNegotiate[];
  setHeaderExtensionsToNegotiate?(extensions: RTCRtpHeaderExtensionToNegotiate[]): void;
}

interface RTCRtpSender {
  setParameters(parameters: RTCRtpSendParameters, options: { encodingOptions: { keyFrame: boolean }[] }): Promise<void>;
}

interface RTCRtpReceiver {
  jitterBufferTarget?: DOMHighResTimeStamp | null;
}

interface RTCRtpEncodingParameters {
  scalabilityMode?: string;
}

interface RTCRtpSendParameters {
  degradationPreference?: "maintain-framerate" | "maintain-resolution" | "balanced";
}

interface HTMLMediaElement {
  captureStream?(): MediaStream;
}
