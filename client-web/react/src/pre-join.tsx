/** The page before a call. */
import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { analyserMeter, type InputKind, LevelWatch } from "windlass-client";
import { DeviceSelect } from "./device-select.js";
import { Icon } from "./icon.js";
import { choiceOf, type InputChoice, Preview, type PreviewInput } from "./preview.js";
import { OwnPicture } from "./tile.js";

/** What the person has chosen, as properties of `Call`. */
export interface JoinChoices {
  /** The name that the others see. */
  name: string;
  /** Whether the camera is sent, and which one. */
  camera: InputChoice;
  /** Whether the microphone is sent, and which one. */
  microphone: InputChoice;
}

/** Properties of {@link PreJoin}: what is chosen at first, such as what the person chose before, and `onJoin`. */
export interface PreJoinProps extends Partial<JoinChoices> {
  /**
   * Called when the person wants to join. Show the call instead of this component then: the call opens camera and
   * microphone again. Nobody can join again before a promise that it returns is settled.
   */
  onJoin: (choices: JoinChoices) => unknown;
}

/** Lets the person look at itself, choose devices, see that the microphone hears, and give its name. */
export function PreJoin({ onJoin, name: first = "", ...chosen }: PreJoinProps): ReactNode {
  const [preview] = useState(() => new Preview(chosen));
  useEffect(preview.start, [preview]);
  const { camera, microphone, devices } = useSyncExternalStore(preview.subscribe, preview.get, preview.get);
  const [name, setName] = useState(first);
  const [joining, setJoining] = useState(false);
  const join = async (event: FormEvent) => {
    event.preventDefault();
    setJoining(true);
    try {
      await onJoin({ name: name.trim(), camera: choiceOf(camera), microphone: choiceOf(microphone) });
    } finally {
      setJoining(false);
    }
  };
  const errors = new Map([camera, microphone].flatMap(({ error }) => (error === null ? [] : [[error.message, error]])));
  return (
    <form className="windlass-prejoin" aria-label="Join the call" onSubmit={join}>
      <div className="windlass-tile">
        <OwnPicture track={camera.track} name={name} />
      </div>
      <fieldset className="windlass-controls" aria-label="What is sent">
        <PreviewToggle kind="microphone" label="Microphone" input={microphone} preview={preview} />
        <PreviewToggle kind="camera" label="Camera" input={camera} preview={preview} />
        <Level track={microphone.track} />
      </fieldset>
      <div className="windlass-failure" role="alert">
        {[...errors.values()].map(({ message, hint }) => (
          <p key={message}>
            <strong>{message}</strong> {hint}
          </p>
        ))}
      </div>
      <DeviceSelect
        label="Microphone"
        devices={devices.microphones}
        value={deviceOf(microphone)}
        onChange={(device) => preview.choose("microphone", device)}
      />
      <DeviceSelect
        label="Camera"
        devices={devices.cameras}
        value={deviceOf(camera)}
        onChange={(device) => preview.choose("camera", device)}
      />
      <label className="windlass-field">
        Your name
        <input
          name="name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          required
          pattern=".*\S.*"
          title="A name that the others see"
          // A character has up to three bytes, of which the server takes 128.
          maxLength={42}
          autoComplete="name"
        />
      </label>
      <button type="submit" className="windlass-button" disabled={joining}>
        Join
      </button>
    </form>
  );
}

interface PreviewToggleProps {
  kind: InputKind;
  label: string;
  input: PreviewInput;
  preview: Preview;
}

function PreviewToggle({ kind, label, input, preview }: PreviewToggleProps): ReactNode {
  const on = input.on && input.error === null;
  return (
    <button type="button" className="windlass-button" aria-pressed={on} onClick={() => preview.setOn(kind, !on)}>
      <Icon name={kind} off={!on} />
      {label}
    </button>
  );
}

/** How loud the microphone is. */
function Level({ track }: { track: MediaStreamTrack | null }): ReactNode {
  const [level, setLevel] = useState(0);
  useEffect(() => {
    const watch = new LevelWatch(analyserMeter, setLevel);
    watch.watch(track);
    return () => watch.watch(null);
  }, [track]);
  return <meter className="windlass-level" min={0} max={1} value={level} aria-label="Level of the microphone" />;
}

/** The id of the device that is open, or would be; empty: the browser's choice. */
const deviceOf = ({ track, device }: PreviewInput): string => track?.getSettings().deviceId ?? device;
