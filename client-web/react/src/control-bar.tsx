/** The buttons of a call. */
import type { ReactNode } from "react";
import { useCurrentCall } from "./call.js";
import { asError } from "./call-store.js";
import { DeviceSelect } from "./device-select.js";
import { Icon } from "./icon.js";
import { useDevices, useInput, useMayPublish, useSpeaker } from "./input.js";

/**
 * Microphone, camera, sharing a screen, the choice of devices, and leaving. Nothing to send where that is not granted.
 */
export function ControlBar(): ReactNode {
  const { leave } = useCurrentCall();
  const mayPublish = useMayPublish();
  return (
    <fieldset className="windlass-controls" aria-label="Call controls">
      {mayPublish ? (
        <>
          <Toggle kind="microphone" label="Microphone" />
          <Toggle kind="camera" label="Camera" />
          <ScreenButton />
        </>
      ) : null}
      <DeviceMenu />
      <button type="button" className="windlass-button windlass-leave" onClick={leave}>
        <Icon name="leave" />
        Leave
      </button>
    </fieldset>
  );
}

function Toggle({ kind, label }: { kind: "microphone" | "camera"; label: string }): ReactNode {
  const { on, setOn } = useInput(kind);
  return (
    <button type="button" className="windlass-button" aria-pressed={on} onClick={() => setOn(!on)}>
      <Icon name={kind} off={!on} />
      {label}
    </button>
  );
}

function ScreenButton(): ReactNode {
  const { screen, shareScreen } = useCurrentCall();
  // Phones have no screens to choose from.
  if (typeof navigator.mediaDevices?.getDisplayMedia !== "function") return null;
  const shared = screen !== null;
  return (
    <button type="button" className="windlass-button" aria-pressed={shared} onClick={() => void shareScreen(!shared)}>
      <Icon name="screen" />
      Share screen
    </button>
  );
}

function DeviceMenu(): ReactNode {
  const { call, report } = useCurrentCall();
  const mayPublish = useMayPublish();
  const { cameras, microphones, speakers } = useDevices();
  const [camera, microphone, speaker] = [useInput("camera"), useInput("microphone"), useSpeaker()];
  const setSpeaker = (id: string) => call?.devices.setSpeaker(id).catch((error: unknown) => report(asError(error)));
  return (
    <details
      className="windlass-devices"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.currentTarget.open = false;
        // Else the focus is lost with what is closed.
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary>
        <Icon name="devices" />
        Devices
      </summary>
      <div className="windlass-menu">
        {mayPublish ? (
          <>
            <DeviceSelect
              label="Microphone"
              devices={microphones}
              value={microphone.device}
              onChange={microphone.choose}
            />
            <DeviceSelect label="Camera" devices={cameras} value={camera.device} onChange={camera.choose} />
          </>
        ) : null}
        <DeviceSelect label="Loudspeaker" devices={speakers} value={speaker} onChange={setSpeaker} />
        <p className="windlass-none">Switch on the microphone or the camera to choose another one.</p>
      </div>
    </details>
  );
}
