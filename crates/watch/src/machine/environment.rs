//! The machine's description as stored with a run: enough to see that two runs were made on different machines.
//!
//! No names of hosts or users: a report is meant to be shared.

use std::fs;
use std::path::Path;

use procfs::Current;
use serde_json::{Map, Value, json};

use crate::cores::AllowedCores;
use crate::inherited::Inherited;

/// Kernel, processor, cores, memory, clock, limits. A figure that is not readable is absent.
pub fn environment() -> Map<String, Value> {
    let mut found = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            found.insert(name.to_owned(), value);
        }
    };
    let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    put("os", json!(std::env::consts::OS));
    put("architecture", json!(std::env::consts::ARCH));
    put("kernel", json!(text("/proc/sys/kernel/osrelease")));
    put("cpu_model", json!(cpu_model()));
    put("virtual_machine", json!(virtual_machine()));
    put("online_cores", json!(online_cores()));
    let allowed = AllowedCores::own();
    put("allowed_cores", json!(allowed.cores()));
    put("quota_cores", json!(allowed.quota));
    let memory = procfs::Meminfo::current().ok();
    put("memory_bytes", json!(memory.as_ref().map(|memory| memory.mem_total)));
    put("swap_bytes", json!(memory.as_ref().map(|memory| memory.swap_total)));
    put("clock_source", json!(text("/sys/devices/system/clocksource/clocksource0/current_clocksource")));
    put("frequency_governor", json!(text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
    put("simultaneous_multithreading", json!(text("/sys/devices/system/cpu/smt/active").map(|on| on == "1")));
    put("descriptors_hard", json!(Inherited::remember().descriptors_hard));
    put(
        "port_range",
        json!(text("/proc/sys/net/ipv4/ip_local_port_range").map(|range| range.replace('\t', "-"))),
    );
    found
}

/// The processor's name as its maker writes it.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let named = ["model name", "Model", "Hardware", "cpu model"];
    named.iter().find_map(|name| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == *name))?;
        Some(line.split_once(':')?.1.trim().to_owned()).filter(|model| !model.is_empty())
    })
}

/// All cores of the machine, whether this process may use them or not.
pub fn online_cores() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cores_in(text.trim())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()))
}

/// Who runs this machine as a guest, `None` for a real one or when nothing tells.
pub fn virtual_machine() -> Option<String> {
    let is_guest = fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor")));
    let product = |name: &str| {
        let text = fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    is_guest.then(|| product("sys_vendor").or_else(|| product("product_name")).unwrap_or("yes".to_owned()))
}

/// `0-3,8` are five.
fn cores_in(list: &str) -> Option<usize> {
    list.split(',').try_fold(0, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_counted() {
        assert_eq!(cores_in("0-3,8"), Some(5));
        assert_eq!(cores_in("0"), Some(1));
        assert_eq!(cores_in(""), None);
    }

    #[test]
    fn the_environment_tells_two_machines_apart() {
        let found = environment();
        for name in ["kernel", "architecture", "online_cores", "allowed_cores", "memory_bytes"] {
            assert!(found.contains_key(name), "{name} of {found:?}");
        }
        assert!(found.values().all(|value| !value.is_null()));
    }
}
