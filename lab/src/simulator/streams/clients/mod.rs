//! Clients with a promise of quality: how many an accelerator serves, by the product's scheduler and by the baselines
//! of ARISE.
//!
//! In: a [`ClientsScenario`] and a seed. Out, by promise and [`ServingPolicy`]: how many were served at once in the
//! mean, and whether they had what they were promised. The scheduler's own code decides for `quality-sla`
//! ([`Admission`]). By the other policies clients send by themselves, and all that wait when the accelerator is free
//! are in its next batch. A client is removed when some have to wait for another batch, and added when none had to for
//! 400 ms (§6.3). Steps of [`STEP`]; equal seeds give equal reports.

mod person;
mod scenario;
mod ways;

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

pub(crate) use scenario::ClientsScenario;
pub(crate) use ways::ServingPolicy;

use super::events::Random;
use super::scenario::ScenarioError;
use person::Person;
use scenario::seconds;
use windlass_scheduler::promise::admission::{Admission, EVERY};
use windlass_scheduler::promise::{Anchored, Client, Setting};

/// Length of a step, in seconds.
const STEP: f64 = 0.001;
/// Time at the beginning that is not counted, in seconds: the first clients come at once.
const WARM_UP_S: f64 = 5.0;
/// Maximum number of clients that wait to be served.
const WAITING: usize = 8;
/// Time without waiting for another batch after which a client is added, in seconds (ARISE §6.3).
const CALM_S: f64 = 0.4;
/// Minimum time, in seconds, for which a client must have been served to count: less says nothing of its mean.
const MIN_SECONDS: f64 = 2.0;

/// The results of a promise and a way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ClientsReport {
    /// The loss that clients may have: one value, or a range.
    pub promise: Vec<f64>,
    /// How the clients were served.
    pub way: ServingPolicy,
    /// Mean number of clients that were served at once.
    pub clients: f64,
    /// Share of the served clients that lacked more than promised over their stay.
    pub broken: f64,
    /// Mean loss of the clients, over what was promised.
    pub taken: f64,
    /// Mean number of pictures in a batch.
    pub batch: f64,
    /// Share of the time that the accelerator was idle.
    pub idle: f64,
    /// The static setting, where there is one: frames between two pictures of a client, and pictures of a batch.
    pub fixed: Option<(u32, usize)>,
}

/// Plays a scenario by all ways.
pub(crate) fn run(scenario: &ClientsScenario) -> Result<Vec<ClientsReport>, ScenarioError> {
    scenario.check()?;
    let mut reports = Vec::new();
    for promise in &scenario.promises {
        let (fixed, count) = best_static(scenario, promise);
        for way in ServingPolicy::ALL {
            let world = Simulation::new(
                scenario,
                promise,
                way,
                fixed,
                (way == ServingPolicy::Static).then_some(count),
            );
            reports.push(world.play(scenario.seconds));
        }
    }
    Ok(reports)
}

/// The setting and number of clients that serve most with all promises kept in the mean.
fn best_static(scenario: &ClientsScenario, promise: &[f64]) -> (Setting, usize) {
    let short = ClientsScenario { seconds: 15.0, ..scenario.clone() };
    let cost = scenario.cost();
    let mut best = (Setting { interval: 1, batch: 1 }, 0);
    for interval in 1..=24u32 {
        for batch in 1..=scenario.max_batch {
            let setting = Setting { interval, batch };
            let by_second = batch as f64 / cost.time(batch).as_secs_f64();
            let most = (by_second * f64::from(interval) / scenario.clients.fps) as usize;
            // With more than the accelerator can do, no promise can be kept: the search goes down from there.
            for count in (best.1 + 1..=most).rev().take(3) {
                let world =
                    Simulation::new(&short, promise, ServingPolicy::Static, setting, Some(count));
                if world.play(short.seconds).broken <= 0.0 {
                    best = (setting, count);
                    break;
                }
            }
        }
    }
    (best.0, best.1.max(1))
}

