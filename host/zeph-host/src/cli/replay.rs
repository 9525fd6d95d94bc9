//! `zeph-host replay`: makes a recorded call again and compares what came of it.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use zeph_config::Config;
use zeph_core::call::ToolRequest;
use zeph_core::id::CallId;
use zeph_core::redact::Redactor;
use zeph_core::text::counted;

use super::args::Replay;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use super::revoke::CALL_IDS;
use super::{out, records};
use crate::calls::{CallControl, CallReport};
use crate::host::Host;
use crate::recording::{
    self, CallRecord, FileUseName, RecordLine, RecordLines, RecordedDecision, RecordedFile,
    RecordedOutcome, Recorder,
};
use crate::replay::{ReplayTerms, obstacle};
use crate::run::page::Page;

/// Names of the temporary directory: the record of the replay, and the copies.
const RECORD: &str = "record.jsonl";
const COPIES: &str = "files";

/// A call and its repetition.
struct Comparison {
    before: CallRecord,
    after: CallRecord,
    on_copies: bool,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &Replay) -> Result<Exit, CliError> {
    let (call, before) = recorded(context, options)?;
    if let Some(reason) = obstacle(&before) {
        return Err(cannot(call, &reason));
    }
    let mut config = context.config()?;
    // What the operator has run when files change is not for copies.
    config.hooks.file_changed = Vec::new();
    let directory = TempDir::with_prefix("zeph-replay-")
        .map_err(|error| CliError::internal("there is no temporary directory").because(error))?;
    context::block_on(async {
        let (report, after) = again(context, config, (call, &before), directory.path()).await?;
        if after.decision != RecordedDecision::Allow {
            let reason = report.failure().map(|failure| failure.message.clone());
            let reason = reason.unwrap_or_default();
            out::note(&format!("call {call} is not allowed now: {reason}"));
            return Ok(Exit::Refused);
        }
        let comparison = Comparison {
            on_copies: before.files.iter().any(is_changed),
            before,
            after,
        };
        match options.json.json {
            true => print_json(&comparison.json())?,
            false => comparison.page().print()?,
        }
        Ok(match comparison.is_same_result() {
            true => Exit::Success,
            false => Exit::Failure,
        })
    })
}

/// The call that is meant and its record, the last when there are several.
fn recorded(context: &Context, options: &Replay) -> Result<(CallId, CallRecord), CliError> {
    let path = context.surroundings.working_directory.join(&options.from);
    let mut lines = RecordLines::open(&path).map_err(records::unusable)?;
    let mut found: Option<CallRecord> = None;
    while let Some(line) = lines.next().map_err(records::unusable)? {
        let RecordLine::Call(record) = line else {
            continue;
        };
        if !record.call_id.starts_with(options.call.as_str()) {
            continue;
        }
        if found
            .as_ref()
            .is_some_and(|found| found.call_id != record.call_id)
        {
            let message = format!(
                "`{}` has several calls whose ID begins with `{}`; write more of it",
                options.from.display(),
                options.call
            );
            return Err(CliError::user(message).hint(CALL_IDS));
        }
        found = Some(*record);
    }
    let call = found.as_ref().and_then(|found| found.call_id.parse().ok());
    call.zip(found).ok_or_else(|| {
        let message = format!(
            "`{}` has no record of call {}",
            options.from.display(),
            options.call
        );
        CliError::user(message).hint(CALL_IDS)
    })
}

/// Makes the call again; gives its report and its record.
async fn again(
    context: &Context,
    config: Config,
    (call, before): (CallId, &CallRecord),
    directory: &Path,
) -> Result<(CallReport, CallRecord), CliError> {
    let unusable =
        |error| CliError::internal("the temporary directory cannot be used").because(error);
    let directory = directory.canonicalize().map_err(unusable)?;
    let terms = ReplayTerms::of(before, directory.join(COPIES));
    let file = directory.join(RECORD);
    let recorder = Arc::new(Recorder::open(&file).map_err(unusable)?);
    let host = context
        .start_to_replay(config, terms.clone(), recorder)
        .await?;
    host.settled().await;
    is_same_plugin(&host, before).map_err(|reason| cannot(call, &reason))?;
    let arguments = arguments(&host, call, before).await?;
    let request = ToolRequest {
        tool: before.tool.clone(),
        arguments,
        answers: None,
    };
    let session = host.open_session(None, context.operator()?).await?;
    let report = host.call(&session, request, CallControl::default()).await;
    let mut lines = RecordLines::open(&file).map_err(records::unusable)?;
    let Some(RecordLine::Call(record)) = lines.next().map_err(records::unusable)? else {
        return Err(CliError::internal("the repeated call was not recorded"));
    };
    let mut record = *record;
    if let Some(copy) = &terms.copy {
        for file in &mut record.files {
            file.root = copy.real(&file.root);
        }
    }
    Ok((report, record))
}

/// Whether the plugin is still the one that was recorded.
///
/// Errors: why not, in a sentence.
fn is_same_plugin(host: &Host, before: &CallRecord) -> Result<(), String> {
    let catalog = host.catalog();
    let tool = catalog.resolve(&before.tool);
    let tool = tool.map_err(|_| format!("there is no tool `{}` now", before.tool))?;
    let set = host.plugins();
    let now = set
        .plugin(&tool.backend)
        .map(|plugin| plugin.plugin().digest().to_string());
    let owner = before.owner.as_ref().and_then(|owner| owner.digest.clone());
    match now == owner && now.is_some() {
        true => Ok(()),
        false => Err(format!(
            "the plugin behind `{}` is another one now (its digest differs)",
            before.tool
        )),
    }
}

