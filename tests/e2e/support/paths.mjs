// Which way media goes, as the browser tells it, and ways that lead nowhere.
import dgram from "node:dgram";
import { once } from "node:events";
import os from "node:os";

/** The candidate pair that media takes now: both ends' protocol, type and address; null while there is none. */
export function selectedPair(page) {
  return page.evaluate(async () => {
    const stats = await window.windlass.room.connectionStats();
    const all = [...(stats?.values() ?? [])];
    const transport = all.find((s) => s.type === "transport" && s.selectedCandidatePairId);
    const pair = transport && stats.get(transport.selectedCandidatePairId);
    if (!pair) return null;
    const end = (id) => {
      const { protocol, candidateType, address, port, relayProtocol, networkType } = stats.get(id);
      return { protocol, candidateType, address, port, relayProtocol, networkType };
    };
    const { bytesSent, bytesReceived } = pair;
    return { local: end(pair.localCandidateId), remote: end(pair.remoteCandidateId), bytesSent, bytesReceived };
  });
}

/** A UDP port that takes everything and answers nothing, as a firewall does. */
export async function blackHole(host = "127.0.0.1") {
  const socket = dgram.createSocket(host.includes(":") ? "udp6" : "udp4").bind(0, host);
  await once(socket, "listening");
  let swallowed = 0;
  socket.on("message", () => swallowed++);
  return { port: socket.address().port, swallowed: () => swallowed, close: () => socket.close() };
}

/** An IPv6 address of this machine, of a network where it has one. */
export function ipv6() {
  const all = Object.values(os.networkInterfaces()).flat();
  const usable = all.filter((a) => a.family === "IPv6" && !a.address.startsWith("fe80"));
  return (usable.find((a) => !a.internal) ?? usable[0])?.address;
}
