/** Shares a screen, and ends that. */
import type { Room, ScreenShare } from "../sdk/index.js";

/** Is notified of changes of the shared screen. */
export interface SharingHost {
  /** Whether a screen is shared now; `busy`: the person chooses one. */
  show(shares: boolean, busy: boolean): void;
  failed(error: unknown): void;
}

/** Shares one screen at a time. */
export class Sharing {
  private share: ScreenShare | null = null;

  /** `stills`: whether the person agreed to full-size stills. */
  constructor(
    private readonly room: Room,
    private readonly stills: boolean,
    private readonly host: SharingHost,
  ) {}

  /** Begins or ends it. Call it in a gesture of the person. */
  async toggle(): Promise<void> {
    if (this.share !== null) {
      await this.share.stop();
      return;
    }
    const { host } = this;
    host.show(false, true);
    try {
      const share = await this.room.shareScreen({ detail: this.stills ? "ask" : "off" });
      this.share = share;
      share.on("ended", () => {
        this.share = null;
        host.show(false, false);
      });
    } catch (error) {
      host.failed(error);
    } finally {
      host.show(this.share !== null, false);
    }
  }

  close(): void {
    void this.share?.stop();
  }
}
