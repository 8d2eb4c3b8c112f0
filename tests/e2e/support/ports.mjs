// Ports for servers of tests.
import dgram from "node:dgram";
import { once } from "node:events";
import net from "node:net";

/**
 * A port at which nobody listens, by TCP or UDP, and that no other call returns while this process runs. It is below those that systems
 * give to whoever asks for any.
 */
export async function freePort() {
  const port = 20_000 + Math.floor(12_000 * Math.random());
  // A name that one process at a time can have stands for it, to the tests of all processes. Linux alone has such names.
  const taken = net.createServer().unref().listen({ path: `\0windlass-test-port-${port}` });
  const sockets = [net.createServer().listen(port, "0.0.0.0"), dgram.createSocket("udp4").bind(port, "0.0.0.0")];
  const [name, ...free] = await Promise.allSettled([taken, ...sockets].map((socket) => once(socket, "listening")));
  const closed = sockets.filter((_, i) => free[i].status === "fulfilled");
  await Promise.all(closed.map((socket) => new Promise((done) => socket.close(done))));
  const isFree = closed.length === sockets.length && name.reason?.code !== "EADDRINUSE";
  return isFree ? port : freePort();
}
