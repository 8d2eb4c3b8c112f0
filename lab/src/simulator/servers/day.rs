//! A day of publishers who come and go, on workers that an autoscaler orders and gives back.
//!
//! In: a scenario, what a stream of each kind takes of an accelerator (from the scheduler's own code), and how many
//! accelerators do so much. Out: machine hours, and what went without. Which worker a stream goes to, when it leaves,
//! and what a draining worker does are decided by the product's own [`Workers`], one for each server. Made up are who
//! comes when, how long a worker takes to start, and that every lease is renewed in time. Seconds are the smallest
//! step; a day takes one or two of them here. Sources: NeuroScaler §5.2; decisions 011 and 012.

mod scenario;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::scaling::{Autoscaler, Scaling};
use scenario::poisson;
use windlass_cluster::choice::Workers;
use windlass_cluster::lease::Lease;

pub(crate) use scenario::{DayReport, DayScenario, Kind, WorkerCount, WorkerKind};

/// Length of a day, in seconds.
const DAY_S: u64 = 86_400;
/// Load of a worker from which on a server may send streams elsewhere ([`windlass_cluster::choice`] decides).
const PRESSED: f64 = 0.8;

/// The number of workers that the autoscaler's rule wants: `ratio` as a fraction, `count` in whole workers.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    ratio: f64,
    count: u32,
}

struct Stream {
    server: usize,
    kind: usize,
    worker: Option<u64>,
    since: u64,
    gone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starts(u64),
    Works,
    /// The worker drains, until this second at the latest.
    Drains(u64),
}

struct Machine {
    name: String,
    state: State,
    streams: Vec<usize>,
    demand: f64,
    /// Part of the accelerators' time that is given out, up to all of it.
    given: f64,
}

struct Play<'a> {
    scenario: &'a DayScenario,
    demands: &'a [f64],
    devices_for: &'a dyn Fn(f64, f64) -> u32,
    begun: Instant,
    servers: Vec<Workers>,
    machines: BTreeMap<u64, Machine>,
    number: u64,
    streams: Vec<Stream>,
    /// Streams by the second at which they leave.
    leaving: Vec<Vec<usize>>,
    waiting: VecDeque<usize>,
    /// Machines that have changed since their last lease.
    changed: BTreeSet<u64>,
    /// Machines that hand streams to others, because they drain or are overloaded.
    pressed: BTreeSet<u64>,
    present: usize,
    due: f64,
    /// Sums over all machines: the accelerators' time that is given out, and that is demanded.
    given: f64,
    told: f64,
    report: DayReport,
    sums: Sums,
}

#[derive(Default)]
struct Sums {
    machine_s: u64,
    wanted_s: u64,
    present_s: u64,
    without_s: u64,
    due: f64,
    given: f64,
    there: f64,
    last_minute: Option<u64>,
}

/// Plays a day. `demands` has the seconds of an accelerator that a stream of each kind takes in a second.
/// `devices_for` is the scheduler's rule: how many accelerators do so many seconds each second, where a share of
/// their time may be used.
pub(crate) fn play(
    scenario: &DayScenario,
    demands: &[f64],
    devices_for: &dyn Fn(f64, f64) -> u32,
    way: WorkerCount,
) -> DayReport {
    let mut play = Play {
        scenario,
        demands,
        devices_for,
        begun: Instant::now(),
        servers: vec![Workers::default(); scenario.servers.max(1)],
        machines: BTreeMap::new(),
        number: 0,
        streams: Vec::new(),
        leaving: vec![Vec::new(); DAY_S as usize + 1],
        waiting: VecDeque::new(),
        changed: BTreeSet::new(),
        pressed: BTreeSet::new(),
        present: 0,
        due: 0.0,
        given: 0.0,
        told: 0.0,
        report: DayReport::default(),
        sums: Sums::default(),
    };
    let mut scaler = Autoscaler::new(&scenario.scaling);
    let mut arrivals = StdRng::seed_from_u64(scenario.seed);
    let waits = way != WorkerCount::Counted;
    // Publishers who are there at midnight came the day before.
    for _ in 0..scenario.at(0).round() as u64 {
        play.come(0, waits, &mut arrivals);
    }
    let first = match way {
        WorkerCount::Fixed(count) => count,
        WorkerCount::Counted => 0,
        WorkerCount::Scaled => play.wanted_of_all().count.max(scenario.scaling.min),
    };
    for _ in 0..first {
        play.order(0, 0);
    }
    for now in 0..DAY_S {
        for stream in std::mem::take(&mut play.leaving[now as usize]) {
            play.leave(stream, now);
        }
        for _ in 0..poisson(scenario.at(now) / scenario.stay_s, &mut arrivals) {
            play.come(now, waits, &mut arrivals);
        }
        play.step(now);
        if way == WorkerCount::Scaled && now.is_multiple_of(scenario.scaling.poll_s.max(1)) {
            play.scale(now, &mut scaler);
        }
        play.count(now);
    }
    play.done()
}

