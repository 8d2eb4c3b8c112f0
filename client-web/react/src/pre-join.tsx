/** The page before a call. */
import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { analyserMeter, type InputKind, type StartOptions } from "windlass-client";
import { DeviceSelect } from "./device-select.js";
import { Icon } from "./icon.js";
import { Preview, type PreviewInput } from "./preview.js";
import { OwnPicture } from "./tile.js";

/** What the person has chosen, as properties of `Call`. */
export interface JoinChoices {
  /** The name that the others see. */
  name: string;
  /** False: off. */
  camera: false | StartOptions;
  /** False: off. */
  microphone: false | StartOptions;
}

/** Properties of {@link PreJoin}. */
export interface PreJoinProps {
  /** Called when the person wants to join. Camera and microphone are closed then: the call opens them. */
  onJoin: (choices: JoinChoices) => void;
  /** The name to begin with. Default: empty. */
  name?: string;
}

/** Lets the person look at itself, choose devices, see that the microphone hears, and give its name. */
export function PreJoin({ onJoin, name: first = "" }: PreJoinProps): ReactNode {
  const [preview] = useState(() => new Preview());
  useEffect(preview.start, [preview]);
  const { camera, microphone, devices } = useSyncExternalStore(preview.subscribe, preview.get, preview.get);
  const [name, setName] = useState(first);
  const join = (event: FormEvent) => {
    event.preventDefault();
    const choices = { name: name.trim(), camera: choiceOf(camera), microphone: choiceOf(microphone) };
    preview.stop();
    onJoin(choices);
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
        value={microphone.device}
        onChange={(device) => preview.choose("microphone", device)}
      />
      <DeviceSelect
        label="Camera"
        devices={devices.cameras}
        value={camera.device}
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
      <button type="submit">Join</button>
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
    <button type="button" aria-pressed={on} onClick={() => preview.setOn(kind, !on)}>
      <Icon name={kind} off={!on} />
      {label}
    </button>
  );
}

/** Interval of readings of the level, milliseconds. */
const READ_MS = 100;

/** How loud the microphone is. */
function Level({ track }: { track: MediaStreamTrack | null }): ReactNode {
  const [level, setLevel] = useState(0);
  useEffect(() => {
    if (track === null) return;
    const meter = analyserMeter(track);
    const timer = setInterval(() => setLevel(meter.read()), READ_MS);
    return () => {
      clearInterval(timer);
      meter.close();
      setLevel(0);
    };
  }, [track]);
  return <meter className="windlass-level" min={0} max={1} value={level} aria-label="Level of the microphone" />;
}

/** What fails in the preview would fail in the call, and be told once more. */
function choiceOf({ on, error, device }: PreviewInput): false | StartOptions {
  if (!on || error !== null) return false;
  return device === "" ? {} : { device };
}
