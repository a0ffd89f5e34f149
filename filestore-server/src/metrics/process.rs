//! The process metrics, with the names of Prometheus' own libraries. Only available on Linux.

use super::text::Text;

/// Clock ticks per second in `/proc`: 100, independently of the kernel's own clock (proc(5), `USER_HZ`).
const TICKS_PER_SEC: f64 = 100.0;

/// Writes the kernel's data about this process, if available.
pub(super) fn write(text: &mut Text) {
    if let Some(bytes) = resident_bytes() {
        text.gauge("process_resident_memory_bytes", "Bytes of memory in use.", bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        text.counter("process_cpu_seconds", "Processor time, in seconds.", seconds);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        text.gauge("process_open_fds", "Descriptors that are open.", open.count());
    }
    if let Some(max) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        text.gauge("process_max_fds", "Descriptors that may be open.", max);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold spaces. utime and stime are fields 14 and 15.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SEC)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_this_process() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(cpu_seconds().is_some());
    }
}
