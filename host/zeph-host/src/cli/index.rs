//! `zeph-host index`: reads a project for code search, and has vectors made of its parts where an embedder is granted. It is a call of
//! `search_code` without a query, decided and recorded like any other, made again until nothing is left to do.

use serde_json::{Value, json};
use zeph_core::call::ToolRequest;
use zeph_core::output::Outcome;
use zeph_core::text::counted;
use zeph_engine::{Listener, Progress};

use super::args::Index;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::calls::CallReport;
use crate::host::Host;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::one::{self, SingleCallEnd, Watching};
use crate::session::Session;

/// The tool that owns the index.
const TOOL: &str = "search_code";

/// Its plugin.
const PLUGIN: &str = "search";

/// Reports of progress that may wait to be told.
const REPORTS_MAX: usize = 16;

/// Runs the command.
pub(super) fn run(context: &Context, options: &Index) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        let host = context.start_for(config, TOOL, options.status).await?;
        let session = host.open_session(None, context.operator()?).await?;
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let end = until_read(&host, &session, options, &mut interrupts).await;
        host.keep_plugins();
        match end? {
            Ok(state) => {
                if let Some(hint) = ungranted(&host, &state) {
                    out::remark(&hint);
                }
                shown(&state, options)
            }
            Err(exit) => Ok(exit),
        }
    })
}

/// Calls the tool until it has read everything, or comes no further.
async fn until_read(
    host: &Host,
    session: &Session,
    options: &Index,
    interrupts: &mut Interrupts,
) -> Result<Result<Value, Exit>, CliError> {
    let mut n_pending = u64::MAX;
    loop {
        let arguments = json!({ "query": "", "path": options.path, "refresh": !options.status });
        let request = one::typed(TOOL, arguments);
        let called = watched(host, session, request, interrupts).await;
        let Some(report) = &called.report else {
            let interruption = called.interruption.unwrap_or(Interruption::Interrupt);
            return Ok(Err(Exit::Interrupted(interruption)));
        };
        let mut has_notes = false;
        for note in notes(report) {
            out::remark(note);
            has_notes = true;
        }
        let Some(state) = state(report) else {
            out::remark(&report.output.text);
            return Ok(Err(Exit::of(&report.output.outcome)));
        };
        let files_left = state["pending"].as_u64().unwrap_or_default();
        let parts_left = state["semantic"]["pending"].as_u64().unwrap_or_default();
        let left = files_left + parts_left;
        if options.status || has_notes || left == 0 || left >= n_pending {
            return Ok(Ok(state));
        }
        n_pending = left;
        if files_left > 0 {
            out::remark(&format!(
                "{} read, {files_left} to go",
                counted(state["files"].as_u64().unwrap_or_default(), "file", "files")
            ));
        }
        if parts_left > 0 {
            let embedded = parts(&state["semantic"]["embedded"]);
            out::remark(&format!("{embedded} embedded, {parts_left} to go"));
        }
    }
}

/// Makes the call, and tells on standard error how it is getting on.
async fn watched(
    host: &Host,
    session: &Session,
    request: ToolRequest,
    interrupts: &mut Interrupts,
) -> SingleCallEnd {
    let (sender, mut reports) = tokio::sync::mpsc::channel(REPORTS_MAX);
    let watching = Watching {
        listener: Some(Listener::new(sender)),
        on_output: None,
    };
    let call = one::call(host, session, request, watching, interrupts);
    tokio::pin!(call);
    loop {
        tokio::select! {
            called = &mut call => return called,
            Some(report) = reports.recv() => told(&report),
        }
    }
}

fn told(report: &Progress) {
    let Progress {
        message,
        completed,
        total,
    } = report;
    match (completed, total) {
        (Some(completed), Some(total)) => {
            let unit = match message.as_str() {
                "embedding" => "parts",
                _ => "files",
            };
            out::remark(&format!("{message}: {completed} of {total} {unit}"));
        }
        _ => out::remark(message),
    }
}

/// What the tool says of its index; none when it failed.
fn state(report: &CallReport) -> Option<Value> {
    match &report.output.outcome {
        Outcome::Done => Some(report.output.structured.as_ref()?["index"].clone()),
        _ => None,
    }
}

/// Why something of the index could not be made.
fn notes(report: &CallReport) -> impl Iterator<Item = &str> {
    let structured = report.output.structured.as_ref();
    let notes = structured.and_then(|structured| structured["notes"].as_array());
    notes.into_iter().flatten().filter_map(Value::as_str)
}

/// How search by meaning is switched on where a model for it is configured.
fn ungranted(host: &Host, state: &Value) -> Option<String> {
    let embeddings = host.embeddings().filter(|_| state["semantic"].is_null())?;
    Some(format!(
        "Search by meaning is off: to send parts of the code to `{provider}`, run `zeph-host plugin grant {PLUGIN} --embedder {provider}`.",
        provider = embeddings.provider()
    ))
}

fn shown(state: &Value, options: &Index) -> Result<Exit, CliError> {
    if options.json.json {
        out::json(state)?;
        return Ok(Exit::Success);
    }
    let Value::Object(state) = state else {
        return Ok(Exit::Success);
    };
    let count = |name: &str| state.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut line = counted(count("files"), "file indexed", "files indexed");
    for (name, words) in [
        ("updated", "read now"),
        ("pending", "changed since they were read"),
        ("skipped", "too large"),
    ] {
        if count(name) > 0 {
            line += &format!(", {} {words}", count(name));
        }
    }
    if let Some(semantic) = state.get("semantic") {
        let embedder = semantic["embedder"].as_str().unwrap_or_default();
        line += &format!("; {} embedded by {embedder}", parts(&semantic["embedded"]));
        if semantic["pending"] != 0 {
            line += &format!(", {} without a vector", semantic["pending"]);
        }
    }
    out::data(&format!("{line}\n"))?;
    Ok(Exit::Success)
}

/// So many parts of files, by the state of the index.
fn parts(number: &Value) -> String {
    counted(number.as_u64().unwrap_or_default(), "part", "parts")
}
