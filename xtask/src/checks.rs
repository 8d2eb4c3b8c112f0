//! Checks that can run beside others: they wait for a server most of the time, or have one thread. They run together,
//! the longest first: as many at once as the machine has CPUs, as calls in some of them are in real time.

use anyhow::{Result, bail};

use crate::workers;

/// The longest checks, in the order in which they begin: one that began last would run alone at the end.
const LONGEST: [&str; 8] = [
    "attack",
    "windlass-lab",
    "the Helm chart",
    "nats",
    "workers",
    "slices",
    "learn",
    "sse4.2: windlass_hybrid",
];

/// A check that can run beside others.
pub(crate) struct Check<'a> {
    name: String,
    run: Box<dyn Fn() -> Option<String> + Sync + 'a>,
}

impl<'a> Check<'a> {
    /// A check from a function that runs it and prints how it ended. The function returns the command to run again if
    /// it failed.
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl Fn() -> Option<String> + Sync + 'a,
    ) -> Check<'a> {
        Check { name: name.into(), run: Box::new(run) }
    }
}

/// Runs all checks. The error names those that failed.
pub(crate) fn run(mut checks: Vec<Check>) -> Result<()> {
    checks.sort_by_key(|check| place(&LONGEST, &check.name));
    let ended = workers::each(&checks, |check| (check.run)());
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
        assert_eq!([at("learn"), at("a"), at("attack")], [6, 8, 0]);
        run(vec![check("a"), check("learn"), check("attack")]).unwrap();
        assert_eq!(order.into_inner().unwrap().len(), 3);
    }

    #[test]
    fn an_error_names_what_failed() {
        let failing = Check::new("a", || Some("cargo test a".to_owned()));
        let error = run(vec![Check::new("b", || None), failing]).unwrap_err();
        assert!(error.to_string().ends_with(": `cargo test a`"), "{error}");
    }
}