/// A picture on its way to the accelerator.
#[derive(Debug, Clone, Copy)]
struct Request {
    person: u32,
    captured: f64,
    arrives: f64,
    batch: usize,
}

struct Simulation<'a> {
    scenario: &'a ClientsScenario,
    promise: &'a [f64],
    way: ServingPolicy,
    fixed: Setting,
    count: Option<usize>,
    random: Random,
    now: f64,
    people: Vec<Person>,
    waiting: Vec<Person>,
    numbers: u32,
    queue: VecDeque<Request>,
    free: f64,
    admission: Admission,
    /// The planned batches: begin time, and requests.
    batches: VecDeque<(Duration, Vec<Request>)>,
    next_plan: f64,
    last_delayed: f64,
    last_change: f64,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    served_s: f64,
    watched_s: f64,
    busy_s: f64,
    pictures: usize,
    batches: usize,
    ended: usize,
    broken: usize,
    taken: f64,
}

impl<'a> Simulation<'a> {
    fn new(
        scenario: &'a ClientsScenario,
        promise: &'a [f64],
        way: ServingPolicy,
        fixed: Setting,
        count: Option<usize>,
    ) -> Simulation<'a> {
        Simulation {
            scenario,
            promise,
            way,
            fixed,
            count,
            random: Random::new(scenario.seed),
            now: 0.0,
            people: Vec::new(),
            waiting: Vec::new(),
            numbers: 0,
            queue: VecDeque::new(),
            free: 0.0,
            admission: Admission::default(),
            batches: VecDeque::new(),
            next_plan: 0.0,
            last_delayed: 0.0,
            last_change: 0.0,
            tally: Tally::default(),
        }
    }

    fn play(mut self, seconds: f64) -> ClientsReport {
        while self.now < seconds {
            self.now += STEP;
            self.come_and_go();
            if self.way == ServingPolicy::QualitySla {
                self.plan();
                self.begin_planned();
            } else {
                self.send();
                self.begin_waiting();
            }
            for person in &mut self.people {
                person.live(self.now, STEP, &mut self.random);
            }
            if self.now > WARM_UP_S {
                self.tally.watched_s += STEP;
                self.tally.served_s += STEP * self.people.len() as f64;
            }
        }
        let all = std::mem::take(&mut self.people);
        for person in &all {
            self.tally.end(person);
        }
        let tally = &self.tally;
        ClientsReport {
            promise: self.promise.to_vec(),
            way: self.way,
            clients: tally.served_s / tally.watched_s.max(1e-9),
            broken: tally.broken as f64 / tally.ended.max(1) as f64,
            taken: tally.taken / tally.ended.max(1) as f64,
            batch: tally.pictures as f64 / tally.batches.max(1) as f64,
            idle: 1.0 - tally.busy_s / tally.watched_s.max(1e-9),
            fixed: matches!(self.way, ServingPolicy::Static | ServingPolicy::Clipper)
                .then_some((self.fixed.interval, self.fixed.batch)),
        }
    }

    fn another(&mut self) -> Person {
        self.numbers += 1;
        Person::new(self.numbers, self.now, self.promise, self.scenario, &mut self.random)
    }

    fn come_and_go(&mut self) {
        let (now, tally) = (self.now, &mut self.tally);
        self.people.retain(|person| {
            let stays = person.leaves > now;
            if !stays {
                tally.end(person);
            }
            stays
        });
        self.waiting.retain(|person| person.leaves > now);
        // More clients come than are served, so that there is always a next one.
        let comes = self.random.share() < STEP * self.scenario.clients.by_second;
        if comes && self.waiting.len() < WAITING {
            let person = self.another();
            self.waiting.push(person);
        }
        match self.count {
            Some(count) => {
                while self.people.len() < count {
                    let person = self.another();
                    self.people.push(person);
                }
            }
            None if self.way != ServingPolicy::QualitySla => self.load(),
            None => {}
        }
    }

    /// Removes a client where some had to wait for another batch, adds one where none had to.
    fn load(&mut self) {
        let delayed = self.last_delayed > self.last_change;
        if delayed && self.now - self.last_change >= EVERY.as_secs_f64() && self.people.len() > 1 {
            if let Some(person) = self.people.pop() {
                self.tally.end(&person);
                self.queue.retain(|request| request.person != person.client.id.0);
            }
            self.last_change = self.now;
        } else if self.now - self.last_delayed.max(self.last_change) >= CALM_S
            && let Some(mut person) = self.waiting.pop()
        {
            person.next_send = self.now;
            self.people.push(person);
            self.last_change = self.now;
        }
    }

    /// Lets clients send by themselves.
    fn send(&mut self) {
        let jitter = self.scenario.clients.jitter_ms / 1e3;
        for person in &mut self.people {
            if self.now < person.next_send {
                continue;
            }
            let client = &person.client;
            let setting = self.way.setting(client, self.fixed);
            let captured = client.newest_frame(seconds(self.now)).as_secs_f64();
            let odd = self.random.about_one(1.0) - 1.0;
            let arrives = captured.max(self.now - STEP)
                + (client.up_delay.as_secs_f64() + jitter * odd).max(0.0);
            let batch = setting.batch;
            self.queue.push_back(Request { person: client.id.0, captured, arrives, batch });
            person.next_send = captured + (setting.interval * client.frame).as_secs_f64();
        }
    }

    /// Begins a batch of the waiting pictures, as many as their promises allow.
    fn begin_waiting(&mut self) {
        if self.now < self.free {
            return;
        }
        let here: Vec<usize> =
            (0..self.queue.len()).filter(|&at| self.queue[at].arrives <= self.now).collect();
        if here.is_empty() {
            return;
        }
        let mut most = usize::MAX;
        let taken: Vec<usize> = here
            .iter()
            .enumerate()
            .take_while(|&(n, &at)| {
                let stands = most.min(self.queue[at].batch);
                let fits = stands > n;
                if fits {
                    most = stands;
                }
                fits
            })
            .map(|(_, &at)| at)
            .collect();
        if taken.len() < here.len() {
            self.last_delayed = self.now;
        }
        let batch: Vec<Request> =
            taken.iter().rev().filter_map(|&at| self.queue.remove(at)).collect();
        self.make(&batch);
    }

    /// Makes the product's plan, and removes the clients that it refuses.
    fn plan(&mut self) {
        if self.now < self.next_plan {
            return;
        }
        self.next_plan = self.now + EVERY.as_secs_f64();
        let served = self.people.len();
        self.people.append(&mut self.waiting);
        let clients: Vec<Client> = self.people.iter().map(|person| person.client).collect();
        let free = seconds(self.free.max(self.now));
        self.admission.plan(seconds(self.now), &clients, &[free]);
        let stays: Vec<bool> =
            (0..clients.len()).map(|at| self.admission.served().contains(&at)).collect();
        self.batches.clear();
        for planned in self.admission.planned() {
            let client = &clients[self.admission.served()[planned.client]];
            let request = Request {
                person: client.id.0,
                captured: planned.anchored.captured.as_secs_f64(),
                arrives: 0.0,
                batch: 0,
            };
            match self.batches.back_mut().filter(|(begins, _)| *begins == planned.begins) {
                Some((_, batch)) => batch.push(request),
                None => self.batches.push_back((planned.begins, vec![request])),
            }
        }
        let all = std::mem::take(&mut self.people);
        for (at, (person, stays)) in all.into_iter().zip(stays).enumerate() {
            match (stays, at < served) {
                (true, _) => self.people.push(person),
                // Another server serves the client.
                (false, true) => self.tally.end(&person),
                (false, false) => self.waiting.push(person),
            }
        }
    }

    fn begin_planned(&mut self) {
        let Some((begins, _)) = self.batches.front() else { return };
        // A batch that is complete may begin as soon as the accelerator is free (§6.6).
        if self.now < self.free || self.now + 0.002 < begins.as_secs_f64() {
            return;
        }
        let jitter = self.scenario.clients.jitter_ms / 1e3;
        if let Some((_, batch)) = self.batches.pop_front() {
            // Pictures that are late keep their batch waiting.
            let odd = |random: &mut Random| random.about_one(1.0) - 1.0;
            let late = batch.iter().map(|_| jitter * odd(&mut self.random)).fold(0.0, f64::max);
            let waits = (begins_in(&batch, self.now, self.scenario) + late).max(0.0);
            self.free = self.now + waits;
            self.make(&batch);
        }
    }

    fn make(&mut self, batch: &[Request]) {
        let mean = self.scenario.cost().time(batch.len()).as_secs_f64();
        let took = mean * self.random.about_one(self.scenario.spread);
        let done = self.now.max(self.free) + took;
        self.free = done;
        if self.now > WARM_UP_S {
            self.tally.busy_s += took;
            self.tally.pictures += batch.len();
            self.tally.batches += 1;
        }
        let down = self.scenario.clients.down_ms / 1e3;
        for request in batch {
            let person = self.people.iter_mut().find(|p| p.client.id.0 == request.person);
            if let Some(person) = person {
                let (captured, shown) = (seconds(request.captured), seconds(done + down));
                person.give(Anchored { captured, shown });
            }
        }
    }
}

