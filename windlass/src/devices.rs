//! `windlass devices`: lists the machine's GPUs and their slices (MIG). Also gives a process only the devices that the
//! operator named: it restarts itself with `CUDA_VISIBLE_DEVICES` before it does anything else.
//!
//! Setting the variable in the running process is not safe once there are threads, and the allocator has some from the
//! start. Choosing by ordinal among what CUDA shows reaches no slice but the first.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Error, Result};
use clap::Args;
use serde::Serialize;
use windlass_sr::cuda::devices::{self, Device, DeviceName, Devices, Kind};

use crate::config::Config;

/// Environment variable that CUDA reads when it is first used.
pub(crate) const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Arguments of `windlass devices`.
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// A device in the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    /// Number of the device, as `nvidia-smi` counts; `GPU:SLICE` for a slice.
    ordinal: String,
    name: String,
    uuid: String,
    /// Profile of a slice, such as `1g.10gb`; null for a GPU.
    mig_profile: Option<String>,
    memory_bytes: Option<u64>,
    bus: String,
    numa_node: Option<usize>,
    /// Option that gives a process this device; null if only its slices can be used.
    #[serde(rename = "use")]
    how: Option<String>,
}

/// The whole output.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    /// Version of the driver; null if there is none.
    driver: Option<String>,
    /// Reason for which there are no devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Value of `CUDA_VISIBLE_DEVICES`, which limits what CUDA shows.
    cuda_visible_devices: Option<String>,
    rows: Vec<Row>,
}

impl Row {
    fn new(device: &Device) -> Row {
        let usable = device.kind != Kind::Cut;
        Row {
            ordinal: device.ordinal.clone(),
            name: device.name.clone(),
            uuid: device.uuid.clone(),
            mig_profile: device.profile().map(str::to_owned),
            memory_bytes: device.memory_bytes,
            bus: device.bus.clone(),
            numa_node: device.numa_node,
            how: usable.then(|| format!("--device {}", device.uuid)),
        }
    }
}

/// Lists the devices. Fails if there are none, so that scripts can rely on the exit status alone.
pub(crate) fn run(args: &DevicesArgs) -> Result<()> {
    let found = Devices::here();
    let visible = std::env::var_os(VISIBLE).map(|value| value.to_string_lossy().into_owned());
    if args.json {
        let report = Report {
            command: "devices",
            driver: found.as_ref().ok().map(|found| found.driver.clone()),
            why: found.as_ref().err().map(ToString::to_string),
            cuda_visible_devices: visible,
            rows: found.iter().flat_map(|found| &found.all).map(Row::new).collect(),
        };
        println!("{}", serde_json::to_string(&report)?);
        found?;
    } else {
        print!("{}", table(&found?, visible.as_deref()));
    }
    Ok(())
}

fn table(found: &Devices, visible: Option<&str>) -> String {
    let name = found.all.iter().map(|device| device.name.len()).max().unwrap_or_default();
    let mut out = format!(
        "driver {}\n\n{:<6} {:name$} {:<10} {:>8} {:>4}  use it by\n",
        found.driver, "device", "name", "profile", "memory", "node"
    );
    for device in &found.all {
        let memory =
            device.memory_bytes.map_or("-".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        let node = device.numa_node.map_or("-".to_owned(), |node| node.to_string());
        let how = match Row::new(device).how {
            Some(how) => how,
            None => format!("its slices (MIG); itself {}", device.uuid),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:<6} {:name$} {:<10} {memory:>8} {node:>4}  {how}",
            device.ordinal,
            device.name,
            device.profile().unwrap_or("-"),
        );
    }
    if found.all.iter().any(|device| device.kind == Kind::Slice) {
        out.push_str(
            "\nA process has one slice: `windlass enhance --each-device` starts one for each.\n",
        );
    }
    if let Some(visible) = visible {
        let _ =
            writeln!(out, "\n{VISIBLE}={visible} is set: without --device CUDA shows no others.");
    }
    out
}

