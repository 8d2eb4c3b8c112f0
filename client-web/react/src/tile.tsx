/** A participant's picture with its name. */
import { type ReactNode, useEffect, useRef } from "react";
import { type ConnectionQuality, type Participant, WindlassVideo } from "windlass-client";
import { Bars } from "./bars.js";
import { useCurrentCall } from "./call.js";
import { Icon } from "./icon.js";
import { useInput } from "./input.js";
import { useOwnQuality, useParticipant } from "./people.js";

/** Properties of {@link Tile}. */
export interface TileProps {
  /** Whom it shows. Default: this participant's own camera. */
  participant?: Participant;
  /** What it shows of the participant: its camera, or the screen that it shares. Default: `camera`. */
  source?: "camera" | "screen";
  /** Does not play its sound, such as where another tile of the participant does. Default: false. */
  silent?: boolean;
}

/**
 * Shows a participant by the SDK's `<windlass-video>`, with its name, whether it is muted and how well its connection
 * works; and plays its sound.
 */
export function Tile({ participant, source = "camera", silent = false }: TileProps): ReactNode {
  if (participant === undefined) return <OwnTile />;
  return <TheirTile participant={participant} source={source} silent={silent} />;
}

function TheirTile({ participant, source, silent }: Required<TileProps>): ReactNode {
  const { name, muted, speaking, quality } = useParticipant(participant);
  const { place, video } = useVideo();
  useEffect(() => video.current?.setAttribute("source", source), [video, source]);
  useEffect(() => {
    video.current?.toggleAttribute("silent", silent);
  }, [video, silent]);
  useEffect(() => {
    if (video.current !== null) video.current.participant = participant;
  }, [video, participant]);
  const screen = source === "screen";
  return (
    <Frame
      name={screen ? `Screen of ${name}` : name}
      muted={muted && !screen}
      speaking={speaking && !screen}
      quality={quality}
      kind={source}
    >
      <div ref={place} className="windlass-picture" />
    </Frame>
  );
}

function OwnTile(): ReactNode {
  const { on, track } = useInput("camera");
  const microphone = useInput("microphone");
  return (
    <Frame name="You" muted={!microphone.on} speaking={false} quality={useOwnQuality()} kind="camera">
      <OwnPicture track={on ? track : null} name={useCurrentCall().name} />
    </Frame>
  );
}

/** A camera of this page, as in a mirror. `name`: whose initials are shown where there is no picture. */
export function OwnPicture({ track, name }: { track: MediaStreamTrack | null; name: string }): ReactNode {
  const { place, video } = useVideo();
  useEffect(() => video.current?.setAttribute("mirror", ""), [video]);
  useEffect(() => {
    if (video.current !== null) video.current.track = track;
  }, [video, track]);
  useEffect(() => video.current?.setAttribute("name", name), [video, name]);
  return <div ref={place} className="windlass-picture" />;
}

/** A `<windlass-video>` in a place of the component. */
function useVideo() {
  const place = useRef<HTMLDivElement>(null);
  const video = useRef<WindlassVideo | null>(null);
  useEffect(() => {
    const made = new WindlassVideo();
    place.current?.append(made);
    video.current = made;
    return () => {
      made.remove();
      made.participant = null;
    };
  }, []);
  return { place, video };
}

interface FrameProps {
  name: string;
  muted: boolean;
  speaking: boolean;
  quality: ConnectionQuality | null;
  kind: "camera" | "screen";
  children: ReactNode;
}

function Frame({ name, muted, speaking, quality, kind, children }: FrameProps): ReactNode {
  return (
    <figure className="windlass-tile" data-source={kind} data-speaking={speaking}>
      {children}
      <figcaption>
        <span className="windlass-name">{name}</span>
        {muted ? (
          <>
            <Icon name="microphone" off />
            <span className="windlass-unseen">, muted</span>
          </>
        ) : null}
        <Bars quality={quality} />
      </figcaption>
    </figure>
  );
}
