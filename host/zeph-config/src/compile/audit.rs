//! `[tools.audit]`: the log, its keys, and its checkpoints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zeph_core::failure::one_line;
use zeph_core::network::EgressSettings;

use super::servers::url_problem;
use super::{Compiling, DAY, PROGRAM, or_unlimited};
use crate::raw::{RawAudit, RawScope, RawTools};
use crate::surroundings::Surroundings;
use crate::{AuditConfig, CheckpointInterval, CheckpointTarget};

const TARGET: &str = "tools.audit.checkpoint_target";
const EVERY: &str = "tools.audit.checkpoint_every";

/// Characters of a wrong value that are quoted.
const SHOWN_CHARS_MAX: usize = 80;

/// Most records, and most seconds, between two checkpoints.
const RECORDS_MAX: u64 = 1_000_000_000;
const SECONDS_MAX: u64 = 366 * 86_400;

/// The folder of the keys of a log whose store is in memory.
fn keys(file: Option<&Path>, surroundings: &Surroundings) -> Option<PathBuf> {
    file?;
    let home = surroundings.data_home.as_ref()?;
    Some(home.join(PROGRAM).join("secrets"))
}

/// The file that checkpoints go to.
pub(super) fn checkpoint_file(target: Option<&CheckpointTarget>) -> Option<&Path> {
    match target {
        Some(CheckpointTarget::File(path)) => Some(path),
        _ => None,
    }
}

impl Compiling<'_> {
    /// What is recorded, where, and for how long. `secrets`: the folder of the store's keys.
    pub(super) fn audit(&mut self, tools: &RawTools, secrets: Option<PathBuf>) -> AuditConfig {
        let (raw, surroundings) = (&tools.audit, self.surroundings);
        let home = &surroundings.state_home;
        let file = self.place("tools.audit.file", &raw.file, home, "audit.jsonl");
        AuditConfig {
            enabled: raw.enabled || audits_all(&tools.scope),
            keys: secrets.or_else(|| keys(file.as_deref(), surroundings)),
            file_max_bytes: or_unlimited(raw.file_max_bytes),
            retention: DAY * raw.retention_days,
            rows_max: raw.max_rows,
            checkpoint_target: self.checkpoint_target(raw),
            checkpoint_every: self.checkpoint_every(raw),
            file,
        }
    }

    fn checkpoint_target(&mut self, raw: &RawAudit) -> Option<CheckpointTarget> {
        let text = raw.checkpoint_target.trim();
        match (text, text.strip_prefix("file:")) {
            ("", _) => None,
            ("journald", _) => Some(CheckpointTarget::Journald),
            (_, Some(path)) => match self.base().absolute(path) {
                Ok(path) => Some(CheckpointTarget::File(path)),
                Err(message) => {
                    self.merged.problem(TARGET, &message);
                    None
                }
            },
            (url, None) if url.contains("://") => Some(CheckpointTarget::Url(url.to_owned())),
            (other, None) => {
                let shown = one_line(other, SHOWN_CHARS_MAX);
                let message = format!(
                    "`{shown}` is not a target; write \"journald\", \"file:PATH\" or a URL that begins with `https://`"
                );
                self.merged.problem(TARGET, &message);
                None
            }
        }
    }

    pub(super) fn check_checkpoint_url(
        &mut self,
        target: Option<&CheckpointTarget>,
        egress: &EgressSettings,
    ) {
        if let Some(CheckpointTarget::Url(url)) = target
            && let Some(problem) = url_problem(url, egress)
        {
            self.merged.problem(TARGET, &problem);
        }
    }

    fn checkpoint_every(&mut self, raw: &RawAudit) -> Option<CheckpointInterval> {
        let text = raw.checkpoint_every.trim();
        if text.is_empty() {
            return None;
        }
        let interval = interval(text);
        if interval.is_none() {
            let shown = one_line(text, SHOWN_CHARS_MAX);
            let message = format!(
                "`{shown}` is not an interval; write a number of records such as \"1000\", or a time such as \"30s\", \"10m\" or \"1h\""
            );
            self.merged.problem(EVERY, &message);
        } else if raw.checkpoint_target.trim().is_empty() {
            let message = format!("`{TARGET}` is empty; set where checkpoints go");
            self.merged.problem(EVERY, &message);
        }
        interval
    }
}

/// Whether the scope wants every call recorded, whatever the audit says.
fn audits_all(scope: &RawScope) -> bool {
    scope.enabled && scope.audit_all_invocations
}

/// `1000`, `30s`, `10m`, `1h`, `1d`.
fn interval(text: &str) -> Option<CheckpointInterval> {
    let (digits, seconds) = match text.split_at_checked(text.len() - 1)? {
        (digits, "s") => (digits, 1),
        (digits, "m") => (digits, 60),
        (digits, "h") => (digits, 3_600),
        (digits, "d") => (digits, 86_400),
        _ => (text, 0),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|n| *n > 0 && is_plain)?;
    match seconds {
        0 => (number <= RECORDS_MAX).then_some(CheckpointInterval::Records(number)),
        _ => {
            let seconds = number.checked_mul(seconds)?;
            let is_short = seconds <= SECONDS_MAX;
            is_short.then(|| CheckpointInterval::Time(Duration::from_secs(seconds)))
        }
    }
}
