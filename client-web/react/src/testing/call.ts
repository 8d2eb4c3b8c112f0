/** A call in memory, whose events the test emits. */
import type {
  ConnectionQuality,
  Participant,
  ParticipantEvents,
  RoomEvents,
  ScreenShareEvents,
  WindlassError,
} from "windlass-client";

/** An emitter whose events {@link tell} emits. */
class Told<Events extends object> {
  private readonly listeners = new Map<keyof Events, Set<(value: never) => void>>();

  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    const found = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, found);
    found.add(listener);
    return () => found.delete(listener);
  }

  tell<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) (listener as (value: Events[Name]) => void)(value);
  }

  /** How many listen. */
  get heard(): number {
    return [...this.listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

/** A participant. */
export class FakeParticipant extends Told<ParticipantEvents> {
  speaking = false;
  quality: ConnectionQuality | null = null;
  away = false;
  camera = null;
  microphone = null;
  screen = null;
  sounds: { muted: boolean }[] = [];
  tracks: { name: string }[] = [];

  constructor(readonly name: string) {
    super();
  }
}

/** A shared screen. */
class FakeShare extends Told<ScreenShareEvents> {
  ended = false;

  end(): void {
    this.ended = true;
    this.tell("ended", undefined);
  }

  async stop(): Promise<void> {
    this.end();
  }
}

/** A room in memory, for tests of components. */
export class FakeCall extends Told<RoomEvents> {
  /** How often it was left. */
  left = 0;
  participants: FakeParticipant[] = [];
  speakers: FakeParticipant[] = [];
  speaking = false;
  quality: ConnectionQuality | null = null;
  share = new FakeShare();
  /** Why nothing is shared; null: it is. */
  shareFails: WindlassError | null = null;

  leave(): void {
    this.left++;
  }

  async shareScreen(): Promise<FakeShare> {
    if (this.shareFails !== null) throw this.shareFails;
    return this.share;
  }

  /** Somebody comes. */
  come(participant: FakeParticipant): void {
    this.participants = [...this.participants, participant];
    this.tell("participant", participant as unknown as Participant);
  }

  /** Somebody leaves. */
  go(participant: FakeParticipant): void {
    this.participants = this.participants.filter((other) => other !== participant);
    this.tell("participantLeft", participant as unknown as Participant);
  }
}
