//! The devices of a machine: GPUs and their slices (MIG). Finds those that an operator chooses, and restricts CUDA to
//! them.
//!
//! CUDA reads `CUDA_VISIBLE_DEVICES` when it is first used. It shows a process at most one slice, and then no other GPU
//! ([MIG user guide](https://docs.nvidia.com/datacenter/tesla/mig-user-guide/), *Device Enumeration*). So each slice
//! needs its own process. Ordinals here are those of `nvidia-smi`, by position on the bus. CUDA has another order, so
//! that it gets UUIDs.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

use super::{numa, nvml};

/// Why nothing is known of the machine's devices.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DevicesError {
    /// Neither CUDA's library nor NVML is installed.
    #[error("no NVIDIA driver is installed")]
    NoDriver,
    /// CUDA's library is installed, NVML is not.
    #[error("libnvidia-ml.so.1 (NVML), a part of the NVIDIA driver, is not installed")]
    NoNvml,
    /// NVML is too old: functions that are needed are missing.
    #[error("the NVIDIA driver is too old: its NVML lacks what we need")]
    OldNvml,
    /// The libraries are there, the kernel's part is not.
    #[error("the NVIDIA driver is installed but not loaded")]
    NotLoaded,
    /// NVML refused something.
    #[error("NVML: {0}")]
    Nvml(String),
    /// The driver finds no GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
}

/// Kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A GPU as a whole.
    Gpu,
    /// A GPU that is cut into slices, of which there may be none yet: it cannot be used itself.
    Cut,
    /// A slice of a GPU.
    Slice,
}

/// A GPU or a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Number of the device, as `nvidia-smi` counts: `0`, or `0:1` for a slice of GPU 0.
    pub ordinal: String,
    /// Whether the device is a whole GPU or a slice.
    pub kind: Kind,
    /// Name of the device, as the driver has it.
    pub name: String,
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Memory of the device in bytes; `None` if the driver does not say.
    pub memory_bytes: Option<u64>,
    /// Address of the GPU on the machine's bus (`0000:3b:00.0`); empty if the driver does not say.
    pub bus: String,
    /// NUMA node of the GPU; `None` if the machine does not say.
    pub numa_node: Option<usize>,
}

impl Device {
    /// Sets the bus address and the NUMA node. NVML writes the domain with eight digits, Linux with four.
    pub(super) fn at(mut self, bus: &str) -> Self {
        let bus = bus.to_ascii_lowercase();
        let domain =
            bus.split_once(':').map(|(domain, rest)| (u32::from_str_radix(domain, 16), rest));
        self.bus = match domain {
            Some((Ok(domain), rest)) => format!("{domain:04x}:{rest}"),
            _ => bus,
        };
        self.numa_node = numa::of(&self.bus, Path::new("/sys"));
        self
    }

    /// Profile of a slice, such as `1g.10gb`, from the end of its name.
    pub fn profile(&self) -> Option<&str> {
        profile(&self.name)
    }

    /// Ordinal of the GPU that the device is or belongs to.
    fn gpu(&self) -> &str {
        self.ordinal.split(':').next().unwrap_or_default()
    }
}

/// Profile of a slice with this name; `None` for the name of a GPU.
pub fn profile(name: &str) -> Option<&str> {
    name.rsplit_once(" MIG ")
        .map(|(_, profile)| profile.trim())
        .filter(|profile| !profile.is_empty())
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.ordinal, self.uuid, self.name)
    }
}

/// The devices of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// The driver's version.
    pub driver: String,
    /// Each GPU, followed by its slices.
    pub all: Vec<Device>,
}

impl Devices {
    /// Asks the driver for the machine's devices; there is at least one.
    ///
    /// # Errors
    ///
    /// Fails if there is no NVIDIA driver with NVML that can be used, or it finds no device.
    pub fn here() -> Result<Devices, DevicesError> {
        let (driver, all) = nvml::devices()?;
        if all.is_empty() { Err(DevicesError::NoDevice) } else { Ok(Devices { driver, all }) }
    }

    /// Devices that can be used: slices, and GPUs that are not cut into slices.
    pub fn usable(&self) -> Vec<Device> {
        self.all.iter().filter(|device| device.kind != Kind::Cut).cloned().collect()
    }

