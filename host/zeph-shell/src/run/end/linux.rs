//! What `/proc` tells of processes.

use std::fs;
use std::io::Read as _;

use rustix::process::Pid;

use super::ProcessStat;

/// More than such a line has: it is read in one piece, as its length is not told.
const STAT_BYTES: usize = 1024;

pub(super) fn processes() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let pid = name.to_str()?.parse().ok().and_then(Pid::from_raw)?;
            read_process(pid)
        })
        .collect()
}

pub(super) fn read_process(pid: Pid) -> Option<ProcessStat> {
    let mut file = fs::File::open(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let mut line = Vec::with_capacity(STAT_BYTES);
    file.read_to_end(&mut line).ok()?;
    parse_stat(pid, &line)
}

/// Reads a line of `/proc/PID/stat`. The name in it is the process's own choice and may hold anything, also `)`.
///
/// Source: proc_pid_stat(5); fields 3 (state), 4 (parent), 5 (group), 6 (session), 22 (start time).
fn parse_stat(pid: Pid, line: &[u8]) -> Option<ProcessStat> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcessStat {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
mod tests;
