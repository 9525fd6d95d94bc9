//! Commands of the operator that run when something has happened: a command changed its directory, a tool changed files.
//!
//! They run in the jail, in the directory of the turn, but with nothing else of it: what a model exported is not given to them.
//! One that fails leaves a note, unless its configuration has it fail the call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::exit::CommandExit;
use zeph_core::failure::{ToolFailure, one_line};

use crate::run::Cause;
use crate::shell::job::{CommandJob, CommandResult, JobFault, context_variables};
use crate::shell::{Shell, ShellEnd, ShellSession};
use crate::turn::Turn;

/// Files that one hook is told of; one that formats does not need more names.
const PATHS_MAX: usize = 1_000;

/// Most bytes of the list of changed files.
const PATHS_BYTES_MAX: usize = 64 * 1024;

/// Most characters of what a failed hook printed.
const SAID_CHARS_MAX: usize = 300;

/// The hooks of a configuration, each in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// `hooks.cwd_changed`
    pub cwd_changed: Vec<ShellHook>,
    /// `hooks.file_changed`
    pub file_changed: Vec<ShellHook>,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellHook {
    /// A command line.
    pub command: String,
    /// Globs over absolute paths of the files it is for; empty means any. For `file_changed` only.
    pub paths: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// What it means when it fails.
    pub on_failure: OnFailure,
}

/// What changed, for the hooks of `file_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedFiles {
    /// Absolute paths.
    pub paths: Vec<PathBuf>,
    /// Why that may not be all, in a sentence.
    pub missed: Option<String>,
}

/// The files that the hooks of `file_changed` are for, as many as each is told of.
#[derive(Debug)]
pub struct FilePicks(Vec<(Option<GlobSet>, usize)>);

impl FilePicks {
    /// Whether a hook is for the file of this path and has not got enough of them.
    pub fn takes(&mut self, path: &Path) -> bool {
        let mut is_taken = false;
        for (globs, n_left) in &mut self.0 {
            let is_for = globs.as_ref().is_none_or(|globs| globs.is_match(path));
            if is_for && *n_left > 0 {
                *n_left -= 1;
                is_taken = true;
            }
        }
        is_taken
    }
}

/// What it means that a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The call gets a note.
    Note,
    /// The call fails (`fail_closed = true`).
    FailClosed,
}

/// What came of the hooks of one event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookReport {
    /// What the caller should know, one sentence each.
    pub notes: Vec<String>,
    /// Why the call fails, if it does. The hooks after that one did not run.
    pub failure: Option<ToolFailure>,
}

impl Shell {
    /// The files that a search for changes is after.
    pub fn file_picks(&self) -> FilePicks {
        let hooks = self.config().hooks.file_changed.iter();
        FilePicks(hooks.map(|hook| (hook.globs(), PATHS_MAX)).collect())
    }

    /// Runs the hooks for files that a tool changed, each that is for any of them: `ZEPH_CHANGED_PATH` is the first it is for,
    /// `ZEPH_CHANGED_PATHS` all, one on a line, as far as 64 KiB hold them. Where files may have been missed, no hook fails open.
    pub async fn files_changed(
        &self,
        session: &ShellSession,
        changed: &ChangedFiles,
    ) -> HookReport {
        let mut report = HookReport::default();
        if let Some(missed) = &changed.missed {
            let message = format!("hooks `file_changed` may have missed files: {missed}");
            let mut hooks = self.config().hooks.file_changed.iter();
            if hooks.any(|hook| hook.on_failure == OnFailure::FailClosed) {
                report.failure = Some(failed(message));
                return report;
            }
            report.notes.push(message);
        }
        for hook in &self.config().hooks.file_changed {
            let paths = hook.picks(&changed.paths);
            let Some(first) = paths.first() else {
                continue;
            };
            let variables = [
                ("ZEPH_CHANGED_PATH", first.to_string_lossy().into_owned()),
                ("ZEPH_CHANGED_PATHS", lines(&paths)),
            ];
            let hook = std::slice::from_ref(hook);
            let ran = self
                .run_hooks("file_changed", hook, session, variables)
                .await;
            report.notes.extend(ran.notes);
            if ran.failure.is_some() {
                report.failure = ran.failure;
                return report;
            }
        }
        report
    }

