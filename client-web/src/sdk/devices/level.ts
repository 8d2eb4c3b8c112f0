/** The level of a microphone, measured only while somebody looks at it. */

/** Measures the level of one track. */
export interface Meter {
  /** The level now: 0 for silence (60 dB below full scale, or less), 1 for full scale; linear in decibels. */
  read(): number;
  /** Ends the measuring. */
  close(): void;
}

/** Interval of readings, milliseconds. */
const READ_MS = 100;
/** The level that counts as silence, decibels below full scale. */
const SILENCE_DB = 60;
/** Samples per reading: at 48 kHz, 43 ms. */
const SAMPLES = 2048;

/** The level of some samples, see {@link Meter.read}. */
export function levelOf(samples: Float32Array): number {
  let energy = 0;
  for (const sample of samples) energy += sample * sample;
  return levelOfAmplitude(Math.sqrt(energy / samples.length));
}

/** The level of an effective amplitude, of which full scale is 1, see {@link Meter.read}. */
export function levelOfAmplitude(amplitude: number): number {
  if (amplitude <= 0) return 0;
  return Math.min(1, Math.max(0, 1 + (20 * Math.log10(amplitude)) / SILENCE_DB));
}

/** Measures by an `AnalyserNode`, which plays nothing. */
export function analyserMeter(track: MediaStreamTrack): Meter {
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: SAMPLES });
  const source = new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([track]) });
  source.connect(analyser);
  const samples = new Float32Array(SAMPLES);
  // A page that records may start a context without a gesture; where it may not, the level stays 0.
  void context.resume().catch(() => undefined);
  return {
    read: () => {
      analyser.getFloatTimeDomainData(samples);
      return levelOf(samples);
    },
    close: () => {
      source.disconnect();
      void context.close().catch(() => undefined);
    },
  };
}

/** Reads the level of whichever track is watched, about ten times a second. */
export class LevelWatch {
  private track: MediaStreamTrack | null = null;
  private meter: Meter | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private latest = 0;

  constructor(
    private readonly makeMeter: (track: MediaStreamTrack) => Meter,
    private readonly onLevel: (level: number) => void,
  ) {}

  /** The latest level; 0 while nothing is watched. */
  get level(): number {
    return this.latest;
  }

  /** Watches a track instead of the one before; null: none. */
  watch(track: MediaStreamTrack | null): void {
    if (track === this.track) return;
    clearInterval(this.timer);
    this.meter?.close();
    this.track = track;
    this.meter = track === null ? null : this.tryMeter(track);
    if (this.meter !== null) this.timer = setInterval(() => this.read(), READ_MS);
    else this.set(0);
  }

  /** A machine that cannot measure must not keep anybody from speaking. */
  private tryMeter(track: MediaStreamTrack): Meter | null {
    try {
      return this.makeMeter(track);
    } catch (error) {
      reportError(error);
      return null;
    }
  }

  private read(): void {
    this.set(this.meter?.read() ?? 0);
  }

  private set(level: number): void {
    this.latest = level;
    this.onLevel(level);
  }
}
