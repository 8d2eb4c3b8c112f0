//! Checks that can run beside others, the longest first, in three lanes. Calls are in real time, and take up to a CPU
//! each, so half as many of those run at once as there are CPUs. Of checks that mostly wait, as many run at once as
//! there are CPUs. So it is with checks that only compute: they give way to all others, and have the lowest priority.

use std::panic::resume_unwind;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::workers;

/// The longest checks, in the order in which they begin: one that began last would run alone at the end.
const LONGEST: [&str; 10] = [
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

    /// Lets the check run beside calls: it mostly waits.
    pub(crate) fn waiting(self) -> Check<'a> {
        Check { lane: Lane::Waiting, ..self }
    }
}

/// Lets this thread, and the threads and programs that it starts, take only the time that others leave.
pub(crate) fn give_way() -> Result<()> {
    rustix::process::nice(19).context("the priority cannot be lowered")?;
    Ok(())
}

/// Runs all checks. The error names those that failed.
pub(crate) fn run(mut checks: Vec<Check>) -> Result<()> {
    checks.sort_by_key(|check| place(&LONGEST, &check.name));
    let lane = |lane| checks.extract_if(.., |check| check.lane == lane).collect::<Vec<_>>();
    let [calls, waiting, patient] = [Lane::Call, Lane::Waiting, Lane::Patient].map(lane);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let ended = thread::scope(|scope| {
        let patient = scope.spawn(|| {
            give_way()?;
            Ok(workers::by(cpus, &patient, |check| (check.run)()))
        });
        let waiting = scope.spawn(|| workers::by(cpus, &waiting, |check| (check.run)()));
        let mut ended = workers::by(cpus.div_ceil(2), &calls, |check| (check.run)());
        ended.extend(waiting.join().unwrap_or_else(|e| resume_unwind(e)));
        let patient: Result<_> = patient.join().unwrap_or_else(|e| resume_unwind(e));
        ended.extend(patient?);
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
    use std::sync::Mutex;

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
        let at = |name| place(&LONGEST, name);
        assert_eq!([at("learn"), at("a"), at("attack")], [6, 10, 0]);
        run(vec![check("a"), check("learn"), check("attack")]).unwrap();
        assert_eq!(order.into_inner().unwrap().len(), 3);
    }

    #[test]
    fn an_error_names_what_failed() {
        let failing = |name: &'static str| Check::new(name, move || Some(format!("test {name}")));
        let checks = vec![failing("b").patient(), Check::new("c", || None), failing("a")];
        let error = run(checks).unwrap_err();
        assert!(error.to_string().ends_with(": `test a`; `test b`"), "{error}");
    }

    #[test]
    fn a_patient_check_has_the_lowest_priority_and_others_keep_theirs() {
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
        run(vec![check().patient()]).unwrap();
        assert_eq!(*seen.lock().unwrap(), [own, own, 19]);
    }
}
