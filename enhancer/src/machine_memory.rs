//! Finds how much memory the process may have: the limit of its control groups, or the machine's memory.

use std::fs;
use std::path::Path;

/// Assumed memory if it is not known, in MiB.
const UNKNOWN: u64 = 2048;

/// Memory that the process may have, in MiB.
pub fn allowed_mib() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let bound = bound(Path::new("/sys/fs/cgroup"), &groups);
    machine.into_iter().chain(bound).min().map_or(UNKNOWN, |bytes| bytes >> 20)
}

/// Memory of the machine in bytes, from the text of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Smallest limit in bytes of the process's control group and of those around it (version 2). In a container the root
/// is the container's own.
fn bound(root: &Path, groups: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let inner = root.join(group);
    let all = inner.ancestors().take_while(|path| path.starts_with(root));
    let bounds = all.filter_map(|path| fs::read_to_string(path.join("memory.max")).ok());
    bounds.filter_map(|text| text.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_bound_of_a_groups_ancestors_holds() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("system.slice/windlass.service");
        fs::create_dir_all(&inner).expect("folders");
        let groups = "0::/system.slice/windlass.service\n";
        assert_eq!(bound(root.path(), groups), None);
        fs::write(inner.join("memory.max"), "max\n").expect("a file");
        assert_eq!(bound(root.path(), groups), None);
        fs::write(root.path().join("system.slice/memory.max"), "1073741824\n").expect("a file");
        assert_eq!(bound(root.path(), groups), Some(1 << 30));
        fs::write(inner.join("memory.max"), "536870912\n").expect("a file");
        assert_eq!(bound(root.path(), groups), Some(1 << 29));
        assert_eq!(bound(root.path(), "0::/../elsewhere"), None);
    }

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(total("MemTotal:       24556000 kB\nMemFree: 1 kB\n"), Some(24_556_000 << 10));
        assert_eq!(total("nothing"), None);
    }
}
