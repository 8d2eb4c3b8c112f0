// What the scripts of players print.

/** Frames of video and audio that a player has decoded, and the picture's width, from its last line of them. */
export const gotBy = (said) => said.trim().split("\n").findLast((line) => line.startsWith("got"))?.split(" ").slice(1).map(Number) ?? [0, 0, 0];
