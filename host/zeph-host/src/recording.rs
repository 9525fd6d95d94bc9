//! What calls really used, as lines of a file: `--record FILE`, and what is made of it (`suggestion`, `replay`).
//!
//! A record tells names, never contents; secrets that the host knows are removed. It is written when the call has ended. A file that cannot be
//! written any more is reported once, and calls go on: nothing is decided by it.

mod file;
mod record;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::command::{CommandLine, Wraps};
use zeph_core::execution::Execution;
use zeph_core::failure::one_line;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::policy::{AuthorizedCall, Decision};
use zeph_core::redact::Redactor;
use zeph_engine::MissingGrant;
use zeph_engine::fs::{FileUse, FileUses};
use zeph_plugins::rights::Rights;
use zeph_store::{BeginRecord, Store, canonical};

use self::file::RecordFile;
use crate::audit::Audit;
use crate::clock::now_ms;
use crate::guest::GuestUses;
use crate::host::Rooms;
use crate::offers::Offer;
use crate::path;
use crate::work::Work;

pub(crate) use self::file::{RecordError, RecordLine, RecordLines};
pub(crate) use self::record::{
    CallRecord, FileUseName, OwnerKind, RecordedDecision, RecordedFile, RecordedHost,
    RecordedOutcome, RecordedOwner,
};
use self::record::{RecordedDirectory, RefusedPath, VERSION};

/// Most lists of words of one call, and most words of one of them.
const WORDS_MAX: usize = 64;

/// Most characters of a word, a name or a rule.
const TEXT_CHARS_MAX: usize = 256;

/// Most characters of a path.
const PATH_CHARS_MAX: usize = 4_096;

/// Most of what else is listed of a call.
const LISTED_MAX: usize = 256;

/// Most bytes of arguments that are kept for a call to be made again.
const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// Appends what calls used to a file.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: RecordFile,
    has_failed: AtomicBool,
}

/// The record of a call that has not ended yet.
#[derive(Debug)]
pub(crate) struct OpenCall {
    recorder: Arc<Recorder>,
    draft: BeginRecord,
    /// As JSON, where the audit does not hold them whole.
    arguments: Option<String>,
    redactor: Redactor,
    record: CallRecord,
}

impl Recorder {
    /// Opens or makes the file.
    ///
    /// Errors: it cannot be written, is no regular file, or other users have access to it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: RecordFile::open(path)?,
            has_failed: AtomicBool::new(false),
        })
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Begins the record of a call.
    pub(crate) fn begin(
        self: &Arc<Self>,
        host: &Rooms,
        frame: &CallFrame,
        request: &ToolRequest,
    ) -> OpenCall {
        let redactor = host.secrets.redactor();
        let draft = host.audit.draft(frame, request, &redactor);
        let record = CallRecord {
            version: VERSION,
            call_id: frame.id.to_string(),
            at_ms: frame.started_ms,
            conversation_id: frame.conversation.to_string(),
            tool: draft.tool.clone(),
            owner: None,
            decision: RecordedDecision::Invalid,
            rule: None,
            untrusted: false,
            arguments_sha256: arguments_digest(&request.arguments, &redactor),
            arguments_id: None,
            paths: named_paths(host, request, &redactor),
            files: Vec::new(),
            refused: Vec::new(),
            hosts: Vec::new(),
            variables: Vec::new(),
            programs: Vec::new(),
            embedders: Vec::new(),
            tools: Vec::new(),
            commands: Vec::new(),
            directories: Vec::new(),
            limits: Vec::new(),
            outcome: RecordedOutcome::Failed,
            category: None,
            duration_ms: 0,
            result_sha256: String::new(),
            result_bytes: 0,
            omitted: 0,
        };
        let is_whole = serde_json::from_str(&draft.command).is_ok_and(|kept: Value| {
            arguments_digest(&kept, &Redactor::default()) == record.arguments_sha256
        });
        // Those with a secret have no digest, and are not kept.
        let arguments = (!is_whole && record.arguments_sha256.is_some())
            .then(|| request.arguments.to_string())
            .filter(|text| text.len() <= ARGUMENTS_BYTES_MAX);
        OpenCall {
            recorder: Arc::clone(self),
            draft,
            arguments,
            redactor,
            record,
        }
    }

    fn append(&self, record: &CallRecord) {
        let line = serde_json::to_string(record).unwrap_or_default();
        let failed = match line.len() < file::LINE_BYTES_MAX {
            true => self.file.append(&line),
            false => Err(io::Error::other("the record of a call is too long")),
        };
        if let Err(error) = failed
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, file = %self.path().display(), "calls cannot be recorded in the file of `--record`");
        }
    }
}

