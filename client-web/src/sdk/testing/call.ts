/** Calls at servers in memory. */
import { Backoff } from "../backoff.js";
import { Call } from "../call.js";
import type { HostEvents } from "../events.js";
import type { ReceivedMessage } from "../message.js";
import { Profile } from "../profile.js";
import { Servers } from "../servers.js";
import { Session } from "../session.js";
import { pass } from "./clock.js";
import type { FakeServer } from "./server.js";
import { FakeTransports } from "./transport.js";

/** The calls of a test, which end with it. */
const calls: Call[] = [];

export function endCalls(): void {
  for (const call of calls.splice(0)) call.leave();
}

/** An event in one line. */
function line<Name extends keyof HostEvents>(name: Name, value: HostEvents[Name]): string {
  const fields = value as Record<string, unknown> | undefined;
  if (name === "trackAdded" || name === "trackRemoved") {
    const { id, replaces } = value as HostEvents["trackAdded"];
    return replaces === null ? `${name} ${id}` : `${name} ${id} for ${replaces.id}`;
  }
  if (name === "reconnecting") {
    const { attempt, delayMs, cause } = value as HostEvents["reconnecting"];
    return `${name} ${attempt} ${delayMs} ${cause.code}`;
  }
  if (name === "message") return messageLine(value as ReceivedMessage);
  if (name === "disconnected") return `${name} ${(value as HostEvents["disconnected"]).reason.code}`;
  return [name, fields?.["id"] ?? fields?.["reason"]].filter((part) => part !== undefined).join(" ");
}

const messageLine = ({ from, was, topic, text, bytes }: ReceivedMessage): string =>
  ["message", from, ...(was === undefined ? [] : [`was ${was}`]), topic, text ?? bytes].join(" ");

/** A call that has not begun, at the page's own server. */
export function makeCall(own: FakeServer, options: { maxAttempts?: number; heard?: (event: string) => void } = {}) {
  const transports = new FakeTransports();
  const events: string[] = [];
  const servers = new Servers(own.url);
  const profile = new Profile("Me", {});
  const call = new Call({
    servers,
    backoff: new Backoff(500, 8000, () => 0.5),
    maxAttempts: options.maxAttempts,
    profile,
    join: (urls, request) => {
      const waiting = () => events.push("waiting");
      const who = { room: "standup", ...profile.wanted, loopback: false, token: undefined };
      return Session.join(urls, { ...request, ...who, waiting }, transports);
    },
    emit: (name, value) => {
      events.push(line(name, value));
      options.heard?.(name);
    },
    release: () => events.push("released"),
  });
  calls.push(call);
  /** The events since the last look. */
  const seen = () => events.splice(0);
  return { call, servers, transports, profile, seen };
}

/** A call that is connected, its media path up. */
export async function connected(own: FakeServer, options: Parameters<typeof makeCall>[1] = {}) {
  const made = makeCall(own, options);
  await made.call.start();
  await pass(50);
  made.transports.latest.up();
  return made;
}
