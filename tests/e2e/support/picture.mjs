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
    const video = document.querySelector('.tile[data-video="on"] video.picture:not(.enhanced)');
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
    if (!document.contains(picture.video)) throw new Error("the element that showed the picture is gone");
    return Math.round(longest);
  });

/** What the room has told of since {@link watchRoom}. */
export const roomEvents = (page) => page.evaluate(() => window.roomEvents);
