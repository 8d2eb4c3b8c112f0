// A call in a page that a bundler has made; what is shown is told on `window.call`. The call's server comes by the page's address.
import { join } from "windlass-client";

export async function start() {
  const url = new URL(location.href).searchParams.get("server");
  window.call = { videos: [], failure: null };
  try {
    const room = await join(url, { room: "call", name: "Bundled", maxNetwork: "none" });
    room.on("trackAdded", (track) => {
      if (track.kind === "audio") return;
      const video = document.createElement("video");
      Object.assign(video.style, { width: "640px", height: "360px" });
      document.body.append(video);
      track.attach(video);
      window.call.videos.push({ track, video });
    });
  } catch (error) {
    window.call.failure = `${error.message} ${error.hint ?? ""}`;
  }
}
