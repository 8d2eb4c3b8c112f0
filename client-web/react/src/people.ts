/** Who is in a call, and what they send. */
import { useMemo } from "react";
import type {
  ConnectionQuality,
  Participant,
  RemoteAudioTrack,
  RemoteTrack,
  RemoteVideoTrack,
  Room,
} from "windlass-client";
import { useCurrentCall } from "./call.js";
import { useWatch } from "./watch.js";

/** A participant as it is now; what it sends as it was, while it is `away`. */
export interface ParticipantState {
  /** The name that it joined with. */
  readonly name: string;
  /** The camera track; null: none. */
  readonly camera: RemoteVideoTrack | null;
  /** The microphone track; null: none. */
  readonly microphone: RemoteAudioTrack | null;
  /** The screen that it shares; null: none. */
  readonly screen: RemoteVideoTrack | null;
  /** Whether it is silent: all its sounds are muted, or it sends none. */
  readonly muted: boolean;
  /** Whether it speaks, or was the last to speak. */
  readonly speaking: boolean;
  /** How well its connection works, by the server; null: not known. `lost` while it is `away`. */
  readonly quality: ConnectionQuality | null;
  /** Whether it is not known now if it is still there, as this page has lost its connection. */
  readonly away: boolean;
}

/** Who is heard now. */
export interface SpeakersState {
  /** The others, the loudest first. */
  readonly others: readonly Participant[];
  /** Whether this participant is heard, by its microphone. */
  readonly self: boolean;
}

/** A track with its owner; the tracks that it had, while that is `away`. */
export interface OwnedTrack {
  /** What is sent. */
  readonly track: RemoteTrack;
  /** Who sends it. */
  readonly participant: Participant;
}

/**
 * The others in the call, in the order in which they came. The component renders again when somebody comes or goes, and
 * when something about them changes.
 */
export function useParticipants(): readonly Participant[] {
  return useWatch(useCurrentCall().call, everybody, listenToAll);
}

/** A participant as it is now: the component renders again when that changes. */
export function useParticipant(participant: Participant): ParticipantState {
  return useWatch(participant, stateOf, listenToOne);
}

/**
 * The tracks of the others with these names, such as `useTracks("screen")`; without a name, all of them. Usual names
 * are `camera`, `microphone`, `screen` and `screen_audio`.
 */
export function useTracks(...names: readonly string[]): readonly OwnedTrack[] {
  const all = useWatch(useCurrentCall().call, tracksOf, listenToAll);
  const wanted = names.join("\n");
  return useMemo(
    () => (wanted === "" ? all : all.filter(({ track }) => wanted.split("\n").includes(track.name))),
    [all, wanted],
  );
}

/** How well this participant's own connection works, by the server; null: not known. */
export function useOwnQuality(): ConnectionQuality | null {
  return useWatch(useCurrentCall().call, ownQuality, listenToQuality);
}

/**
 * Who is heard now, several at once: the others, the loudest first, and whether this participant is. Levels are read
 * while a component uses it.
 */
export function useSpeakers(): SpeakersState {
  return useWatch(useCurrentCall().call, speakersOf, listenToSpeakers);
}

export const speakersOf = (call: Room | null): SpeakersState => ({
  others: call?.speakers ?? [],
  self: call?.speaking ?? false,
});

export const listenToSpeakers = (call: Room | null, changed: () => void) =>
  call?.on("speakers", changed) ?? (() => undefined);

const ownQuality = (call: Room | null) => call?.quality ?? null;

function listenToQuality(call: Room | null, changed: () => void): () => void {
  const ends = [call?.on("quality", changed), call?.on("reconnecting", changed)];
  return () => {
    for (const end of ends) end?.();
  };
}

/** Another list each time, as what is the same has not changed for React. */
export const everybody = (call: Room | null): readonly Participant[] => [...(call?.participants ?? [])];

/** The tracks of all. */
export const tracksOf = (call: Room | null, former: readonly OwnedTrack[] = []): readonly OwnedTrack[] =>
  everybody(call).flatMap((participant) =>
    participant.away
      ? former.filter((owned) => owned.participant === participant)
      : participant.tracks.map((track) => ({ track, participant })),
  );

export const listenToOne = (participant: Participant, changed: () => void) => participant.on("change", changed);

/** Listens to a call, and to each participant for as long as it is there. */
export function listenToAll(call: Room | null, changed: () => void): () => void {
  if (call === null) return () => undefined;
  const ends = new Map<Participant, () => void>();
  const follow = (participant: Participant) => {
    if (!ends.has(participant)) ends.set(participant, participant.on("change", changed));
  };
  const unfollow = (participant: Participant) => {
    ends.get(participant)?.();
    ends.delete(participant);
  };
  for (const participant of call.participants) follow(participant);
  const came = call.on("participant", (participant) => {
    follow(participant);
    changed();
  });
  const left = call.on("participantLeft", (participant) => {
    unfollow(participant);
    changed();
  });
  return () => {
    came();
    left();
    for (const participant of [...ends.keys()]) unfollow(participant);
  };
}

export function stateOf(participant: Participant, former?: ParticipantState): ParticipantState {
  const { name, camera, microphone, screen, sounds, speaking, away } = participant;
  const quality = away ? "lost" : participant.quality;
  if (away && former !== undefined) return { ...former, speaking, quality, away };
  return { name, camera, microphone, screen, muted: sounds.every(({ muted }) => muted), speaking, quality, away };
}
