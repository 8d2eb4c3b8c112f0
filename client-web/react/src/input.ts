/** This participant's camera and microphone, and the devices of the machine. */
import { useMemo, useSyncExternalStore } from "react";
import type { DeviceList, Devices, InputKind, LocalInput, Room } from "windlass-client";
import { useCurrentCall } from "./call.js";
import { asError } from "./call-store.js";
import { useWatch } from "./watch.js";

/** What `useInput` gives: the camera or the microphone as it is now. The call's `problem` reports failures. */
export interface Input {
  /** Whether it is sent, or about to be: started, or being started, and not muted. */
  readonly on: boolean;
  /** The track of the device, such as for a preview; null while there is none. */
  readonly track: MediaStreamTrack | null;
  /** The id of its device; empty while that is not known. */
  readonly device: string;
  /** Mutes or unmutes it. It is started where it has not been. */
  setOn(on: boolean): void;
  /**
   * Changes to another device. Where it has not been started, such as for want of a device, it is started with that,
   * but muted.
   */
  choose(device: string): void;
}

/** This participant's `"camera"` or `"microphone"` in the call. */
export function useInput(kind: InputKind): Input {
  const { call, report } = useCurrentCall();
  const input = call?.[kind] ?? null;
  const state = useWatch(input, stateOf, listenToInput);
  return useMemo(() => {
    const failed = (error: unknown) => {
      const problem = asError(error);
      // By stopping it, which the person wants.
      if (problem.code !== "aborted") report(problem);
    };
    const setOn = (on: boolean) => {
      if (on) report(null);
      const starts = on && input !== null && !isBegun(input);
      (starts ? input.start() : input?.setMuted(!on))?.catch(failed);
    };
    const choose = (device: string) => {
      if (input === null) return;
      const muted = !isBegun(input);
      const changed = input.switchTo(device).then(() => (muted ? input.start({ muted }) : undefined));
      changed.then(() => report(null), failed);
    };
    return { ...state, setOn, choose };
  }, [input, report, state]);
}

const NO_DEVICES: Devices = { cameras: [], microphones: [], speakers: [] };

/** The devices of this machine. Labels and ids are empty before the person has allowed one. */
export function useDevices(): Devices {
  const list = useCurrentCall().call?.devices ?? null;
  const listed = useMemo(() => new ListedDevices(list), [list]);
  return useSyncExternalStore(listed.subscribe, listed.get, listed.get);
}

/** The devices of a list, which tells them after a while. For one listener. */
export class ListedDevices {
  private devices = NO_DEVICES;

  constructor(private readonly list: Pick<DeviceList, "list" | "on"> | null) {}

  readonly get = (): Devices => this.devices;

  readonly subscribe = (notify: () => void): (() => void) => {
    let ended = false;
    const set = (devices: Devices) => {
      if (ended) return;
      this.devices = devices;
      notify();
    };
    const end = this.list?.on("change", set);
    // A page without https has none, which opening them tells.
    this.list?.list().then(set, () => undefined);
    return () => {
      ended = true;
      end?.();
    };
  };
}

/** The loudspeaker on which the call is played; empty: the system's choice. */
export function useSpeaker(): string {
  return useWatch(useCurrentCall().call, speakerOf, listenToSpeaker);
}

/** Whether this participant may send. */
export function useMayPublish(): boolean {
  return useWatch(useCurrentCall().call, mayPublish, listenToGrants);
}

const nothing = (): void => undefined;
const speakerOf = (call: Room | null) => call?.devices.speaker ?? "";
const listenToSpeaker = (call: Room | null, changed: () => void) => call?.devices.on("speaker", changed) ?? nothing;
const mayPublish = (call: Room | null) => call?.may("publish") ?? false;
const listenToGrants = (call: Room | null, changed: () => void) => {
  const ends = [call?.on("grants", changed), call?.on("reconnected", changed)];
  return () => {
    for (const end of ends) end?.();
  };
};
const listenToInput = (input: LocalInput | null, changed: () => void) => input?.on("change", changed) ?? nothing;

const isBegun = ({ active, starting }: LocalInput) => active || starting;

function stateOf(input: LocalInput | null) {
  return {
    on: input !== null && isBegun(input) && !input.muted,
    track: input?.track ?? null,
    device: input?.device?.id ?? "",
  };
}
