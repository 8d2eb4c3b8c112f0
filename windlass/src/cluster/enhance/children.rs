//! Arguments for each process of `windlass enhance --each-device`: those of this process, but with its own device, its
//! own ports, and its part of the CPU.

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use windlass_sr::cuda::devices::Device;

use crate::config::enhancement::MAX_THREADS;

/// Maximum number of devices: more than any machine has.
const MAX_DEVICES: usize = 128;

/// The settings that differ from one process to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own<'a> {
    /// Listening address of the first process; each further process has the next port. Port 0: any for each.
    pub listen: SocketAddr,
    /// Address of the first process's metrics; each further process has the next port. Port 0: any for each.
    pub metrics: Option<SocketAddr>,
    /// Address at which SFUs reach the first process; each further process has the next port.
    pub address: Option<&'a str>,
    /// CPU cores, which the processes divide among them; `None` if `--enhancer-threads` is given.
    pub threads: Option<usize>,
}

/// One process of `windlass enhance --each-device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child {
    /// The device that the process works on.
    pub device: Device,
    /// Address at which SFUs connect to the process.
    pub listen: SocketAddr,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
}

/// Makes the arguments of each process from those of this one, without the program's name.
pub(super) fn children(
    args: impl Iterator<Item = OsString>,
    own: &Own<'_>,
    devices: Vec<Device>,
) -> Result<Vec<Child>> {
    let count = devices.len();
    ensure!(
        count > 0,
        "there is no GPU to start an enhancer for: CUDA_VISIBLE_DEVICES leaves none, or each is cut into slices (MIG) and has none"
    );
    ensure!(count <= MAX_DEVICES, "{count} devices are more than {MAX_DEVICES}");
    if let Some(metrics) = own.metrics {
        apart(own.listen, metrics, count)?;
    }
    let common = without_own(args);
    let each = devices.into_iter().enumerate().map(|(n, device)| {
        let listen = moved(own.listen, n)?;
        let mut args = common.clone();
        let mut set = |option: &str, value: String| args.push(format!("--{option}={value}").into());
        set("listen", listen.to_string());
        set("device", device.uuid.clone());
        if let Some(metrics) = own.metrics {
            set("metrics", moved(metrics, n)?.to_string());
        }
        if let Some(address) = own.address {
            set("address", moved_url(address, n)?);
        }
        if let Some(all) = own.threads {
            set("enhancer-threads", (all / count).clamp(1, MAX_THREADS).to_string());
        }
        Ok(Child { device, listen, args })
    });
    each.collect()
}

/// Drops the arguments that each process gets for itself.
fn without_own(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut its_value) = (Vec::new(), false);
    for arg in args {
        if std::mem::take(&mut its_value) {
            continue;
        }
        let text = arg.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, false), |(name, _)| (name, true));
        match name {
            "--each-device" => {}
            "--listen" | "--metrics" | "--address" | "--device" => its_value = !value,
            _ => kept.push(arg),
        }
    }
    kept
}

fn moved(addr: SocketAddr, n: usize) -> Result<SocketAddr> {
    if addr.port() == 0 {
        return Ok(addr);
    }
    let port = u16::try_from(n).ok().and_then(|n| addr.port().checked_add(n));
    let port = port.with_context(|| format!("there is no port {n} after {addr}"))?;
    Ok(SocketAddr::new(addr.ip(), port))
}

fn moved_url(url: &str, n: usize) -> Result<String> {
    let parts = url.trim_end_matches('/').rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let Some((host, first)) = parts else {
        bail!("--address {url} needs its port with --each-device: those of the others follow it");
    };
    let port = u16::try_from(n).ok().and_then(|n| first.checked_add(n));
    Ok(format!("{host}:{}", port.with_context(|| format!("there is no port {n} after {url}"))?))
}

/// Fails if the `count` ports from `listen` on overlap those from `metrics` on.
fn apart(listen: SocketAddr, metrics: SocketAddr, count: usize) -> Result<()> {
    let (a, b) = (usize::from(listen.port()), usize::from(metrics.port()));
    let (one, other) = (listen.ip(), metrics.ip());
    let same = one == other || one.is_unspecified() || other.is_unspecified();
    if a != 0 && b != 0 && same && a.abs_diff(b) < count {
        bail!(
            "--metrics {metrics}: the ports of {count} enhancers from there on meet those from --listen {listen} on; {} is far \
             enough",
            a + count
        );
    }
    Ok(())
}