/// The named devices of the machine. Without names, those that the environment leaves, or all that can be used.
pub(crate) fn chosen(names: &[DeviceName]) -> Result<Vec<Device>> {
    let found = Devices::here()?;
    if !names.is_empty() {
        return found.choose(names).map_err(wrong);
    }
    let Some(left) = std::env::var_os(VISIBLE) else { return Ok(found.usable()) };
    let left = left.to_string_lossy();
    let ordinal = |name: &str| !name.contains('-');
    let names = left.split(',').filter(|name| !name.is_empty()).map(|name| {
        anyhow::ensure!(
            !ordinal(name),
            "{VISIBLE}={left} goes by CUDA's own order: name devices by --device"
        );
        name.parse().map_err(Error::msg)
    });
    found.choose(&names.collect::<Result<Vec<DeviceName>>>()?).map_err(wrong)
}

fn wrong(why: devices::ChoiceError) -> Error {
    Error::new(why).context("option `device` cannot be applied")
}

/// Makes sure that this process has the devices of its configuration and no others. If it does not yet, it replaces
/// itself by a new program with the right ones, the same arguments and the same process id.
///
/// If nothing is known of the machine's devices, CUDA may still know those that are named by UUID. It leaves out what
/// it does not know, and the CPU does the work.
pub(crate) fn enter(config: &Config) -> Result<()> {
    if config.devices.is_empty() || config.enhancer.is_none() {
        return Ok(());
    }
    let visible = match Devices::here() {
        Ok(found) => {
            devices::visible(&found.choose(&config.devices).map_err(wrong)?).map_err(wrong)?
        }
        Err(why) => {
            // There is no log yet.
            eprintln!(
                "GPUs of option `device` not checked: {why}; CUDA gets those that are named by UUID"
            );
            by_uuid(&config.devices)
        }
    };
    if std::env::var_os(VISIBLE).is_some_and(|now| now == *visible) {
        return Ok(());
    }
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("windlass"));
    let program = std::env::current_exe().context("cannot find this program")?;
    let why = Command::new(program).arg0(name).args(args).env(VISIBLE, &visible).exec();
    Err(Error::new(why).context("cannot restart this program with the devices of option `device`"))
}

/// Value of `CUDA_VISIBLE_DEVICES` if only CUDA knows the devices: the UUIDs among the names, because ordinals would be
/// CUDA's own.
fn by_uuid(names: &[DeviceName]) -> String {
    let names = names.iter().map(ToString::to_string).filter(|name| name.contains('-'));
    names.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_which_nothing_is_known_is_asked_for_uuids() {
        let names = ["0:1", "GPU-0123-4567", "1", "MIG-89ab"].map(|name| name.parse().unwrap());
        assert_eq!(by_uuid(&names), "GPU-0123-4567,MIG-89ab");
    }

    #[test]
    fn the_table_says_what_can_be_used_and_how() {
        let device = |ordinal: &str, kind, name: &str, uuid: &str| Device {
            ordinal: ordinal.to_owned(),
            kind,
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            memory_bytes: Some(10_240 << 20),
            bus: "0000:3b:00.0".to_owned(),
            numa_node: Some(1),
        };
        let all = vec![
            device("0", Kind::Cut, "A card", "GPU-a"),
            device("0:0", Kind::Slice, "A card MIG 1g.10gb", "MIG-b"),
            device("1", Kind::Gpu, "A card", "GPU-c"),
        ];
        let found = Devices { driver: "580.1".to_owned(), all };
        let table = table(&found, Some("MIG-b"));
        for part in [
            "driver 580.1",
            "--device MIG-b",
            "--device GPU-c",
            "1g.10gb",
            "10240 MiB",
            "its slices (MIG)",
        ] {
            assert!(table.contains(part), "{part} is missing in {table}");
        }
        assert!(
            !table.contains("--device GPU-a") && table.contains("CUDA_VISIBLE_DEVICES=MIG-b"),
            "{table}"
        );
        let rows: Vec<Row> = found.all.iter().map(Row::new).collect();
        let json = serde_json::to_value(&rows).unwrap();
        assert_eq!(
            (&json[0]["use"], &json[1]["use"]),
            (&serde_json::Value::Null, &"--device MIG-b".into())
        );
        assert_eq!(
            (&json[1]["mig_profile"], &json[1]["numa_node"]),
            (&"1g.10gb".into(), &1.into())
        );
    }
}