/// Seconds until all pictures of a batch are there.
fn begins_in(batch: &[Request], now: f64, scenario: &ClientsScenario) -> f64 {
    let up = scenario.clients.up_ms / 1e3;
    batch.iter().map(|request| request.captured + up - now).fold(0.0, f64::max)
}

impl Tally {
    fn end(&mut self, person: &Person) {
        if person.shown < MIN_SECONDS {
            return;
        }
        let part = person.lacks() / person.client.promise.max(1e-9);
        self.ended += 1;
        self.broken += usize::from(part > 1.0);
        self.taken += part;
    }
}

#[cfg(test)]
mod tests {
    use super::scenario::Clients;
    use super::*;

    fn scenario() -> ClientsScenario {
        ClientsScenario {
            about: "a test".to_owned(),
            paper: None,
            seconds: 30.0,
            seed: 1,
            clients: Clients {
                by_second: 10.0,
                stay_s: 70.0,
                fps: 60.0,
                decay: (0.004, 0.008),
                varies: 0.3,
                up_ms: 8.0,
                down_ms: 8.0,
                jitter_ms: 1.0,
            },
            batch_ms: 12.0,
            picture_ms: 4.0,
            spread: 0.03,
            max_batch: 8,
            promises: vec![vec![0.04]],
        }
    }

    #[test]
    fn packing_serves_more_than_any_baseline_and_keeps_its_promises() {
        let reports = run(&scenario()).expect("it can be played");
        let of = |way| reports.iter().find(|r| r.way == way).expect("all are played");
        let ours = of(ServingPolicy::QualitySla);
        for way in [ServingPolicy::Clipper, ServingPolicy::Chameleon, ServingPolicy::Reactive] {
            assert!(ours.clients > 1.2 * of(way).clients, "{reports:#?}");
        }
        assert!(ours.broken < 0.1, "{reports:#?}");
    }

    #[test]
    fn equal_seeds_give_equal_reports() {
        let short = ClientsScenario { seconds: 8.0, max_batch: 2, ..scenario() };
        assert_eq!(run(&short), run(&short));
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let wrong = ClientsScenario { promises: vec![vec![]], ..scenario() };
        assert!(run(&wrong).is_err_and(|error| error.to_string().contains("promises")));
        let wrong = ClientsScenario { max_batch: 0, ..scenario() };
        assert!(run(&wrong).is_err_and(|error| error.to_string().contains("max_batch")));
    }
}