    /// The devices that the names mean, in the order of the names, each once.
    ///
    /// # Errors
    ///
    /// Fails if a name means no device, several, or a GPU that is cut into slices.
    pub fn choose(&self, wanted: &[DeviceName]) -> Result<Vec<Device>, ChoiceError> {
        let mut chosen: Vec<Device> = Vec::new();
        for name in wanted {
            let device = self.meant(name)?;
            if !chosen.contains(device) {
                chosen.push(device.clone());
            }
        }
        Ok(chosen)
    }

    fn meant(&self, name: &DeviceName) -> Result<&Device, ChoiceError> {
        let mut meant = self.all.iter().filter(|device| name.means(device));
        let there = || list(&self.usable());
        let Some(device) = meant.next() else {
            return Err(ChoiceError::NotThere { wanted: name.clone(), there: there() });
        };
        if meant.next().is_some() {
            return Err(ChoiceError::Several { wanted: name.clone(), there: there() });
        }
        if device.kind == Kind::Cut {
            let slices = self.usable();
            let slices: Vec<_> = slices.into_iter().filter(|s| s.gpu() == device.ordinal).collect();
            return Err(ChoiceError::Cut { wanted: name.clone(), slices: list(&slices) });
        }
        Ok(device)
    }
}

fn list(devices: &[Device]) -> String {
    let all: Vec<String> = devices.iter().map(ToString::to_string).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Value of `CUDA_VISIBLE_DEVICES` for a process that is to have the chosen devices.
///
/// # Errors
///
/// Fails if a slice (MIG) is chosen and not alone: CUDA shows a process nothing beside it.
pub fn visible(chosen: &[Device]) -> Result<String, ChoiceError> {
    if chosen.len() > 1 && chosen.iter().any(|device| device.kind == Kind::Slice) {
        return Err(ChoiceError::SlicesTogether);
    }
    Ok(chosen.iter().map(|device| device.uuid.as_str()).collect::<Vec<_>>().join(","))
}

/// Why a process cannot have the devices that are meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// No device has this name.
    #[error("there is no device {wanted}; there are: {there}")]
    NotThere {
        /// The name that was asked for.
        wanted: DeviceName,
        /// The devices that can be used, for the message.
        there: String,
    },
    /// The name is the beginning of several UUIDs.
    #[error("{wanted} is the beginning of several; there are: {there}")]
    Several {
        /// The beginning of a UUID that was asked for.
        wanted: DeviceName,
        /// The devices that can be used, for the message.
        there: String,
    },
    /// The GPU is cut into slices, and only these can be used.
    #[error("the GPU {wanted} is cut into slices (MIG): name one of them; there are: {slices}")]
    Cut {
        /// The GPU that was asked for.
        wanted: DeviceName,
        /// The GPU's slices, for the message.
        slices: String,
    },
    /// CUDA does not show a process more than one slice, nor GPUs beside one.
    #[error(
        "a process has one slice (MIG) and nothing beside it: name one, or start an enhancer for each with `windlass enhance --each-device`"
    )]
    SlicesTogether,
}

/// Name of a device as an operator writes it: an ordinal (`0`, `0:1` for a slice), a UUID, or the beginning of a UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceName(String);

impl DeviceName {
    fn means(&self, device: &Device) -> bool {
        device.ordinal == self.0 || (self.0.contains('-') && device.uuid.starts_with(&self.0))
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            !text.is_empty() && text.len() < 4 && text.bytes().all(|b| b.is_ascii_digit())
        };
        let (gpu, slice) =
            text.split_once(':').map_or((text, None), |(gpu, slice)| (gpu, Some(slice)));
        let ordinal = number(gpu) && slice.is_none_or(number);
        let letters = |rest: &str| {
            rest.len() >= 4 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/".contains(&b))
        };
        let uuid =
            ["GPU-", "MIG-"].iter().find_map(|kind| text.strip_prefix(kind)).is_some_and(letters);
        if ordinal || uuid {
            return Ok(DeviceName(text.to_owned()));
        }
        Err(format!(
            "`{text}` is no device: an ordinal (0, of a slice 0:1) or a UUID (GPU-…, MIG-…), as `windlass devices` lists them"
        ))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(ordinal: &str, kind: Kind, uuid: &str) -> Device {
        let name = if kind == Kind::Slice { "A card MIG 1g.10gb" } else { "A card" };
        Device {
            ordinal: ordinal.to_owned(),
            kind,
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            memory_bytes: Some(10 << 30),
            bus: String::new(),
            numa_node: None,
        }
    }

