//! One client: its pictures, how stale they are, and what they lack.

use windlass_types::StreamId;

use super::super::events::Random;
use super::scenario::{ClientsScenario, seconds};
use windlass_scheduler::promise::{Anchored, Client, Decay};

/// Mean time between two changes of the content's pace, in seconds.
const SCENE_S: f64 = 5.0;

/// A simulated client with content that changes.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub client: Client,
    pub leaves: f64,
    /// The content's true loss with each frame.
    decay: f64,
    mean_decay: f64,
    varies: f64,
    scene_ends: f64,
    /// Results that are on their way.
    coming: Vec<Anchored>,
    /// Time for which pictures were shown, in seconds; `lacked` sums up their loss beyond the reference over it.
    pub shown: f64,
    pub lacked: f64,
    /// When the client's next frame may be sent, by its own interval.
    pub next_send: f64,
}

impl Person {
    pub(super) fn new(
        id: u32,
        now: f64,
        promise: &[f64],
        of: &ClientsScenario,
        random: &mut Random,
    ) -> Person {
        let frame = 1.0 / of.clients.fps;
        let (least, most) = of.clients.decay;
        let mean_decay = least + (most - least) * random.share();
        let promise = match promise {
            [one] => *one,
            [least, most, ..] => least + (most - least) * random.share(),
            [] => 0.0,
        };
        let client = Client {
            id: StreamId(id),
            decay: Decay::line(mean_decay),
            promise,
            frame: seconds(frame),
            cost: of.cost(),
            shape: 0,
            up_delay: seconds(of.clients.up_ms / 1e3),
            down_delay: seconds(of.clients.down_ms / 1e3),
            fraction: 1.0,
            last: None,
            phase: seconds(now + frame * random.share()),
        };
        Person {
            client,
            // The first clients are at any point of their stay.
            leaves: now + of.clients.stay_s * random.share(),
            decay: mean_decay,
            mean_decay,
            varies: of.clients.varies,
            scene_ends: now,
            coming: Vec::new(),
            shown: 0.0,
            lacked: 0.0,
            next_send: now,
        }
    }

    /// Notes a result that is on its way.
    pub(super) fn give(&mut self, anchored: Anchored) {
        self.coming.push(anchored);
    }

    /// Plays a step that ends at `now`.
    pub(super) fn live(&mut self, now: f64, step: f64, random: &mut Random) {
        if now >= self.scene_ends {
            self.scene_ends = now + SCENE_S * 2.0 * random.share();
            self.decay = self.mean_decay * (1.0 + self.varies * (2.0 * random.share() - 1.0));
        }
        let Person { coming, client, decay, .. } = self;
        coming.retain(|&anchored| {
            let there = anchored.shown.as_secs_f64() <= now;
            if there && client.last.is_none_or(|last| anchored.captured > last.captured) {
                client.last = Some(anchored);
                // ARISE §4.3: the decay is measured by the frame that has just come, and the one that it was tracked
                // from.
                client.decay = Decay::line(*decay);
            }
            !there
        });
        let Some(last) = client.last else { return };
        let frame = client.frame.as_secs_f64();
        let stale = (now - last.captured.as_secs_f64()) / frame;
        let really = Client { decay: Decay::line(self.decay), ..*client };
        self.shown += step;
        self.lacked +=
            really.decay.over(stale - step / frame, stale) * frame - step * really.reference();
    }

    /// Mean loss of the client's pictures beyond the reference.
    pub(super) fn lacks(&self) -> f64 {
        self.lacked / self.shown.max(1e-9)
    }
}
