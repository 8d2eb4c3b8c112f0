/** The life of one call, apart from React: joined, left, joined again. */
import { type JoinOptions, join, type Room, type ScreenShare, WindlassError } from "windlass-client";

/** Options of a call: those of the SDK's `join`, but `signal` and `waiting`, in whose place the components are. */
export type CallOptions = Omit<JoinOptions, "signal" | "waiting">;

/**
 * Where a call stands:
 * - `joining`: it is being joined.
 * - `waiting`: a moderator has yet to admit this participant.
 * - `joined`: it runs.
 * - `reconnecting`: its connection was lost, and is being set up again.
 * - `over`: it could not be joined, or has ended; `error` says why.
 */
export type CallStatus = "joining" | "waiting" | "joined" | "reconnecting" | "over";

/** What `useCall` gives: a call as it is now, and what can be done with it. */
export interface CallState {
  /** Where it stands. */
  readonly status: CallStatus;
  /** The name with which this participant joins. */
  readonly name: string;
  /** The SDK's room; null before it is joined, and after its end. */
  readonly call: Room | null;
  /** Why it is over; its `hint` says what to do. The code is `left` where this participant left. */
  readonly error: WindlassError | null;
  /** The latest failure in a call that goes on, such as a camera that is not allowed. */
  readonly problem: WindlassError | null;
  /** What this participant shares; null: nothing. */
  readonly screen: ScreenShare | null;
  /** Leaves, or gives up joining; `error` is `left` then, also where it could not be joined. */
  leave(): void;
  /** Joins again, where it is over. */
  rejoin(): void;
  /** Shares a screen that the person chooses, or (false) ends that. Call it when a button is pressed. */
  shareScreen(shared?: boolean): Promise<void>;
  /** Sets `problem`; null: it was read. */
  report(problem: WindlassError | null): void;
}

/** What changes of {@link CallState}. */
type Standing = Pick<CallState, "status" | "name" | "call" | "error" | "problem" | "screen">;

const JOINING: Standing = { status: "joining", name: "", call: null, error: null, problem: null, screen: null };

const OVER = { status: "over", call: null, screen: null } as const;

/** Joins and leaves a call, and keeps its state for components to subscribe to. */
export class CallStore {
  private state: CallState;
  private readonly listeners = new Set<() => void>();
  /** Joins, as at the latest {@link enter}. */
  private begin: () => void = () => undefined;
  /** Ends what {@link begin} has begun, or will. */
  private end: () => void = () => undefined;

  /** `enterRoom`: in place of the SDK's `join`, for tests. */
  constructor(private readonly enterRoom: typeof join = join) {
    const rejoin = () => {
      if (this.state.status === "over") this.begin();
    };
    const leave = () => {
      this.stop();
      const error = new WindlassError("left", "You left the call.", "Join again whenever you like.");
      this.change({ ...OVER, error });
    };
    const report = (problem: WindlassError | null) => this.change({ problem });
    const shareScreen = (shared = true) => this.shareScreen(shared);
    this.state = { ...JOINING, leave, rejoin, report, shareScreen };
  }

  readonly get = (): CallState => this.state;

  readonly subscribe = (notify: () => void): (() => void) => {
    this.listeners.add(notify);
    return () => this.listeners.delete(notify);
  };

  /**
   * Joins, in a task of its own: React mounts twice in its strict mode, and nobody shall come and go for that. The
   * returned function leaves. `options` are read when it joins, and when it joins again.
   */
  enter(url: string, options: () => CallOptions): () => void {
    this.begin = () => {
      this.stop();
      const wanted = options();
      this.change({ ...JOINING, name: wanted.name });
      this.end = this.join(url, wanted);
    };
    const timer = setTimeout(this.begin, 0);
    this.end = () => clearTimeout(timer);
    return () => {
      this.begin = () => undefined;
      this.stop();
      this.change(JOINING);
    };
  }

  private stop(): void {
    this.end();
    this.end = () => undefined;
  }

  private join(url: string, options: CallOptions): () => void {
    const abort = new AbortController();
    const { signal } = abort;
    const ends: (() => void)[] = [];
    const over = (error: WindlassError) => {
      if (!signal.aborted) this.change({ ...OVER, error });
    };
    const waiting = () => {
      if (!signal.aborted && this.state.call === null) this.change({ status: "waiting" });
    };
    this.enterRoom(url, { ...options, signal, waiting }).then(
      (call) => {
        ends.push(() => call.leave());
        if (signal.aborted) {
          call.leave();
          return;
        }
        ends.push(
          call.on("reconnecting", () => this.change({ status: "reconnecting" })),
          call.on("waiting", () => this.change({ status: "waiting" })),
          call.on("reconnected", () => this.change({ status: "joined" })),
          call.on("refused", (problem) => this.change({ problem })),
          call.on("disconnected", ({ reason }) => over(reason)),
        );
        this.change({ status: "joined", call });
      },
      (error: unknown) => over(asError(error)),
    );
    return () => {
      abort.abort();
      for (const end of ends.reverse()) end();
    };
  }

  private async shareScreen(shared: boolean): Promise<void> {
    const { call, screen } = this.state;
    if (!shared) {
      await screen?.stop();
      return;
    }
    if (call === null) return;
    try {
      const share = await call.shareScreen();
      if (this.state.call !== call) await share.stop();
      if (share.ended) return;
      share.on("ended", () => {
        if (this.state.screen === share) this.change({ screen: null });
      });
      this.change({ screen: share });
    } catch (error) {
      const problem = asError(error);
      // The person has chosen none, which it knows.
      const cancelled = problem.code === "permission_denied";
      if (this.state.call === call && !cancelled) this.change({ problem });
    }
  }

  private change(change: Partial<Standing>): void {
    this.state = { ...this.state, ...change };
    for (const notify of [...this.listeners]) notify();
  }
}

/** What was thrown, as an error of the SDK: something else comes from functions of the page, such as `token`. */
export function asError(error: unknown): WindlassError {
  if (error instanceof WindlassError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new WindlassError("bad_option", message, "Try again, or tell whoever runs this page.");
}
