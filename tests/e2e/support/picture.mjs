// Whether a call goes on without a gap: what a page shows of it, and what its room tells.

/** Counts what the room tells of. */
export const watchRoom = (page) =>
  page.evaluate(() => {
    window.roomEvents = { reconnecting: 0, moved: 0 };
    for (const name of Object.keys(window.roomEvents)) window.windlass.room.on(name, () => window.roomEvents[name]++);
  });

/** Notes the longest time for which the element that shows the remote picture shows no new one. */
export const watchPicture = (page) =>
  page.evaluate(() => {
    const video = document.querySelector('.tile[data-video="on"] windlass-video')?.shadowRoot.querySelector("video.plain");
    window.picture = { video, last: performance.now(), longest: 0 };
    const shown = (now) => {
      window.picture.longest = Math.max(window.picture.longest, now - window.picture.last);
      window.picture.last = now;
      video.requestVideoFrameCallback(shown);
    };
    video.requestVideoFrameCallback(shown);
  });

/** That time so far, in milliseconds; from then on it is noted anew. */
export const pictureGap = (page) =>
  page.evaluate(() => {
    const { picture } = window;
    const longest = Math.max(picture.longest, performance.now() - picture.last);
    picture.longest = 0;
    if (!picture.video.isConnected) throw new Error("the element that showed the picture is gone");
    return Math.round(longest);
  });

/** What the room has told of since {@link watchRoom}. */
export const roomEvents = (page) => page.evaluate(() => window.roomEvents);

/** Notes the longest time without an anchor of any remote track, and for how long two videos have come at a time, of which there should be one. */
export const watchCall = (page) =>
  page.evaluate(() => {
    const call = { last: performance.now(), longest: 0, double: 0, maxDouble: 0 };
    window.call = call;
    const known = new WeakSet();
    let frames = new Map();
    const heard = () => {
      call.longest = Math.max(call.longest, performance.now() - call.last);
      call.last = performance.now();
    };
    setInterval(() => {
      for (const track of window.windlass.remoteVideos()) {
        if (known.has(track)) continue;
        known.add(track);
        const take = track.anchor.bind(track);
        track.anchor = (data) => {
          heard();
          take(data);
        };
      }
    }, 50);
    setInterval(async () => {
      const stats = await window.windlass.room.connectionStats();
      const inbound = [...(stats?.values() ?? [])].filter((s) => s.type === "inbound-rtp" && s.kind === "video");
      const now = new Map(inbound.map((s) => [s.trackIdentifier, s.framesDecoded]));
      const rising = [...now].filter(([id, count]) => count > (frames.get(id) ?? count) + 3).length;
      frames = now;
      call.double = rising > 1 ? call.double + 500 : 0;
      call.maxDouble = Math.max(call.maxDouble, call.double);
    }, 500);
  });

/** That so far, in milliseconds; from then on it is noted anew. */
export const callSeen = (page) =>
  page.evaluate(() => {
    const { call } = window;
    const seen = { anchors: Math.round(Math.max(call.longest, performance.now() - call.last)), double: call.maxDouble };
    Object.assign(call, { longest: 0, last: performance.now(), double: 0, maxDouble: 0 });
    return seen;
  });
