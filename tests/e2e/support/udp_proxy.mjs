// A UDP path with seeded loss and jitter, slow uplinks and streams that lag, standing between browsers and the server's media port.
import dgram from "node:dgram";
import { once } from "node:events";

/** Small seeded generator (mulberry32), so that a failure can be replayed. */
function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Whether it is of the data channels (or the handshake before them). */
export const ofDataChannels = (data) => data[0] >= 20 && data[0] < 64;

export class UdpProxy {
  /**
   * What each client may send from now on, kbit/s: what is beyond waits up to `queueMs`, then is dropped, the newest
   * first. May be changed at any time.
   */
  uplinkKbps = Infinity;
  queueMs = 300;

  /**
   * How long a datagram is held back beside all else, ms, given what it is and whether it comes from a client: those that are held for different times
   * change their order. May be changed at any time.
   * @type {(data: Buffer, up: boolean) => number}
   */
  hold = () => 0;

  /** @param {{loss?: number, jitterMs?: number, seed?: number}} path loss as a fraction, each way; `port`: its own, any unless it is given */
  static async start(serverPort, { loss = 0, jitterMs = 0, seed = 1 } = {}, port = 0) {
    const proxy = new UdpProxy();
    Object.assign(proxy, { serverPort, loss, jitterMs, next: random(seed), clients: new Map(), freeAt: new Map() });
    proxy.counts = { forwarded: 0, dropped: 0, overflowed: 0, held: 0 };
    proxy.front = dgram.createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
    proxy.front.on("message", (data, from) => proxy.fromClient(data, from));
    proxy.front.bind(port, "127.0.0.1");
    await once(proxy.front, "listening");
    proxy.port = proxy.front.address().port;
    return proxy;
  }

  fromClient(data, from) {
    const key = `${from.address}:${from.port}`;
    let back = this.clients.get(key);
    if (!back) {
      this.freeAt.set(key, 0);
      back = dgram.createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
      back.on("message", (answer) => this.pass(answer, (d) => this.front.send(d, from.port, from.address), this.hold(answer, false)));
      back.on("error", () => {});
      this.clients.set(key, back);
    }
    const wait = this.uplinkWait(key, data.length);
    if (wait === null) this.counts.overflowed++;
    else this.pass(data, (d) => back.send(d, this.serverPort, "127.0.0.1"), this.hold(data, true), wait);
  }

  /** How long a datagram takes through its client's uplink, ms; null where that is full. */
  uplinkWait(key, bytes) {
    const now = performance.now();
    const begin = Math.max(now, this.freeAt.get(key));
    if (begin - now > this.queueMs) return null;
    const end = begin + (Number.isFinite(this.uplinkKbps) ? ((bytes + 28) * 8) / this.uplinkKbps : 0);
    this.freeAt.set(key, end);
    return end - now;
  }

  pass(data, send, heldMs, waitMs = 0) {
    // Only media is lost: a lost handshake would test the handshake's timers instead.
    const media = data[0] >= 128 && data[0] < 192;
    if (media && this.next() < this.loss) {
      this.counts.dropped++;
      return;
    }
    this.counts.forwarded++;
    if (heldMs > 0) this.counts.held++;
    const deliver = () => {
      if (!this.closed) send(data);
    };
    const delay = waitMs + heldMs + (media ? this.jitterMs * this.next() : 0);
    if (delay >= 1) setTimeout(deliver, delay);
    else deliver();
  }

  /** What clients send comes from other addresses from now on, and goes back to where they are: a NAT has forgotten them. */
  rebind() {
    for (const back of this.clients.values()) back.close();
    this.clients.clear();
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.front.close();
    for (const back of this.clients.values()) back.close();
  }
}
