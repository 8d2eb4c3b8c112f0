/** The states of a session, and of its connection, and the transitions between them. */

/**
 * - `live`: changes of the room and of the publications are negotiated.
 * - `frozen`: the call migrates; what is sent and received stays as it is, whatever changes.
 * - `closed`: failed or left. Final.
 */
export type SessionState = "live" | "frozen" | "closed";

export type SessionStateEvent = "freeze" | "thaw" | "close";

const TRANSITIONS: Record<SessionState, Partial<Record<SessionStateEvent, SessionState>>> = {
  live: { freeze: "frozen", close: "closed" },
  frozen: { thaw: "live", close: "closed" },
  closed: {},
};

/** The state after `event`; the same state where it has no such transition. */
export function nextSessionState(state: SessionState, event: SessionStateEvent): SessionState {
  return TRANSITIONS[state][event] ?? state;
}
