//! How much memory the KV cells take, and how much there is.

use super::context::Shape;
use super::model::Model;
use crate::device::DeviceError;

/// Bytes of the KV cells (16-bit keys and values), from the file's metadata. `None` where the
/// model keeps something else than plain keys and values, so that only the library knows.
pub(super) fn kv_bytes(model: &Model, shape: &Shape) -> Option<u64> {
    let family = model.metadata("general.architecture")?;
    let number = |key: &str| model.metadata(&format!("{family}.{key}"))?.parse::<u64>().ok();
    if model.is_recurrent() || number("attention.kv_lora_rank").is_some() {
        return None;
    }
    let attention = model.attention();
    let usual = attention.width.checked_div(attention.head_count)?;
    let key_length = number("attention.key_length").unwrap_or(usual);
    let value_length = number("attention.value_length").unwrap_or(usual);
    let bytes_per_cell =
        2 * attention.layers * attention.head_count_kv * (key_length + value_length);
    Some(bytes_per_cell * shape.cells_per_sequence() * u64::from(shape.max_sequences))
}

/// The size for an error text.
pub(super) fn kv_text(model: &Model, shape: &Shape) -> String {
    match kv_bytes(model, shape) {
        Some(bytes) => format!("{} MiB of KV memory", bytes.div_ceil(1 << 20)),
        None => "KV memory of unknown size".to_owned(),
    }
}

/// Refuses a KV memory that the machine does not have. The library would not: the system grants
/// the addresses, and ends the process when they are written to.
pub(super) fn check_room(model: &Model, shape: &Shape) -> Result<(), DeviceError> {
    let (Some(needed), Some(available)) = (kv_bytes(model, shape), available_bytes()) else {
        return Ok(());
    };
    if needed <= available {
        return Ok(());
    }
    Err(DeviceError::Load(format!(
        "{} sequences of {} tokens need {}, and {} MiB are free: lower max_sequences or \
         context_tokens",
        shape.max_sequences,
        shape.context_tokens,
        kv_text(model, shape),
        available >> 20
    )))
}

/// Bytes that can still be used, where Linux tells: the lesser of what the machine and what the
/// control group has left.
fn available_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = parse_available(&meminfo)?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|max| {
        let used = std::fs::read_to_string("/sys/fs/cgroup/memory.current").ok()?;
        max.trim().parse::<u64>().ok()?.checked_sub(used.trim().parse().ok()?)
    });
    Some(group.map_or(machine, |group| group.min(machine)))
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:       24683888 kB\nMemAvailable:   23728128 kB\n";
        assert_eq!(parse_available(text), Some(23_728_128 * 1024));
        assert_eq!(parse_available("MemTotal: 1 kB"), None);
    }
}