    /// Runs the hooks for a directory that a command changed, and lets the call fail when one of them says so: then the
    /// directory is what it was.
    pub(crate) async fn directory_changed(
        &self,
        session: &ShellSession,
        mut end: ShellEnd,
    ) -> ShellEnd {
        let hooks = &self.config().hooks.cwd_changed;
        let Some((old, new)) = end.changed_directory.clone() else {
            return end;
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let variables = [("ZEPH_OLD_CWD", text(&old)), ("ZEPH_NEW_CWD", text(&new))];
        let report = self
            .run_hooks("cwd_changed", hooks, session, variables)
            .await;
        end.notes.extend(report.notes);
        if let Some(failure) = report.failure {
            session.set_directory(&old);
            end.changed_directory = None;
            end.partial = match std::mem::replace(&mut end.result, Err(failure)) {
                Ok(raw) => Some(raw),
                Err(_) => end.partial,
            };
        }
        end
    }

    async fn run_hooks<const N: usize>(
        &self,
        event: &str,
        hooks: &[ShellHook],
        session: &ShellSession,
        variables: [(&str, String); N],
    ) -> HookReport {
        let mut report = HookReport::default();
        for hook in hooks {
            let context = session.context();
            let mut exports = match self.config().enable_execution_context {
                true => context_variables(&context),
                false => BTreeMap::new(),
            };
            for (name, value) in &variables {
                exports.insert((*name).to_owned(), value.clone());
            }
            let command = CommandJob {
                text: hook.command.clone(),
                turn: Turn::new(context, session.directory()),
                exports,
                timeout: hook.timeout,
                listener: None,
                network: Arc::default(),
                ahead: None,
                running: None,
                turn_state: None,
            };
            let mut finished = self.run(command, Box::pin(std::future::pending())).await;
            report.notes.extend(take_findings(&mut finished));
            let Some(wrong) = what_is_wrong(finished) else {
                continue;
            };
            let message = format!("the hook `{event}` failed: {wrong}");
            match hook.on_failure {
                OnFailure::Note => report.notes.push(message),
                OnFailure::FailClosed => {
                    report.failure = Some(failed(message));
                    return report;
                }
            }
        }
        report
    }
}

impl ShellHook {
    /// The paths it is for.
    fn picks<'a>(&self, paths: &'a [PathBuf]) -> Vec<&'a Path> {
        let globs = self.globs();
        let is_for = |path: &&Path| globs.as_ref().is_none_or(|globs| globs.is_match(path));
        paths.iter().map(PathBuf::as_path).filter(is_for).collect()
    }

    /// None when it is for every file.
    fn globs(&self) -> Option<GlobSet> {
        if self.paths.is_empty() {
            return None;
        }
        let mut globs = GlobSetBuilder::new();
        for glob in &self.paths {
            // They were compiled when the configuration was read.
            if let Ok(glob) = Glob::new(glob) {
                globs.add(glob);
            }
        }
        Some(globs.build().unwrap_or_default())
    }
}

fn failed(message: String) -> ToolFailure {
    let category = ErrorCategory::PermanentFailure;
    ToolFailure::new(category, ErrorPhase::Execution, message)
}

/// One path on a line, as many as fit.
fn lines(paths: &[&Path]) -> String {
    let mut lines = String::new();
    for path in paths {
        let line = path.to_string_lossy();
        if lines.len() + line.len() >= PATHS_BYTES_MAX {
            break;
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

/// What the jail found, and what of the network was refused.
fn take_findings(finished: &mut Result<Option<CommandResult>, JobFault>) -> Vec<String> {
    match finished {
        Ok(Some(finished)) => std::mem::take(&mut finished.findings),
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// One sentence about a hook that did not do well.
fn what_is_wrong(finished: Result<Option<CommandResult>, JobFault>) -> Option<String> {
    let finished = match finished {
        Ok(Some(finished)) => finished,
        Ok(None) => return Some("it was cancelled".to_owned()),
        Err(fault) => return Some(fault.to_string()),
    };
    let how = match (finished.cause, finished.exit) {
        (Cause::Exited, CommandExit::Code(0)) => return None,
        (Cause::Exited, CommandExit::Code(code)) => format!("exit code {code}"),
        (Cause::TimedOut, _) => "it took too long".to_owned(),
        _ => "it was killed".to_owned(),
    };
    let said = one_line(&finished.captured.text, SAID_CHARS_MAX);
    Some(if said.is_empty() {
        how
    } else {
        format!("{how}, {said}")
    })
}