/// Makes the system send this process SIGTERM when its parent ends in any way. Otherwise nobody would end it, and it
/// would keep its device and ports.
#[cfg(target_os = "linux")]
pub(super) fn end_with(parent: i32) -> Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::TERM))
        .context("cannot ask the system to end this process with its parent")?;
    ensure!(getppid().map(Pid::as_raw_pid) == Some(parent), "its parent {parent} has ended");
    Ok(())
}

/// Does nothing: other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_with(_parent: i32) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use windlass_sr::cuda::devices::Kind;

    use super::*;

    fn devices(count: usize) -> Vec<Device> {
        let device = |n: usize| Device {
            ordinal: format!("0:{n}"),
            kind: Kind::Slice,
            name: "A card MIG 1g.10gb".to_owned(),
            uuid: format!("MIG-{n}"),
            memory_bytes: None,
            bus: String::new(),
            numa_node: None,
        };
        (0..count).map(device).collect()
    }

    fn own() -> Own<'static> {
        let (listen, metrics) = ("0.0.0.0:7890".parse().unwrap(), "0.0.0.0:7900".parse().unwrap());
        Own {
            listen,
            metrics: Some(metrics),
            address: Some("https://10.0.0.7:7890"),
            threads: Some(5),
        }
    }

    fn lines(args: &str, own: &Own<'_>, count: usize) -> Result<Vec<String>> {
        let all = children(args.split(' ').map(OsString::from), own, devices(count))?;
        let line = |child: &Child| {
            let words: Vec<_> = child.args.iter().map(|arg| arg.to_string_lossy()).collect();
            words.join(" ")
        };
        Ok(all.iter().map(line).collect())
    }

    #[test]
    fn each_is_told_the_same_but_for_what_is_its_own() {
        let args = "enhance --listen 0.0.0.0:7890 --device 0:0,0:1 --each-device --metrics=0.0.0.0:7900 \
                    --address https://10.0.0.7:7890 --nats tls://10.0.0.9:4222";
        let all = lines(args, &own(), 2).unwrap();
        let same = "enhance --nats tls://10.0.0.9:4222";
        let first = "--listen=0.0.0.0:7890 --device=MIG-0 --metrics=0.0.0.0:7900 --address=https://10.0.0.7:7890 --enhancer-threads=2";
        let second = "--listen=0.0.0.0:7891 --device=MIG-1 --metrics=0.0.0.0:7901 --address=https://10.0.0.7:7891 --enhancer-threads=2";
        assert_eq!(all, [format!("{same} {first}"), format!("{same} {second}")]);
    }

    #[test]
    fn any_port_is_any_port_for_each() {
        let own = Own {
            listen: "127.0.0.1:0".parse().unwrap(),
            metrics: None,
            address: None,
            threads: None,
        };
        let all = lines("enhance --each-device --enhancer-threads 3", &own, 2).unwrap();
        assert_eq!(all[1], "enhance --enhancer-threads 3 --listen=127.0.0.1:0 --device=MIG-1");
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_sentence() {
        let near = Own { metrics: Some("127.0.0.1:7891".parse().unwrap()), ..own() };
        assert!(lines("enhance", &near, 1).is_ok());
        let error = lines("enhance", &near, 2).unwrap_err().to_string();
        assert!(error.contains("7892 is far enough"), "{error}");
        for address in ["https://worker", "https://[fd00::7]"] {
            let error = lines("enhance", &Own { address: Some(address), ..own() }, 2).unwrap_err();
            assert!(error.to_string().contains("needs its port"), "{error}");
        }
        let six = Own { address: Some("https://[fd00::7]:7890/"), ..own() };
        assert!(lines("enhance", &six, 2).unwrap()[1].contains("--address=https://[fd00::7]:7891"));
        let last = Own { listen: "127.0.0.1:65535".parse().unwrap(), ..own() };
        assert!(lines("enhance", &last, 2).is_err());
        assert!(lines("enhance", &own(), 0).unwrap_err().to_string().contains("no GPU"));
    }
}
