//! The NUMA node of a GPU. Threads that feed the GPU, and memory that it copies from, belong to its own node, because
//! the path between nodes is slower than the GPU's bus.
//!
//! Linux says the node in `/sys`. Elsewhere, and on machines of one node, threads run on any CPU.

use std::path::Path;

/// NUMA node of the GPU at `bus`; `None` if the machine does not say.
pub(super) fn of(bus: &str, sys: &Path) -> Option<usize> {
    if bus.is_empty() || bus.contains('/') {
        return None;
    }
    // -1 where the machine does not say.
    read(&sys.join("bus/pci/devices").join(bus).join("numa_node"))?.trim().parse().ok()
}

/// CPUs of the NUMA node of the GPU at `bus`; `None` if the machine has one node.
pub(super) fn cpus(bus: &str, sys: &Path) -> Option<Vec<usize>> {
    let node = of(bus, sys)?;
    let nodes = sys.join("devices/system/node");
    // A machine of one node has nothing to choose.
    let others = read(&nodes.join("has_cpu")).or_else(|| read(&nodes.join("online")))?;
    if list(&others)?.len() < 2 {
        return None;
    }
    list(&read(&nodes.join(format!("node{node}")).join("cpulist"))?).filter(|all| !all.is_empty())
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Reads numbers as Linux lists them: `0-3,8,10-11`.
fn list(text: &str) -> Option<Vec<usize>> {
    /// Maximum CPU number: a range in `/sys` must not decide how much memory is taken.
    const MAX_CPUS: usize = 8_192;
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MAX_CPUS {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Binds the calling thread to these CPUs; where that is refused, it stays unbound.
#[cfg(target_os = "linux")]
pub(super) fn bind_to(cpus: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    for &one in cpus.iter().filter(|one| **one < rustix::thread::CpuSet::MAX_CPU) {
        set.set(one);
    }
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::debug!(%error, "thread not bound to its GPU's NUMA node");
    }
}

/// Does nothing: systems other than Linux have no binding.
#[cfg(not(target_os = "linux"))]
pub(super) fn bind_to(_cpus: &[usize]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A machine's `/sys`, of files.
    fn machine(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        root
    }

    const CARD: &str = "bus/pci/devices/0000:3b:00.0/numa_node";
    const ALL: &str = "devices/system/node/has_cpu";
    const SECOND: &str = "devices/system/node/node1/cpulist";

    #[test]
    fn a_gpu_of_the_second_node_has_that_nodes_cpus() {
        let two = [(CARD, "1\n"), (ALL, "0-1\n"), (SECOND, "2-3,6,8-9\n")];
        let root = machine("two-nodes", &two);
        assert_eq!(cpus("0000:3b:00.0", &root), Some(vec![2, 3, 6, 8, 9]));
        assert_eq!((of("0000:3b:00.0", &root), of("0000:86:00.0", &root)), (Some(1), None));
        assert_eq!(cpus("0000:86:00.0", &root), None, "there is no such card");
        assert_eq!(cpus("", &root), None);
        assert_eq!(cpus("../../pci", &root), None);
        fs::remove_dir_all(root).expect("it was there");
    }

    #[test]
    fn where_there_is_nothing_to_choose_nothing_is_chosen() {
        let one = machine("one-node", &[(CARD, "0\n"), (ALL, "0\n"), (SECOND, "0-7\n")]);
        assert_eq!(cpus("0000:3b:00.0", &one), None);
        let silent = machine("silent", &[(CARD, "-1\n"), (ALL, "0-1\n")]);
        assert_eq!(cpus("0000:3b:00.0", &silent), None);
        for root in [one, silent] {
            fs::remove_dir_all(root).expect("it was there");
        }
    }

    #[test]
    fn lists_that_make_no_sense_are_none() {
        assert_eq!(list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list(""), Some(vec![]));
        for wrong in ["a", "3-1", "0-99999999999", "1-", "-1"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}
