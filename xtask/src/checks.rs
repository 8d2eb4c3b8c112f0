//! Checks that can run beside others, the longest first, in lanes. Calls are in real time, and take up to a CPU
//! each, so half as many of those run at once as there are CPUs. Of checks that mostly wait, as many run at once as
//! there are CPUs. So it is with checks that only compute: they give way to all others, and have the lowest priority.
//! Behind the calls, at a priority between, runs what has time for calls of its own; what has not comes after, when the
//! calls have ended. What needs pictures in time from a whole machine runs when all that has ended: beside it compute,
//! at the lowest priority, checks that read and write little memory.

use std::panic::resume_unwind;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::workers;

/// The longest checks, in the order in which they begin: one that began last would run alone at the end.
const LONGEST: [&str; 11] = [
    "the fuzz targets' build",
    "attack",
    "windlass-lab",
    "the Helm chart",
    "nats",
    "workers",
    "slices",
    "learn",
    "the SDK",
    "docs",
    "sse4.2: windlass_hybrid",
];

/// What a check does with its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// It works in real time.
    Call,
    /// It waits in real time, and takes a small part of a CPU.
    Waiting,
    /// It computes, and waits for no clock.
    Patient,
    /// It has calls of its own, as many at once as can be, which are in no hurry.
    Behind,
    /// It has calls of its own, as many at once as can be, with pictures in time.
    After,
    /// It has calls of its own, one or two at a time, whose pictures take most of the machine.
    Alone,
    /// It computes in the caches of one CPU, so that it takes little memory bandwidth at any priority.
    InCaches,
}

/// A check that can run beside others.
pub(crate) struct Check<'a> {
    name: String,
    lane: Lane,
    run: Box<dyn Fn() -> Option<String> + Sync + 'a>,
}

impl<'a> Check<'a> {
    /// A check from a function that runs it and prints how it ended. The function returns the command to run again if
    /// it failed.
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl Fn() -> Option<String> + Sync + 'a,
    ) -> Check<'a> {
        Check { name: name.into(), lane: Lane::Call, run: Box::new(run) }
    }

    /// Lets the check take only the time that calls leave: it waits for no clock.
    pub(crate) fn patient(self) -> Check<'a> {
        Check { lane: Lane::Patient, ..self }
    }

    /// Lets the check run beside calls, at a lower priority: its own are in no hurry.
    pub(crate) fn behind(self) -> Check<'a> {
        Check { lane: Lane::Behind, ..self }
    }

    /// Lets the check begin when all calls have ended: its own need pictures in time.
    pub(crate) fn after(self) -> Check<'a> {
        Check { lane: Lane::After, ..self }
    }

    /// Lets the check run after all others but those that compute in caches.
    pub(crate) fn alone(self) -> Check<'a> {
        Check { lane: Lane::Alone, ..self }
    }

    /// Lets the check run after those that only compute, also beside those that run alone.
    pub(crate) fn in_caches(self) -> Check<'a> {
        Check { lane: Lane::InCaches, ..self }
    }

    /// Lets the check run beside calls: it mostly waits.
    pub(crate) fn waiting(self) -> Check<'a> {
        Check { lane: Lane::Waiting, ..self }
    }
}

/// The lowest priority, as `nice` counts.
const LOWEST: i32 = 19;
/// A priority at which others get ten times as much of a CPU.
const BEHIND: i32 = 10;

/// Gives this thread, and the threads and programs that it starts, a lower priority.
fn give_way(by: i32) -> Result<()> {
    rustix::process::nice(by).context("the priority cannot be lowered")?;
    Ok(())
}