    /// A GPU that is whole between two that are cut, one of them into nothing yet.
    fn machine() -> Devices {
        let all = vec![
            device("0", Kind::Cut, "GPU-aaaa-0"),
            device("0:0", Kind::Slice, "MIG-bbbb-0"),
            device("0:1", Kind::Slice, "MIG-bbbb-1"),
            device("1", Kind::Gpu, "GPU-cccc-1"),
            device("2", Kind::Cut, "GPU-dddd-2"),
        ];
        Devices { driver: "580.1".to_owned(), all }
    }

    fn choose(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<DeviceName> = names.iter().map(|name| name.parse().unwrap()).collect();
        let chosen = machine().choose(&names).map_err(|why| why.to_string())?;
        Ok(chosen.into_iter().map(|device| device.uuid).collect())
    }

    #[test]
    fn devices_are_chosen_by_ordinal_uuid_or_its_beginning() {
        assert_eq!(choose(&["0:1"]).unwrap(), ["MIG-bbbb-1"]);
        assert_eq!(choose(&["MIG-bbbb-0"]).unwrap(), ["MIG-bbbb-0"]);
        assert_eq!(choose(&["1", "GPU-cccc", "0:0"]).unwrap(), ["GPU-cccc-1", "MIG-bbbb-0"]);
    }

    #[test]
    fn what_cannot_be_had_is_told_with_what_can() {
        let error = choose(&["3"]).unwrap_err();
        assert!(
            error.contains("no device 3")
                && error.contains("0:0 (MIG-bbbb-0, A card MIG 1g.10gb), "),
            "{error}"
        );
        assert!(error.contains("1 (GPU-cccc-1") && !error.contains("GPU-aaaa"), "{error}");
        let error = choose(&["0"]).unwrap_err();
        assert!(error.contains("cut into slices") && error.contains("0:1 (MIG-bbbb-1"), "{error}");
        assert!(!error.contains("GPU-cccc"), "{error}");
        assert!(choose(&["GPU-dddd-2"]).unwrap_err().ends_with("there are: none"));
        assert!(choose(&["MIG-bbbb"]).unwrap_err().contains("several"));
    }

    #[test]
    fn a_process_has_many_gpus_or_one_slice() {
        let gpus = [device("0", Kind::Gpu, "GPU-a"), device("1", Kind::Gpu, "GPU-b")];
        assert_eq!(visible(&gpus).unwrap(), "GPU-a,GPU-b");
        let slice = device("2:0", Kind::Slice, "MIG-c");
        assert_eq!(visible(std::slice::from_ref(&slice)).unwrap(), "MIG-c");
        assert_eq!(visible(&[gpus[0].clone(), slice]), Err(ChoiceError::SlicesTogether));
    }

    #[test]
    fn names_are_ordinals_and_uuids_alone() {
        for fine in ["0", "12", "0:3", "GPU-8932f937", "MIG-GPU-b8ea3855/1/0"] {
            assert_eq!(fine.parse::<DeviceName>().unwrap().to_string(), fine);
        }
        for wrong in
            ["", "a", "0:", ":1", "-1", "0:1:2", "GPU-", "MIG-1", "12345", "GPU-12 34", "nvidia0"]
        {
            assert!(
                wrong.parse::<DeviceName>().unwrap_err().contains("windlass devices"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn profiles_and_places_are_as_the_driver_and_linux_say() {
        assert_eq!(profile("NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"), Some("1c.3g.40gb"));
        assert_eq!(profile("NVIDIA H100 80GB HBM3"), None);
        let placed = device("0", Kind::Gpu, "GPU-a").at("00000000:3B:00.0");
        assert_eq!(placed.bus, "0000:3b:00.0");
        assert_eq!(device("0", Kind::Gpu, "GPU-a").at("").bus, "");
    }
}
