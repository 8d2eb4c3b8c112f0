import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CallState,
  type CallStateEvent,
  currentSession,
  nextState,
  remainingMove,
  successorSession,
} from "./call-state.js";

const target = { url: "wss://b.example/ws" };
const migration = { session: "a", target, queued: null };

const STATES: { [Name in CallState<string>["name"]]: Extract<CallState<string>, { name: Name }> } = {
  connecting: { name: "connecting" },
  connected: { name: "connected", session: "a" },
  entering: { name: "entering", ...migration },
  overlapping: { name: "overlapping", ...migration, successor: "b" },
  settling: { name: "settling", ...migration, session: "b" },
  reconnecting: { name: "reconnecting" },
  closed: { name: "closed" },
};

const EVENTS: { [Type in CallStateEvent<string>["type"]]: Extract<CallStateEvent<string>, { type: Type }> } = {
  entered: { type: "entered", session: "b" },
  move: { type: "move", request: { session: "a", target } },
  entryFailed: { type: "entryFailed" },
  switched: { type: "switched" },
  formerLost: { type: "formerLost" },
  settled: { type: "settled" },
  abandoned: { type: "abandoned" },
  lost: { type: "lost" },
  closed: { type: "closed" },
};

/** Each transition that exists. */
const EXPECTED: Record<string, string> = {
  "connecting entered": "connected",
  "connecting closed": "closed",
  "connected move": "entering",
  "connected lost": "reconnecting",
  "connected closed": "closed",
  "entering entered": "overlapping",
  "entering move": "entering",
  "entering entryFailed": "connected",
  "entering lost": "reconnecting",
  "entering closed": "closed",
  "overlapping move": "overlapping",
  "overlapping switched": "connected",
  "overlapping formerLost": "settling",
  "overlapping abandoned": "connected",
  "overlapping lost": "reconnecting",
  "overlapping closed": "closed",
  "settling move": "settling",
  "settling settled": "connected",
  "settling lost": "reconnecting",
  "settling closed": "closed",
  "reconnecting entered": "connected",
  "reconnecting closed": "closed",
};

test("each state has these transitions and no others", () => {
  const found: Record<string, string> = {};
  for (const state of Object.values(STATES)) {
    for (const event of Object.values(EVENTS)) {
      const next = nextState<string>(state, event);
      if (next !== null) found[`${state.name} ${event.type}`] = next.name;
    }
  }
  assert.deepEqual(found, EXPECTED);
});

test("a migration keeps the former session until the switch", () => {
  assert.equal(currentSession(STATES.entering), "a");
  assert.equal(successorSession<string>(STATES.entering), null);
  assert.equal(currentSession(STATES.overlapping), "a");
  assert.equal(successorSession<string>(STATES.overlapping), "b");
});

test("after the switch the successor carries the call, after giving up the former session", () => {
  assert.deepEqual(nextState<string>(STATES.overlapping, EVENTS.switched), { name: "connected", session: "b" });
  assert.deepEqual(nextState<string>(STATES.overlapping, EVENTS.abandoned), { name: "connected", session: "a" });
});

test("where the former session is lost in the overlap, the successor carries the call and may be asked to migrate later", () => {
  const settling = nextState<string>(STATES.overlapping, EVENTS.formerLost) ?? STATES.closed;
  assert.deepEqual(settling, STATES.settling);
  assert.equal(currentSession(settling), "b");
  assert.equal(successorSession(settling), null);
  const request = { session: "b", target: { url: "wss://c.example/ws" } };
  assert.deepEqual(nextState(settling, { type: "move", request }), { ...STATES.settling, queued: request });
});

test("without a connection there is no session", () => {
  for (const name of ["connecting", "reconnecting", "closed"] as const)
    assert.equal(currentSession(STATES[name]), null);
});

test("the latest request during a migration is queued", () => {
  const first = { session: "a", target: { url: "wss://c.example/ws" } };
  const second = { session: "b", target: { url: "wss://d.example/ws" } };
  const once = nextState<string>(STATES.entering, { type: "move", request: first });
  const overlap = nextState(once ?? STATES.closed, EVENTS.entered);
  assert.deepEqual(overlap, { ...STATES.overlapping, queued: first });
  const twice = nextState(overlap ?? STATES.closed, { type: "move", request: second });
  assert.deepEqual(twice, { ...STATES.overlapping, queued: second });
});

test("of the queued requests only one of the session that goes on, to another server, is left to do", () => {
  const other = { url: "wss://c.example/ws" };
  assert.deepEqual(remainingMove({ session: "b", target: other }, "b", target), { session: "b", target: other });
  assert.equal(remainingMove({ session: "a", target: other }, "b", target), null);
  assert.equal(remainingMove({ session: "b", target }, "b", target), null);
  assert.equal(remainingMove(null, "b", target), null);
});