/// Runs all checks. The error names those that failed.
pub(crate) fn run(mut checks: Vec<Check>) -> Result<()> {
    checks.sort_by_key(|check| place(&LONGEST, &check.name));
    let mut lane = |lane| checks.extract_if(.., |check| check.lane == lane).collect::<Vec<_>>();
    let [calls, waiting, behind] = [Lane::Call, Lane::Waiting, Lane::Behind].map(&mut lane);
    let [patient, in_caches] = [Lane::Patient, Lane::InCaches].map(&mut lane);
    let [after, alone] = [Lane::After, Lane::Alone].map(&mut lane);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let ended = thread::scope(|scope| {
        let patient = scope.spawn(|| {
            give_way(LOWEST)?;
            let ended = workers::by(cpus, &patient, |check| (check.run)());
            // A thread begins with the priority of the one that starts it.
            anyhow::Ok((
                ended,
                scope.spawn(|| workers::by(cpus, &in_caches, |check| (check.run)())),
            ))
        });
        let behind = scope.spawn(|| {
            give_way(BEHIND)?;
            Ok(workers::by(1, &behind, |check| (check.run)()))
        });
        let waiting = scope.spawn(|| workers::by(cpus, &waiting, |check| (check.run)()));
        let mut ended = workers::by(cpus.div_ceil(2), &calls, |check| (check.run)());
        ended.extend(waiting.join().unwrap_or_else(|e| resume_unwind(e)));
        let behind: Result<_> = behind.join().unwrap_or_else(|e| resume_unwind(e));
        ended.extend(after.iter().map(|check| (check.run)()));
        let (computed, in_caches) = patient.join().unwrap_or_else(|e| resume_unwind(e))?;
        ended.extend(alone.iter().map(|check| (check.run)()));
        ended.extend(behind?);
        ended.extend(computed);
        ended.extend(in_caches.join().unwrap_or_else(|e| resume_unwind(e)));
        anyhow::Ok(ended)
    })?;
    let failed: Vec<_> = ended.into_iter().flatten().map(|again| format!("`{again}`")).collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("these checks failed, their output is above; to run them again: {}", failed.join("; "))
}

/// The place of a name in an order whose first names are given; all others come after them.
pub(crate) fn place(first: &[&str], name: &str) -> usize {
    first.iter().position(|one| *one == name).unwrap_or(first.len())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, mpsc};

    use super::*;

    #[test]
    fn the_longest_begin_first() {
        let order = Mutex::new(Vec::new());
        let check = |name: &'static str| {
            let order = &order;
            Check::new(name, move || {
                order.lock().unwrap().push(name);
                None
            })
        };
        let checks = [check("b").behind(), check("learn"), check("attack")];
        run(checks.into_iter().chain([check("c").alone(), check("a").after()]).collect()).unwrap();
        let order = order.into_inner().unwrap();
        let at = |name| order.iter().position(|one| *one == name).unwrap();
        assert!(at("attack") < at("learn") && at("a") == 3 && at("c") == 4, "{order:?}");
    }

    #[test]
    fn what_runs_alone_waits_for_what_computes_but_for_what_stays_in_caches() {
        let computed = AtomicBool::new(false);
        let (begun, waiting) = mpsc::channel::<()>();
        let waiting = Mutex::new(waiting);
        let patient = Check::new("patient", || {
            computed.store(true, Ordering::Relaxed);
            None
        });
        // It waits for what runs alone.
        let in_caches = Check::new("in caches", || {
            waiting.lock().unwrap().recv().err().map(|_| "a".to_owned())
        });
        let alone = Check::new("alone", || {
            begun.send(()).unwrap();
            (!computed.load(Ordering::Relaxed)).then(|| "b".to_owned())
        });
        run(vec![alone.alone(), in_caches.in_caches(), patient.patient()]).unwrap();
    }

    #[test]
    fn an_error_names_what_failed() {
        let failing = |name: &'static str| Check::new(name, move || Some(format!("test {name}")));
        let checks = vec![failing("b").patient(), Check::new("c", || None), failing("a")];
        let error = run(checks).unwrap_err();
        assert!(error.to_string().ends_with(": `test a`; `test b`"), "{error}");
    }

    #[test]
    fn checks_that_give_way_have_a_lower_priority_and_others_keep_theirs() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let (own, seen) = (priority(), Mutex::new(Vec::new()));
        let check = || {
            Check::new("a", || {
                seen.lock().unwrap().push(priority());
                None
            })
        };
        run(vec![check()]).unwrap();
        run(vec![check().waiting()]).unwrap();
        run(vec![check().behind()]).unwrap();
        run(vec![check().patient()]).unwrap();
        assert_eq!(*seen.lock().unwrap(), [own, own, (own + BEHIND).min(LOWEST), LOWEST]);
    }
}
