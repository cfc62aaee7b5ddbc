//! `METRICS`: how the guest is doing, from what `/proc` and the control group show.

use std::fs;

use fourwalls_protocol::reply::Metrics;
use fourwalls_protocol::request::Nothing;
use fourwalls_protocol::wire;

use crate::agent::Agent;
use crate::failure::Failure;
use crate::sys;

impl Agent {
    /// `METRICS`.
    pub fn metrics(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let _: Nothing = wire::decode(body)?;
        let uptime = self.started.elapsed().as_millis();
        self.answer_later(stream, move || {
            Ok(gather(u64::try_from(uptime).unwrap_or(u64::MAX)))
        });
        Ok(())
    }
}

fn gather(uptime_ms: u64) -> Metrics {
    let memory = memory();
    let disk = sys::root_usage();
    let block = disk.map_or(0, |disk| disk.f_bsize as u64);
    let processes = fs::read_dir("/proc").map_or(0, |entries| {
        let is_number = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
        entries
            .flatten()
            .filter(|e| is_number(e.file_name().as_encoded_bytes()))
            .count()
    });
    Metrics {
        cpu_count: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        mem_total: memory.total,
        mem_used: memory.used,
        mem_cache: memory.cache,
        disk_total: disk.map_or(0, |disk| disk.f_blocks.saturating_mul(block)),
        disk_used: disk.map_or(0, |disk| {
            (disk.f_blocks - disk.f_bfree).saturating_mul(block)
        }),
        processes: u32::try_from(processes).unwrap_or(u32::MAX),
        uptime_ms,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Memory {
    total: u64,
    used: u64,
    cache: u64,
}

/// The control group where it is shown and limited, else the whole machine.
fn memory() -> Memory {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = machine_memory(&info);
    let groups = [
        (
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory.current",
            "/sys/fs/cgroup/memory.stat",
        ),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
            "/sys/fs/cgroup/memory/memory.stat",
        ),
    ];
    for (limit, usage, stat) in groups {
        let (Some(limit), Some(usage)) = (read_number(limit), read_number(usage)) else {
            continue;
        };
        if limit < machine.total {
            let stat = fs::read_to_string(stat).unwrap_or_default();
            let cache = field(&stat, "file")
                .or_else(|| field(&stat, "total_cache"))
                .unwrap_or(0);
            return Memory {
                total: limit,
                used: usage.saturating_sub(cache),
                cache,
            };
        }
    }
    machine
}

fn machine_memory(info: &str) -> Memory {
    let bytes = |name: &str| field(info, name).unwrap_or(0).saturating_mul(1024);
    let total = bytes("MemTotal:");
    let cache = bytes("Cached:") + bytes("Buffers:");
    let available =
        field(info, "MemAvailable:").map_or(bytes("MemFree:") + cache, |kib| kib * 1024);
    Memory {
        total,
        used: total.saturating_sub(available),
        cache,
    }
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next() == Some(name) {
            words.next()?.parse().ok()
        } else {
            None
        }
    })
}

fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo() {
        let info = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nBuffers: 50 kB\n\
            Cached: 200 kB\nSwapCached: 7 kB\n";
        let expected = Memory {
            total: 1_024_000,
            used: 614_400,
            cache: 256_000,
        };
        assert_eq!(machine_memory(info), expected);
        let thin = "MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 200 kB\n";
        assert_eq!(machine_memory(thin).used, 700 * 1024);
        assert_eq!(machine_memory("").total, 0);
    }
}
