/** The texts of the page `/demo`. */

export const PAGE = {
  title: "A small video, rebuilt where you watch",
  lead: "This page sends a clip through the server of this page and receives it again, as a call does. Left is the video that arrives, enlarged by the browser; right is what Windlass rebuilds of it here. Drag the handle.",
  clips: "What is sent",
  person: "A person",
  text: "Small text",
  uplink: "Uplink",
  uplinkHint: "Move it: what is sent follows at once.",
  loupe: "Loupe, 3×",
  loupeHint: "Point at the picture, or move the loupe's place with the arrow keys.",
  plain: "Plain",
  rebuilt: "Rebuilt",
  starting: "Starting…",
  sending: (kbps: number) => `Sent: ${Math.round(kbps)} kbit/s, everything included.`,
  size: (width: number, height: number) => `The video that arrives has ${width}×${height} pixels.`,
  gain: (plain: number, rebuilt: number) => {
    const gain = rebuilt - plain;
    const more = gain >= 0 ? "closer to" : "further from";
    return `The right half is ${Math.abs(gain).toFixed(1)} dB ${more} the clip than the left (${rebuilt.toFixed(1)} and ${plain.toFixed(1)} dB).`;
  },
  whole: "The link carries the whole picture: nothing needs rebuilding. Move the slider to the left.",
  measure:
    "Measured in this page, against the clip itself: brightness, PSNR, the mean of the last seconds; of every picture the frame of the clip that fits it best.",
  worth:
    "Measured offline (`windlass-lab eval --display`, VMAF-NEG, against plain video that is sharpened too): who is held to a quarter of this clip's size sees in 114 kbit/s more than plain video shows in 250. At half the size it is 3 % of the bits, and where the sender may choose the size, nothing.",
  failed: "The demonstration does not start.",
  check: "See what is missing",
  again: "Try again",
  toCall: "To the calls",
  credit: "Clip: “American Sign Language samples” of sample-videos by Intel Corporation, ",
  licence: "CC BY 4.0",
  changed: "; joined, cropped and encoded anew.",
  kbps: (kbps: number) => (kbps >= 1000 ? `${(kbps / 1000).toFixed(1)} Mbit/s` : `${kbps} kbit/s`),
} as const;
