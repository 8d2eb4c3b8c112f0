/** A call as components see it. */
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { type CallOptions, type CallState, CallStore } from "./call-store.js";
import { ControlBar } from "./control-bar.js";
import { Grid } from "./grid.js";
import { News } from "./news.js";

const CallContext = createContext<CallState | null>(null);

/**
 * Joins a call when the component is mounted, leaves it when it is unmounted, and joins another one when `url`, or the
 * option `room` or `name`, changes. For pages that lay out all by themselves: {@link Call} does this and shows it.
 */
export function useCall(url: string, options: CallOptions): CallState {
  const [store] = useState(() => new CallStore());
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  const { room, name } = options;
  useEffect(() => store.enter(url, () => ({ ...latest.current, room, name })), [store, url, room, name]);
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

/** The call of the {@link Call} or {@link CallProvider} around the component. */
export function useCurrentCall(): CallState {
  const state = useContext(CallContext);
  if (state === null) throw new Error("There is no call: put the component into <Call> or <CallProvider>.");
  return state;
}

/** Gives the components in it a call, for pages that use {@link useCall}. */
export function CallProvider({ state, children }: { state: CallState; children: ReactNode }): ReactNode {
  return <CallContext.Provider value={state}>{children}</CallContext.Provider>;
}

/** Properties of {@link Call}: the options of the SDK's `join`, and these. */
export interface CallProps extends CallOptions {
  /** The address of the server, such as `https://calls.example/`. */
  url: string;
  /** What is shown in the call. Default: a {@link Grid} and a {@link ControlBar}. */
  children?: ReactNode;
  /** Called when the person has left. Without it, `<Call>` says so and offers to join again, as after any other end. */
  onLeave?: () => void;
}

/**
 * A call: joined when it is mounted, left when it is unmounted. It says how it stands, and what to do where it fails.
 */
export function Call({ url, children, onLeave, ...options }: CallProps): ReactNode {
  const state = useCall(url, options);
  const latest = useRef(onLeave);
  useEffect(() => {
    latest.current = onLeave;
  });
  const hasLeft = state.error?.code === "left";
  useEffect(() => {
    if (hasLeft) latest.current?.();
  }, [hasLeft]);
  return (
    <CallProvider state={state}>
      <section className="windlass-call" aria-label={`Call ${options.room}`}>
        {hasLeft && onLeave !== undefined ? null : <Standing />}
        {state.call === null
          ? null
          : (children ?? (
              <>
                <Grid />
                <ControlBar />
              </>
            ))}
      </section>
    </CallProvider>
  );
}

const SAID = {
  joining: "Joining …",
  waiting: "A moderator will let you in.",
  joined: "",
  reconnecting: "The connection is lost. Reconnecting …",
  over: "",
} as const;

/** How the call stands, in words, and who has come and gone for those who do not see it. */
function Standing(): ReactNode {
  const { status, call, error, problem, leave, rejoin, report } = useCurrentCall();
  const news = useMemo(() => new News(call), [call]);
  const said = useSyncExternalStore(news.subscribe, news.get, news.get);
  const failure = error ?? problem;
  return (
    <>
      <p className="windlass-status" role="status">
        {SAID[status]}
      </p>
      <p className="windlass-unseen" role="status">
        {said}
      </p>
      <div className="windlass-failure" role="alert">
        {failure === null ? null : (
          <>
            <p>
              <strong>{failure.message}</strong> {failure.hint}
            </p>
            <button type="button" className="windlass-button" onClick={status === "over" ? rejoin : () => report(null)}>
              {status !== "over" ? "Dismiss" : failure.code === "left" ? "Join again" : "Try again"}
            </button>
          </>
        )}
      </div>
      {call === null && error?.code !== "left" ? (
        <button type="button" className="windlass-button windlass-leave" onClick={leave}>
          Leave
        </button>
      ) : null}
    </>
  );
}
