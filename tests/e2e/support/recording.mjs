// Recordings: orders, webhooks, and what is in the files.
import { execFile } from "node:child_process";
import { createReadStream, readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { promisify } from "node:util";

// Nothing here blocks: a connection that the server ends meanwhile would be taken for the next request.
const run = promisify(execFile);

/** A server that keeps the webhooks it gets in `told`, and gives a browser the files of `folder`. */
export async function webhooks(folder) {
  const told = [];
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.setHeader("content-type", "video/webm");
      createReadStream(path.join(folder, request.url)).on("error", () => response.destroy()).pipe(response);
      return;
    }
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      told.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { told, url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** Options of a server that records into `to`. */
export const recordTo = (to, hooks) => [
  ...["--record-to", to, "--webhook", `${hooks.url}/`],
  ...["--webhook-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
];

/** Begins (`POST`) or ends (`DELETE`) the recording of the room. */
export const order = (server, method, wanted = {}) =>
  fetch(`${server.url}/admin/rooms/call/recording`, {
    method,
    headers: { "content-type": "application/json" },
    ...(method === "POST" ? { body: JSON.stringify(wanted) } : {}),
  });

/** The manifest in the folder of a recording. */
export function manifest(made) {
  const name = readdirSync(made).find((file) => /^recording-.*\.json$/.test(file));
  return JSON.parse(readFileSync(path.join(made, name), "utf8"));
}

/** What ffprobe finds in a file. */
export async function probe(file) {
  const args = ["-v", "error", "-count_packets", "-show_entries", "stream=codec_name,width,start_time,nb_read_packets:format=duration"];
  return JSON.parse((await run("ffprobe", [...args, "-of", "json", file])).stdout);
}

/** Decodes all of a file, which must give no error. */
export const decode = (file) => run("ffmpeg", ["-v", "error", "-xerror", "-i", file, "-f", "null", "-"]);

/** Times of a file's packets, in seconds; `stream` is `v` or `a`. */
export async function packetTimes(file, stream) {
  const args = ["-v", "error", "-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0", file];
  return (await run("ffprobe", args)).stdout.match(/[\d.]+/g);
}
