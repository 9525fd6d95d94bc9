//! How a call that waits for a person looks to that person. Pure.
//!
//! Everything in it may be the words of a model: each character is visible, and no line of it can pass for one of ours.

use clap::builder::styling::Style;
use serde_json::{Map, Value};
use zeph_plugins::refusal::quoted;
use zeph_plugins::visible::visible_line;
use zeph_store::{Agreement, ApprovalRequest, ShownCall, StoredApproval};

use super::page::Page;
use super::render::{BOLD, YELLOW};
use super::table;

/// What would run: the tool, where, and every argument on lines of its own.
pub(crate) fn call(call: &ShownCall, width: Option<usize>) -> Page {
    let mut page = Page::of_width(width);
    let place = call.directory.as_ref().map(|path| format!("in {path}"));
    page.name(0, call.tool.as_str(), &place.unwrap_or_default());
    match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(arguments) if arguments.is_empty() => {
            page.dim(1, "without arguments");
        }
        Ok(arguments) => {
            for (key, value) in &arguments {
                page.styled(1, BOLD, key);
                argument(&mut page, value);
            }
        }
        // Only the head of it was kept.
        Err(_) => {
            page.line(2, &call.arguments);
        }
    }
    let objects = call.objects.iter().flat_map(|objects| &objects.paths);
    for path in objects {
        let path = visible_line(path);
        page.styled(
            1,
            YELLOW,
            &format!("may change `{path}`, which programs obey without asking"),
        );
    }
    if !call.is_whole() {
        let n_bytes = call.arguments.len();
        let rest = format!(
            "only the first {n_bytes} of {} bytes can be shown; the rest runs too",
            call.arguments_bytes
        );
        page.styled(1, YELLOW, &rest);
    }
    page
}

/// Why it asks, and the rules that would let such calls run.
pub(crate) fn why(page: &mut Page, reason: &str, rules: &[String]) {
    page.line(0, &format!("It asks because: {reason}"));
    if !rules.is_empty() {
        page.dim(0, &format!("Such calls run with: {}", flags(rules)));
    }
}

/// `--allow A --allow B`, for a shell.
pub(crate) fn flags(rules: &[String]) -> String {
    let flags = rules.iter().map(|rule| format!("--allow {}", quoted(rule)));
    flags.collect::<Vec<String>>().join(" ")
}

/// A call on one line, for lists; or the rules that were approved in its place.
pub(crate) fn one_line(call: &ShownCall) -> String {
    if let Some(rules) = &call.rules {
        return visible_line(&format!("all of {}", rules.texts.join(", ")));
    }
    let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments);
    let only = arguments.as_ref().ok().and_then(|arguments| {
        let command = arguments.get("command").or_else(|| arguments.get("path"))?;
        command.as_str()
    });
    visible_line(only.unwrap_or(&call.arguments))
}

/// What waits and what was approved, as tables.
pub(crate) fn list(
    requests: &[ApprovalRequest],
    approvals: &[StoredApproval],
    now_ms: i64,
    width: Option<usize>,
) -> Page {
    let mut page = Page::of_width(width);
    if requests.is_empty() && approvals.is_empty() {
        page.line(0, "no call waits for approval, and none was approved");
        return page;
    }
    if !requests.is_empty() {
        page.head("WAITING");
        let first = requests.first().map(|request| &request.call.directory);
        let is_anywhere = requests
            .iter()
            .any(|request| Some(&request.call.directory) != first);
        let rows: Vec<[String; 4]> = requests
            .iter()
            .map(|request| request_row(request, is_anywhere, now_ms))
            .collect();
        page.push(&table::render(
            ["ID", "TOOL", "ASKED", "CALL"],
            &rows,
            width,
        ));
    }
    if !approvals.is_empty() {
        page.head("APPROVED");
        let rows: Vec<[String; 6]> = approvals
            .iter()
            .map(|approval| approval_row(approval, now_ms))
            .collect();
        let head = ["ID", "TOOL", "FOR", "SINCE", "BY", "CALL"];
        page.push(&table::render(head, &rows, width));
    }
    page
}

/// Where calls of several directories wait, each says of which it is.
fn request_row(request: &ApprovalRequest, is_anywhere: bool, now_ms: i64) -> [String; 4] {
    let place = request.call.directory.as_deref().filter(|_| is_anywhere);
    let place = place.map(|path| visible_line(&format!("  (in {path})")));
    [
        request.id.to_string(),
        request.call.tool.to_string(),
        ago(now_ms - request.at_ms),
        one_line(&request.call) + &place.unwrap_or_default(),
    ]
}

fn approval_row(approval: &StoredApproval, now_ms: i64) -> [String; 6] {
    [
        approval.id.to_string(),
        approval.call.tool.to_string(),
        approval.lifetime.label().to_owned(),
        ago(now_ms - approval.approved_at_ms),
        approval.agreement.as_ref().map(by).unwrap_or_default(),
        one_line(&approval.call),
    ]
}

/// Who agreed, and how.
pub(crate) fn by(agreement: &Agreement) -> String {
    let who = agreement.who.as_deref().unwrap_or_default();
    let client = agreement.client.as_deref();
    let how = client.unwrap_or_else(|| agreement.how.label());
    visible_line(format!("{who} ({how})").trim_start())
}

/// How long ago, in the largest unit that fits.
fn ago(ms: i64) -> String {
    let seconds = (ms / 1000).max(0);
    let (n, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{n} {unit} ago")
}

/// Text keeps its lines; the rest is JSON.
fn argument(page: &mut Page, value: &Value) {
    let Value::String(text) = value else {
        page.line(2, &value.to_string());
        return;
    };
    if text.is_empty() {
        page.dim(2, "(empty)");
    }
    // Split at line feeds only: a carriage return must be seen.
    for line in text.split('\n') {
        page.styled(2, Style::new(), line);
    }
}

#[cfg(test)]
mod tests;