/// The arguments of the call, when the audit has them in full.
async fn arguments(host: &Host, call: CallId, before: &CallRecord) -> Result<Value, CliError> {
    let recorded = host.store().audit_record(call).await?;
    let Some(recorded) = recorded else {
        return Err(cannot(
            call,
            "the audit has no record of it, which holds its arguments",
        ));
    };
    let is_whole = |arguments: &Value| {
        recording::arguments_digest(arguments, &Redactor::default()) == before.arguments_sha256
    };
    let of_audit = serde_json::from_str(&recorded.begin.command).ok();
    let arguments = match of_audit.filter(is_whole) {
        Some(arguments) => Some(arguments),
        None => stored_arguments(host, before).await?.filter(is_whole),
    };
    arguments.ok_or_else(|| {
        cannot(
            call,
            "its arguments are not kept whole: they are longer than 1 MiB, the stored output with them was deleted, or the record is of another call",
        )
    })
}

/// The arguments that were stored because they are too long for the audit.
async fn stored_arguments(host: &Host, before: &CallRecord) -> Result<Option<Value>, CliError> {
    let id = before.arguments_id.as_ref().and_then(|id| id.parse().ok());
    let (Some(id), Ok(conversation)) = (id, before.conversation_id.parse()) else {
        return Ok(None);
    };
    let stored = host.store().overflow(conversation, id).await?;
    Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn cannot(call: CallId, reason: &str) -> CliError {
    CliError::user(format!("call {call} cannot be replayed: {reason}"))
}

fn is_changed(file: &RecordedFile) -> bool {
    let changes = [
        FileUseName::Write,
        FileUseName::Create,
        FileUseName::Delete,
        FileUseName::Temporary,
    ];
    file.uses.iter().any(|used| changes.contains(used))
}

fn outcome(record: &CallRecord) -> String {
    match (record.outcome, &record.category) {
        (RecordedOutcome::Ok, _) => "ok".to_owned(),
        (RecordedOutcome::Failed, Some(category)) => format!("failed ({category})"),
        (RecordedOutcome::Failed, None) => "failed".to_owned(),
    }
}

/// Each file on a line.
fn files(record: &CallRecord) -> Vec<String> {
    let line = |file: &RecordedFile| {
        let uses: Vec<String> = file
            .uses
            .iter()
            .map(|used| format!("{used:?}").to_lowercase())
            .collect();
        let path = Path::new(&file.root).join(&file.path);
        format!("{}: {}", path.display(), uses.join(", "))
    };
    record.files.iter().map(line).collect()
}

impl Comparison {
    fn is_same_result(&self) -> bool {
        self.before.result_sha256 == self.after.result_sha256
            && self.before.outcome == self.after.outcome
            && self.before.category == self.after.category
    }

    /// Files with `-` that only the first call used, and with `+` that only the second did.
    fn file_lines(&self) -> Vec<String> {
        let (before, after) = (files(&self.before), files(&self.after));
        let gone = before.iter().filter(|line| !after.contains(line));
        let new = after.iter().filter(|line| !before.contains(line));
        let gone = gone.map(|line| format!("- {line}"));
        gone.chain(new.map(|line| format!("+ {line}"))).collect()
    }

    fn notes(&self) -> Vec<String> {
        let copied = "it ran on copies of the files as they are now; what they held at the time of the call is not recorded";
        let notes = self.on_copies.then(|| copied.to_owned());
        notes.into_iter().collect()
    }

    fn json(&self) -> Value {
        json!({
            "call_id": self.before.call_id,
            "replay_id": self.after.call_id,
            "same_result": self.is_same_result(),
            "same_files": self.file_lines().is_empty(),
            "outcome": { "before": outcome(&self.before), "after": outcome(&self.after) },
            "result_bytes": { "before": self.before.result_bytes, "after": self.after.result_bytes },
            "result_sha256": { "before": self.before.result_sha256, "after": self.after.result_sha256 },
            "duration_ms": { "before": self.before.duration_ms, "after": self.after.duration_ms },
            "files": self.file_lines(),
            "on_copies": self.on_copies,
            "notes": self.notes(),
        })
    }

    fn page(&self) -> Page {
        let (before, after) = (&self.before, &self.after);
        let mut page = Page::new();
        let verdict = match self.is_same_result() {
            true => "the same result",
            false => "another result",
        };
        page.name(0, &before.tool, verdict);
        let changed = |before: String, after: String| match before == after {
            true => before,
            false => format!("{before}, now {after}"),
        };
        page.field("outcome", Some(&changed(outcome(before), outcome(after))));
        let bytes = |record: &CallRecord| {
            let digest: String = record.result_sha256.chars().take(12).collect();
            let bytes = counted(record.result_bytes, "byte", "bytes");
            format!("{bytes} (sha256 {digest}…)")
        };
        page.field("result", Some(&changed(bytes(before), bytes(after))));
        let duration = format!("{} ms, now {} ms", before.duration_ms, after.duration_ms);
        page.field("duration", Some(&duration));
        let lines = self.file_lines();
        let used = match lines.is_empty() {
            true => format!("the same {}", before.files.len()),
            false => "others".to_owned(),
        };
        page.field("files", Some(&used));
        for line in lines {
            page.line(1, &line);
        }
        for note in self.notes() {
            page.dim(0, &note);
        }
        page
    }
}
