//! One round of requests through the slots of a CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::events::Random;
use super::scenario::StageScenario;
use windlass_scheduler::slots::{SlotConfig, SlotQueue, Task};

/// Remaining time of a task below which it counts as done, in seconds.
const NOTHING_S: f64 = 1e-9;

/// A stage of one request, in seconds.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Cpu(f64),
    Away(f64),
}

#[derive(Debug, Clone)]
struct Request {
    came: Duration,
    goal_s: f64,
    stages: Vec<Stage>,
}

/// The requests of a round: the same in whatever way they are played.
#[derive(Debug, Clone)]
pub(super) struct Round(Vec<Request>);

/// The results of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// Times from a request's coming until it was done, of those that were done, in seconds.
    pub latencies: Vec<f64>,
    /// Number of requests that took too long or were given up.
    pub missed: u64,
    pub given_up: u64,
    /// Seconds that requests waited for slots.
    pub waited_s: f64,
}

impl Round {
    pub(super) fn new(scenario: &StageScenario, number: u64) -> Round {
        let seed = scenario.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number);
        let mut random = Random::new(seed);
        let mut now_s = 0.0;
        let requests = (0..scenario.count).map(|_| {
            now_s -= 1e-3 * scenario.every_ms * (1.0 - random.share()).ln();
            let (least, most) = scenario.goals_ms;
            let goal_s = 1e-3 * (least + (most - least) * random.share());
            let stages = scenario.stages.iter().map(|stage| {
                let of = |ms: f64, random: &mut Random| 1e-3 * ms * random.about_one(stage.spread);
                match (stage.cpu_ms, stage.away_ms) {
                    (Some(ms), _) => Stage::Cpu(of(ms, &mut random)),
                    (_, ms) => Stage::Away(of(ms.unwrap_or_default(), &mut random)),
                }
            });
            Request { came: seconds(now_s), goal_s, stages: stages.collect() }
        });
        Round(requests.collect())
    }

    /// Plays the round with slots.
    pub(super) fn play(&self, scenario: &StageScenario, config: SlotConfig) -> Outcome {
        let playing = Playing {
            scenario,
            requests: &self.0,
            slots: SlotQueue::new(config),
            running: Vec::new(),
            away: BinaryHeap::new(),
            asked: vec![Duration::ZERO; self.0.len()],
            lost: Vec::new(),
            out: Outcome::default(),
        };
        playing.play()
    }
}

/// A task on the CPU.
#[derive(Debug, Clone, Copy)]
struct Running {
    request: usize,
    stage: usize,
    left_s: f64,
}

struct Playing<'a> {
    scenario: &'a StageScenario,
    requests: &'a [Request],
    slots: SlotQueue<(usize, usize)>,
    running: Vec<Running>,
    /// Stages away from the CPU: until when, the request, and the stage that is next.
    away: BinaryHeap<Reverse<(Duration, usize, usize)>>,
    /// When each request last asked for a slot.
    asked: Vec<Duration>,
    lost: Vec<(usize, usize)>,
    out: Outcome,
}

impl Playing<'_> {
    fn play(mut self) -> Outcome {
        let (mut now, mut next) = (Duration::ZERO, 0);
        loop {
            // Tasks have a core each, or take turns, which cost time.
            let (tasks, cores) = (self.running.len() as f64, self.scenario.cores);
            let crowd = (tasks - cores).max(0.0);
            let speed = (cores / tasks.max(1.0)).min(1.0) / (1.0 + self.scenario.switching * crowd);
            let first = self.running.iter().map(|r| r.left_s).fold(f64::INFINITY, f64::min);
            let done = first.is_finite().then(|| now + seconds(first / speed));
            let back = self.away.peek().map(|Reverse((until, ..))| *until);
            let comes = self.requests.get(next).map(|request| request.came);
            let Some(then) = [done, back, comes].into_iter().flatten().min() else {
                return self.out;
            };
            let worked = then.saturating_sub(now).as_secs_f64() * speed;
            now = then;
            for task in &mut self.running {
                task.left_s -= worked;
            }
            self.end(now, done == Some(then));
            while let Some(&Reverse((until, request, stage))) = self.away.peek()
                && until <= now
            {
                self.away.pop();
                self.begin(now, request, stage);
            }
            while self.requests.get(next).is_some_and(|request| request.came <= now) {
                self.begin(now, next, 0);
                next += 1;
            }
            self.give_slots(now);
        }
    }

    /// Ends the tasks that are done, which give their slots back. Where one is due, the task with the least time left
    /// is done, whatever rounding says.
    fn end(&mut self, now: Duration, due: bool) {
        let least = self.running.iter().map(|r| r.left_s).fold(f64::INFINITY, f64::min);
        let bound = if due { least.max(NOTHING_S) } else { NOTHING_S };
        let mut at = 0;
        while let Some(&task) = self.running.get(at) {
            if task.left_s <= bound {
                self.running.remove(at);
                self.slots.done();
                self.begin(now, task.request, task.stage + 1);
            } else {
                at += 1;
            }
        }
    }

    /// Begins a stage of a request, or ends the request.
    fn begin(&mut self, now: Duration, number: usize, stage: usize) {
        let request = &self.requests[number];
        match request.stages.get(stage) {
            Some(&Stage::Cpu(takes_s)) => {
                let task = Task {
                    deadline: request.came + seconds(request.goal_s),
                    expected: seconds(takes_s),
                    must_run: false,
                    key: number as u64,
                };
                self.asked[number] = now;
                if let Some(refused) = self.slots.push(now, task, (number, stage)) {
                    self.lost.push(refused);
                }
            }
            Some(&Stage::Away(seconds_s)) => {
                self.away.push(Reverse((now + seconds(seconds_s), number, stage + 1)));
            }
            None => {
                let took = now.saturating_sub(request.came).as_secs_f64();
                self.out.latencies.push(took);
                self.out.missed += u64::from(took > self.scenario.missed_over * request.goal_s);
            }
        }
    }

    fn give_slots(&mut self, now: Duration) {
        while let Some(next) = self.slots.pop(now, &mut self.lost) {
            let (request, stage) = next.of;
            let Stage::Cpu(left_s) = self.requests[request].stages[stage] else { continue };
            self.out.waited_s += now.saturating_sub(self.asked[request]).as_secs_f64();
            self.running.push(Running { request, stage, left_s });
        }
        self.out.given_up += self.lost.len() as u64;
        self.out.missed += self.lost.len() as u64;
        self.lost.clear();
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX / 4)
}
