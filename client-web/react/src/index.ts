/**
 * `windlass-react`: React components and hooks for calls of a Windlass server, over the SDK `windlass-client`.
 *
 * ```tsx
 * import { Call } from "windlass-react";
 * import "windlass-react/styles.css";
 *
 * <Call url="https://calls.example/" room="standup" name="Ada" camera microphone />
 * ```
 *
 * @module windlass-react
 */
export { Call, type CallProps, CallProvider, useCall, useCurrentCall } from "./call.js";
export type { CallOptions, CallState, CallStatus } from "./call-store.js";
export { ControlBar } from "./control-bar.js";
export { Grid } from "./grid.js";
export { type Input, useDevices, useInput } from "./input.js";
export {
  type OwnedTrack,
  type ParticipantState,
  type SpeakersState,
  useParticipant,
  useParticipants,
  useSpeakers,
  useTracks,
} from "./people.js";
export { type JoinChoices, PreJoin, type PreJoinProps } from "./pre-join.js";
export type { InputChoice } from "./preview.js";
export { Tile, type TileProps } from "./tile.js";
