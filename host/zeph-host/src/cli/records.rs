//! What the commands that read records of calls print alike.

use serde_json::{Value, json};
use zeph_core::failure::one_line;
use zeph_core::text::counted;
use zeph_plugins::visible::visible_line;

use super::error::CliError;
use crate::recording::RecordError;
use crate::run::page::Page;
use crate::suggestion::siblings::UnseenSiblings;

/// A record file that cannot be used, as an error of the command.
pub(super) fn unusable(error: RecordError) -> CliError {
    let problem = error.to_string();
    match error {
        RecordError::Read(_, source) => CliError::user(problem).because(source),
        RecordError::Version { .. } => CliError::user(problem)
            .hint("another version of zeph-host wrote it; use that one, or record anew"),
    }
}

/// `1 call`, `3 calls`
pub(super) fn calls(number: u64) -> String {
    counted(number, "call", "calls")
}

/// What suggested directories hold besides what was used.
pub(super) fn siblings(page: &mut Page, unseen: &[UnseenSiblings]) {
    if unseen.is_empty() {
        return;
    }
    page.line(0, "these directories hold more than the calls used:");
    for one in unseen {
        page.line(
            1,
            &format!("{} ({} not used)", one.directory.display(), one.total),
        );
        let names: Vec<String> = one.names.iter().map(|name| one_line(name, 200)).collect();
        let more = match one.total - one.names.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        page.dim(2, &format!("{}{more}", names.join(", ")));
    }
}

/// What calls tried there and were refused.
pub(super) fn denied(page: &mut Page, denied: &[(String, String)]) {
    if denied.is_empty() {
        return;
    }
    page.line(0, "calls tried these and were refused:");
    for (path, rights) in denied {
        page.line(1, &format!("{}: {rights}", one_line(path, 400)));
    }
}

/// `[{"path", "rights"}]`
pub(super) fn denied_json(denied: &[(String, String)]) -> Value {
    let denied = denied.iter();
    denied
        .map(|(path, rights)| json!({ "path": path, "rights": rights }))
        .collect()
}

/// A line to be pasted into a shell or a file: it is not wrapped.
pub(super) fn pasted(page: &mut Page, depth: usize, text: &str) {
    let text = visible_line(text);
    page.push(&format!("{:1$}{text}\n", "", depth * 2));
}