impl Play<'_> {
    fn instant(&self, now: u64) -> Instant {
        self.begun + Duration::from_secs(now)
    }

    fn come(&mut self, now: u64, waits: bool, random: &mut StdRng) {
        let server = random.random_range(0..self.servers.len());
        let (mut left, mut kind) = (random.random::<f64>(), 0);
        let total: f64 = self.scenario.streams.iter().map(|kind| kind.share).sum();
        for (at, of) in self.scenario.streams.iter().enumerate() {
            kind = at;
            left -= of.share / total;
            if left <= 0.0 {
                break;
            }
        }
        let stay = -(1.0 - random.random::<f64>()).ln() * self.scenario.stay_s;
        let goes = now.saturating_add(stay.max(1.0) as u64).min(DAY_S);
        let stream = self.streams.len();
        self.streams.push(Stream { server, kind, worker: None, since: now, gone: false });
        self.leaving[goes as usize].push(stream);
        if waits {
            self.waiting.push_back(stream);
        }
        self.present += 1;
        self.due += self.demands[kind];
        self.report.streams += 1;
        self.report.max_streams = self.report.max_streams.max(self.present);
    }

    fn leave(&mut self, stream: usize, now: u64) {
        self.take_away(stream);
        let this = &mut self.streams[stream];
        this.gone = true;
        if this.worker.is_none() {
            let waited = now - this.since;
            self.report.max_without_s = self.report.max_without_s.max(waited);
        }
        self.present -= 1;
        self.due -= self.demands[this.kind];
        this.worker = None;
    }

    /// Takes a stream off its worker, if it has one.
    fn take_away(&mut self, stream: usize) {
        let Stream { server, kind, worker, .. } = self.streams[stream];
        let Some(machine) = worker.and_then(|worker| self.machines.get_mut(&worker)) else {
            return;
        };
        machine.streams.retain(|&other| other != stream);
        self.servers[server].unassign(&machine.name);
        self.demands(worker.unwrap_or_default(), -self.demands[kind]);
    }

    /// Adds to the demand of a machine.
    fn demands(&mut self, number: u64, more: f64) {
        let Some(machine) = self.machines.get_mut(&number) else { return };
        self.told += more;
        machine.demand = if machine.streams.is_empty() { 0.0 } else { machine.demand + more };
        let given = machine.demand.clamp(0.0, self.scenario.worker.devices);
        self.given += given - std::mem::replace(&mut machine.given, given);
        self.changed.insert(number);
    }

    /// Gives a stream to the worker that its server chooses. Returns whether there was one.
    fn give(&mut self, stream: usize, now: u64) -> bool {
        let at = self.instant(now);
        let Stream { server, kind, since, .. } = self.streams[stream];
        let Some((name, _)) = self.servers[server].assign(at) else { return false };
        let number: u64 = name.trim_start_matches('w').parse().unwrap_or_default();
        let most = self.scenario.worker.max_streams;
        match self.machines.get_mut(&number) {
            Some(machine) if machine.streams.len() < most => machine.streams.push(stream),
            // Other servers were quicker: the worker's lease says so in the next second.
            _ => {
                self.servers[server].unassign(&name);
                return false;
            }
        }
        self.demands(number, self.demands[kind]);
        self.streams[stream].worker = Some(number);
        self.report.max_without_s = self.report.max_without_s.max(now - since);
        true
    }

    fn order(&mut self, now: u64, boot_s: u64) {
        let name = format!("w{}", self.number);
        let state = State::Starts(now + boot_s);
        let machine = Machine { name, state, streams: Vec::new(), demand: 0.0, given: 0.0 };
        self.machines.insert(self.number, machine);
        self.changed.insert(self.number);
        self.number += 1;
        self.report.started += 1;
    }

    /// Plays a second: workers start and renew leases, streams find a worker or leave one.
    fn step(&mut self, now: u64) {
        self.tell(now);
        for stream in std::mem::take(&mut self.waiting) {
            if !self.streams[stream].gone && !self.give(stream, now) {
                self.waiting.push_back(stream);
            }
        }
        self.rebalance(now);
        for number in self.pressed.clone() {
            let Some(machine) = self.machines.get(&number) else { continue };
            let State::Drains(until) = machine.state else { continue };
            if !machine.streams.is_empty() && until > now {
                continue;
            }
            let (name, streams) = (machine.name.clone(), machine.streams.clone());
            // Streams that could not leave in time have no worker now.
            for stream in streams {
                self.take_away(stream);
                self.streams[stream].worker = None;
                self.streams[stream].since = now;
                self.waiting.push_back(stream);
            }
            self.machines.remove(&number);
            self.pressed.remove(&number);
            self.servers.iter_mut().for_each(|server| server.on_lease_released(&name));
        }
    }

    /// Publishes the leases that have changed.
    fn tell(&mut self, now: u64) {
        let at = self.instant(now);
        let WorkerKind { devices, max_streams, .. } = self.scenario.worker;
        for number in std::mem::take(&mut self.changed) {
            let Some(machine) = self.machines.get_mut(&number) else { continue };
            match machine.state {
                State::Starts(until) if until > now => {
                    self.changed.insert(number);
                    continue;
                }
                State::Starts(_) => machine.state = State::Works,
                State::Works | State::Drains(_) => {}
            }
            let draining = matches!(machine.state, State::Drains(_));
            let load = (machine.demand / devices).clamp(0.0, 1.0);
            if draining || load >= PRESSED {
                self.pressed.insert(number);
            } else {
                self.pressed.remove(&number);
            }
            let count = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
            let lease = Lease {
                address: machine.name.clone(),
                capacity: devices,
                load,
                streams: count(machine.streams.len()),
                max_streams: count(max_streams),
                networks: Vec::new(),
                devices: Vec::new(),
                draining,
            };
            for server in &mut self.servers {
                server.on_lease(&machine.name, &lease, at);
            }
        }
    }

    /// Moves streams that their servers send elsewhere.
    fn rebalance(&mut self, now: u64) {
        let at = self.instant(now);
        // Of the workers with too much to do, one a second: a server sends away one stream in three.
        let drains = |number: &u64| {
            self.machines.get(number).is_some_and(|m| matches!(m.state, State::Drains(_)))
        };
        let (mut asked, busy): (Vec<u64>, Vec<u64>) = self.pressed.iter().partition(|n| drains(n));
        asked.extend(busy.get(now as usize % busy.len().max(1)));
        for number in asked {
            let Some(machine) = self.machines.get(&number) else { continue };
            let (name, streams) = (machine.name.clone(), machine.streams.clone());
            // A server that keeps one of its streams there keeps all of them, for now.
            let mut keeps = vec![false; self.servers.len()];
            for stream in streams {
                let server = self.streams[stream].server;
                keeps[server] = keeps[server] || !self.servers[server].should_move(&name, at);
                if keeps[server] {
                    continue;
                }
                self.take_away(stream);
                self.streams[stream].worker = None;
                self.streams[stream].since = now;
                self.report.moves += 1;
                if !self.give(stream, now) {
                    self.waiting.push_back(stream);
                }
            }
        }
    }

    /// The numbers that the rule wants for this demand of workers and this number of publishers.
    fn wanted(&self, demand: f64, publishers: usize) -> Wanted {
        let Scaling { target, streams, .. } = self.scenario.scaling;
        let demand = demand.max(0.0) / self.scenario.worker.devices;
        let publishers = publishers as f64 / streams.max(1.0);
        let count = (self.devices_for)(demand, target).max((self.devices_for)(publishers, 1.0));
        Wanted { ratio: (demand / target).max(publishers), count }
    }

    fn wanted_of_all(&self) -> Wanted {
        self.wanted(self.due, self.present)
    }

    fn scale(&mut self, now: u64, scaler: &mut Autoscaler) {
        let living = |machine: &&Machine| !matches!(machine.state, State::Drains(_));
        let current = self.machines.values().filter(living).count() as u32;
        // Workers report the streams that they have; servers report all streams that would be enhanced.
        let Wanted { ratio, count } = self.wanted(self.told, self.present);
        let after = scaler.look(now, current, ratio / f64::from(current.max(1)), count);
        for _ in current..after {
            self.order(now, self.scenario.worker.boot_s);
        }
        // The newest worker is stopped first, as in a StatefulSet.
        let until = now + self.scenario.worker.drain_s;
        let fewer = current.saturating_sub(after) as usize;
        let newest = self.machines.iter_mut().rev();
        let stay = newest.filter(|(_, machine)| !matches!(machine.state, State::Drains(_)));
        for (&number, machine) in stay.take(fewer) {
            machine.state = State::Drains(until);
            self.changed.insert(number);
        }
    }

    fn count(&mut self, now: u64) {
        let devices = self.scenario.worker.devices;
        let sums = &mut self.sums;
        sums.machine_s += self.machines.len() as u64;
        sums.present_s += self.present as u64;
        sums.without_s += self.waiting.len() as u64;
        sums.due += self.due;
        sums.given += self.given;
        sums.there += devices * self.machines.len() as f64;
        if !self.waiting.is_empty() && sums.last_minute != Some(now / 60) {
            sums.last_minute = Some(now / 60);
            self.report.minutes_without += 1;
        }
        let wanted = self.wanted_of_all().count;
        self.sums.wanted_s += u64::from(wanted);
        let report = &mut self.report;
        report.max_wanted = report.max_wanted.max(wanted);
        report.max_machines = report.max_machines.max(self.machines.len() as u32);
    }

    fn done(self) -> DayReport {
        let sums = self.sums;
        let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        DayReport {
            machine_hours: sums.machine_s as f64 / 3_600.0,
            wanted_hours: sums.wanted_s as f64 / 3_600.0,
            without_share: share(sums.without_s as f64, sums.present_s as f64),
            missed_share: share((sums.due - sums.given).max(0.0), sums.due),
            utilisation: share(sums.given, sums.there),
            ..self.report
        }
    }
}

#[cfg(test)]
mod tests;
