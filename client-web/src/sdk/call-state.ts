/**
 * The states of a call and the transitions between them. No timers, no browser objects.
 *
 * ```text
 * connecting ──entered──▶ connected ──move──▶ entering ──entered──▶ overlapping ──formerLost──▶ settling
 *                          ▲ ▲ ▲ ▲             │                      │                          │
 *                          │ │ │ └─entryFailed─┘                      │                          │
 *                          │ │ └────────────switched, abandoned───────┘                          │
 *                          │ └──────────────────────────settled──────────────────────────────────┘
 *                          └──entered── reconnecting ◀──lost── connected, entering, overlapping, settling
 * ```
 *
 * Every state but `closed` goes to `closed` when the call ends.
 */
import type { Move } from "./events.js";

/** A request to migrate, and the session that received it. */
export interface MoveRequest<S> {
  readonly session: S;
  readonly target: Move;
}

/** What the states of a migration hold. */
interface Migration<S> {
  /** The session that carries the call: that on the former server, until the switch. */
  readonly session: S;
  readonly target: Move;
  /** The latest request to migrate that came during this migration. */
  readonly queued: MoveRequest<S> | null;
}

/** `S` is the type of sessions. */
export type CallState<S> =
  /** The first attempt to join. */
  | { readonly name: "connecting" }
  /** One session carries the call. */
  | { readonly name: "connected"; readonly session: S }
  /** Migration: the target server is being joined. */
  | ({ readonly name: "entering" } & Migration<S>)
  /** Migration: both sessions send; what the successor receives is not yet as good as what the former receives. */
  | ({ readonly name: "overlapping"; readonly successor: S } & Migration<S>)
  /** Migration: the former session was lost in the overlap, so the successor carries the call before it was ready. */
  | ({ readonly name: "settling" } & Migration<S>)
  /** No session: the next attempt is waited for or under way. */
  | { readonly name: "reconnecting" }
  /** The call is over. */
  | { readonly name: "closed" };

export type CallStateEvent<S> =
  /** A server admitted this participant. */
  | { readonly type: "entered"; readonly session: S }
  /** A server asks for a migration. */
  | { readonly type: "move"; readonly request: MoveRequest<S> }
  /** The target of the migration could not be joined. */
  | { readonly type: "entryFailed" }
  /** The successor is ready, and carries the call from now on. */
  | { readonly type: "switched" }
  /** The former session was lost: the successor carries the call from now on. */
  | { readonly type: "formerLost" }
  /** The successor is ready, or has had its time. */
  | { readonly type: "settled" }
  /** The successor is abandoned; the former session carries the call. */
  | { readonly type: "abandoned" }
  /** No session is left. */
  | { readonly type: "lost" }
  /** The call ends: the user left or was removed, or the attempts are used up. */
  | { readonly type: "closed" };

type StateOf<S, Name> = Extract<CallState<S>, { name: Name }>;
type EventOf<S, Type> = Extract<CallStateEvent<S>, { type: Type }>;

type Transitions<S> = {
  readonly [Name in CallState<S>["name"]]: {
    readonly [Type in CallStateEvent<S>["type"]]?: (state: StateOf<S, Name>, event: EventOf<S, Type>) => CallState<S>;
  };
};

/** A pair that is absent is no transition. */
function transitions<S>(): Transitions<S> {
  const connected = (session: S): CallState<S> => ({ name: "connected", session });
  const reconnecting = (): CallState<S> => ({ name: "reconnecting" });
  const closed = (): CallState<S> => ({ name: "closed" });
  return {
    connecting: { entered: (_, { session }) => connected(session), closed },
    connected: {
      move: ({ session }, { request: { target } }) => ({ name: "entering", session, target, queued: null }),
      lost: reconnecting,
      closed,
    },
    entering: {
      entered: (state, { session: successor }) => ({ ...state, name: "overlapping", successor }),
      move: (state, { request }) => ({ ...state, queued: request }),
      entryFailed: ({ session }) => connected(session),
      lost: reconnecting,
      closed,
    },
    overlapping: {
      move: (state, { request }) => ({ ...state, queued: request }),
      switched: ({ successor }) => connected(successor),
      formerLost: ({ successor, target, queued }) => ({ name: "settling", session: successor, target, queued }),
      abandoned: ({ session }) => connected(session),
      lost: reconnecting,
      closed,
    },
    settling: {
      move: (state, { request }) => ({ ...state, queued: request }),
      settled: ({ session }) => connected(session),
      lost: reconnecting,
      closed,
    },
    reconnecting: { entered: (_, { session }) => connected(session), closed },
    closed: {},
  };
}

/** The state after `event`; null where `state` has no such transition. */
export function nextState<S>(state: CallState<S>, event: CallStateEvent<S>): CallState<S> | null {
  type Transition = (state: CallState<S>, event: CallStateEvent<S>) => CallState<S>;
  const transition = transitions<S>()[state.name][event.type] as Transition | undefined;
  return transition?.(state, event) ?? null;
}

/** The session that carries the call; null without a connection. */
export function currentSession<S>(state: CallState<S>): S | null {
  return "session" in state ? state.session : null;
}

/** The session on the server to which the room migrates; null outside that overlap. */
export function successorSession<S>(state: CallState<S>): S | null {
  return state.name === "overlapping" ? state.successor : null;
}

/** The request that a migration to `target` leaves to be done by `session`, which carries the call after it. */
export function remainingMove<S>(queued: MoveRequest<S> | null, session: S, target: Move): MoveRequest<S> | null {
  return queued !== null && queued.session === session && queued.target.url !== target.url ? queued : null;
}