impl OpenCall {
    /// How the call was decided, and whether its conversation had read content of the network by then.
    pub(crate) fn decided(
        &mut self,
        decision: RecordedDecision,
        rule: Option<&str>,
        is_after_untrusted: bool,
    ) {
        self.record.untrusted = is_after_untrusted;
        self.record.decision = decision;
        self.record.rule = rule.map(|rule| self.clean(rule, TEXT_CHARS_MAX));
    }

    /// What the call that may run holds.
    pub(crate) fn allowed(
        &mut self,
        call: &AuthorizedCall<Work>,
        rights: Option<&Rights>,
        offer: &Offer,
    ) {
        let backend = &call.tool().backend;
        let provider = offer.plugins.plugin(backend);
        Audit::identify(&mut self.draft, call.tool(), provider);
        self.record.tool.clone_from(&self.draft.tool);
        self.record.owner = Some(match call.work() {
            Work::Guest(work) => RecordedOwner {
                kind: OwnerKind::Plugin,
                name: self.draft.plugin.clone(),
                digest: Some(work.digest().to_string()),
            },
            Work::Shell(_) => RecordedOwner::of(OwnerKind::Command),
            Work::Builtin(_) => RecordedOwner::of(OwnerKind::Builtin),
            Work::Delegated(_) => RecordedOwner::of(OwnerKind::Executor),
            Work::Mcp(_) => RecordedOwner {
                kind: OwnerKind::Server,
                name: self.draft.mcp_server_id.clone(),
                digest: offer.owner(backend).map(|digest| digest.to_string()),
            },
        });
        let variables = rights
            .into_iter()
            .flat_map(|rights| &*rights.grant.variables);
        self.record.variables = variables.map(|(name, _)| name.clone()).collect();
        if let Some(line) = call.command() {
            self.record.commands = self.commands(line);
            self.record.paths = self.written(line);
        }
    }

    /// The files that redirections of a command may change, as far as they are known.
    fn written(&self, line: &CommandLine) -> Vec<String> {
        let places = line.redirections.iter().zip(&line.places.redirections);
        let written = places.filter(|(redirection, _)| redirection.writes);
        let paths = written.flat_map(|(_, places)| places.iter().flatten());
        let paths = paths.take(LISTED_MAX);
        paths
            .map(|path| self.clean(&path.to_string_lossy(), PATH_CHARS_MAX))
            .collect()
    }

    fn commands(&self, line: &CommandLine) -> Vec<Vec<String>> {
        let commands = line
            .commands
            .iter()
            .filter(|command| command.wraps != Wraps::Within);
        let words = commands.map(|command| {
            let words = std::iter::once(&command.name).chain(&command.arguments);
            self.words(words)
        });
        words.take(WORDS_MAX).collect()
    }

    fn words<'w>(&self, words: impl IntoIterator<Item = &'w String>) -> Vec<String> {
        let words = words.into_iter().take(WORDS_MAX);
        words.map(|word| self.clean(word, TEXT_CHARS_MAX)).collect()
    }

    /// What the call used, and what came of it before anything is filtered.
    pub(crate) fn ran(&mut self, uses: GuestUses, execution: &Execution) {
        let files = uses.files;
        self.record.omitted = files.n_omitted;
        self.record.files = files.objects.iter().map(|used| self.file(used)).collect();
        for refused in &uses.refused {
            if let MissingGrant::Directory { path, rights } = refused {
                self.record.refused.push(RefusedPath {
                    path: self.clean(path, PATH_CHARS_MAX),
                    rights: rights.to_string(),
                });
            }
        }
        let programs = uses.programs.iter().take(LISTED_MAX);
        self.record.programs = programs.map(|words| self.words(words)).collect();
        self.record.embedders = self.words(&uses.embedders);
        self.record.tools = self.words(&uses.tools);
        let directories = uses.directories.into_iter().take(LISTED_MAX);
        self.record.directories = directories
            .map(|(path, write)| RecordedDirectory {
                path: self.clean(&path.to_string_lossy(), PATH_CHARS_MAX),
                write,
            })
            .collect();
        let facts = &execution.facts;
        let hosts = facts.hosts.iter().take(LISTED_MAX).map(|used| {
            let requests = uses.requests.iter().filter(|sent| sent.host == used.host);
            let mut methods: Vec<String> =
                requests.clone().map(|sent| sent.method.clone()).collect();
            methods.dedup();
            RecordedHost {
                host: self.clean(&used.host, TEXT_CHARS_MAX),
                methods,
                plain_http: requests.clone().any(|sent| sent.plain_http),
                requests: used.n_connections,
                refused: used.n_refused,
            }
        });
        self.record.hosts = hosts.collect();
        let text = result_text(execution, &self.redactor);
        self.record.result_bytes = text.len() as u64;
        self.record.result_sha256 = sha256(text.as_bytes());
    }

    fn file(&self, used: &FileUse) -> RecordedFile {
        let text = |path: &Path| self.clean(&path.to_string_lossy(), PATH_CHARS_MAX);
        RecordedFile {
            root: text(&used.root),
            path: text(&used.path),
            directory: used.is_directory,
            uses: use_names(used.uses),
        }
    }

    /// Writes the record of the call that ended, and stores the arguments that it takes to make it again.
    pub(crate) async fn end(mut self, store: &Store, output: &ToolOutput, duration: Duration) {
        let is_of_plugin = |owner: &RecordedOwner| owner.kind == OwnerKind::Plugin;
        if self.record.owner.as_ref().is_some_and(is_of_plugin)
            && let Some(arguments) = self.arguments.take()
        {
            let conversation = self.draft.conversation_id;
            let kept = store.put_overflow(conversation, arguments, now_ms()).await;
            // Without them the call cannot be made again, and nothing else.
            self.record.arguments_id = kept.ok().map(|id| id.to_string());
        }
        self.record.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        match &output.outcome {
            Outcome::Done => self.record.outcome = RecordedOutcome::Ok,
            Outcome::Failed(failure) => {
                self.record.category = Some(failure.category.to_string());
                self.record.limits = limits_in(&failure.message);
            }
        }
        self.recorder.append(&self.record);
    }

    /// `text` without secrets, cut.
    fn clean(&self, text: &str, chars_max: usize) -> String {
        let mut text: String = text.chars().take(chars_max).collect();
        self.redactor.clean(&mut text);
        text
    }
}

impl RecordedOwner {
    fn of(kind: OwnerKind) -> Self {
        Self {
            kind,
            name: None,
            digest: None,
        }
    }
}

impl RecordedDecision {
    /// Of a call that was decided about; `Err` when it was no valid call.
    pub(crate) fn of<W, E>(decision: &Result<Decision<W>, E>) -> (Self, Option<String>) {
        let Ok(decided) = decision else {
            return (Self::Invalid, None);
        };
        let this = match decided {
            Decision::Allow(_) => Self::Allow,
            Decision::Ask(_) => Self::Ask,
            Decision::Deny(_) => Self::Deny,
        };
        (this, Some(decided.rule().to_owned()))
    }
}

fn use_names(uses: FileUses) -> Vec<FileUseName> {
    let all = [
        (uses.look, FileUseName::Look),
        (uses.read, FileUseName::Read),
        (uses.write, FileUseName::Write),
        (uses.create, FileUseName::Create),
        (uses.delete, FileUseName::Delete),
        (uses.list, FileUseName::List),
        (uses.temporary, FileUseName::Temporary),
    ];
    let used = all.into_iter().filter(|(is_used, _)| *is_used);
    used.map(|(_, name)| name).collect()
}

/// The digest of arguments; none when they hold a known secret, which could be guessed from it.
pub(crate) fn arguments_digest(arguments: &Value, redactor: &Redactor) -> Option<String> {
    let text = match arguments {
        Value::Object(values) => canonical(values),
        other => other.to_string(),
    };
    let is_clean = redactor.find(text.as_bytes()).is_none();
    is_clean.then(|| sha256(text.as_bytes()))
}

/// What a call gave, as the text that is compared when it is made again: text and structure, or the failure.
pub(crate) fn result_text(execution: &Execution, redactor: &Redactor) -> String {
    let mut text = match &execution.result {
        Ok(raw) => match &raw.structured {
            Some(structured) => format!("{}\n{structured}", raw.to_text()),
            None => raw.to_text(),
        },
        Err(failure) => format!("{}: {}", failure.category, failure.message),
    };
    redactor.clean(&mut text);
    text
}

/// The digest of `bytes` in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    zeph_core::id::Digest::new(digest.into()).hex()
}

/// The paths that arguments name.
fn named_paths(host: &Rooms, request: &ToolRequest, redactor: &Redactor) -> Vec<String> {
    let (Value::Object(values), Some(root)) = (&request.arguments, host.config.file.roots.first())
    else {
        return Vec::new();
    };
    let paths = path::named_by(values, &root.path);
    let paths = paths.iter().take(LISTED_MAX).map(|path| {
        let text = path.to_string_lossy();
        redactor.text(&one_line(&text, PATH_CHARS_MAX)).into_owned()
    });
    paths.collect()
}

/// The keys of `[limits]` that a failure names.
fn limits_in(message: &str) -> Vec<String> {
    let named = zeph_core::capability::LimitName::ALL;
    let named = named
        .iter()
        .filter(|name| message.contains(&format!("`limits.{name}`")));
    named.map(ToString::to_string).collect()
}
