//! `zeph-host audit verify`, `audit checkpoint` and `audit rekey`: whether the record is what was recorded.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use zeph_config::{Config, StoreLocation};
use zeph_core::failure::{chain, one_line};
use zeph_core::text::counted;
use zeph_egress::Egress;
use zeph_store::{
    AuditFile, AuditKeys, AuditPlace, AuditProblem, AuditProblemKind, ChainRemoval, ChainReport,
    CheckpointReport, Checkpoints, EarlierChain, FileReport, HOST_CHARS_MAX, RemovalStatement,
    Store, StoreError, verify_file,
};

use crate::audit::checkpoints::{self, CheckpointError, Checkpointer};
use crate::cli::args::AuditVerify;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::host::{StartError, audit_key_folder, open_store, place_of_store};
use crate::process;

/// Characters of the reason why a store cannot be read.
const REASON_CHARS_MAX: usize = 600;

/// What to do about a store in a place where no files can be made.
const UNWRITABLE: &str = "name the store with `--set store.path=FILE`; copy one that lies where no files can be made, with what lies beside it and the folder `secrets`, and verify the copy";

/// All that was found.
struct Verification {
    chains: Vec<ChainReport>,
    file: Option<FileReport>,
    against: Option<CheckpointReport>,
    problems: Vec<AuditProblem>,
    n_more: u64,
    /// Whether the store cannot be read.
    is_damaged: bool,
    /// Whether there is none that lasts.
    is_nothing_kept: bool,
    notes: Vec<String>,
}

/// Verifies the store and the audit file.
pub(super) async fn verify(
    context: &Context,
    config: &Config,
    options: AuditVerify,
) -> Result<Exit, CliError> {
    let keys = keys(config)?;
    if is_nothing_kept(config) && (keys.is_none() || config.audit.file.is_none()) {
        let told =
            "there is nothing to verify: the store is in memory, and no audit file was sealed";
        return Err(CliError::user(told).hint(STORE_HINT));
    }
    let opened = opened(context, config).await?;
    let found = Verification::of(config, (keys.as_ref(), opened), &options)?;
    match options.json.json {
        true => out::json(&found.json())?,
        false => out::data(&found.text())?,
    }
    Ok(match found.problems.is_empty() {
        true => Exit::Success,
        false => Exit::Failure,
    })
}

/// What to do where the store is in memory.
const STORE_HINT: &str = "set `store.path` to a file; it is `:memory:`";

/// Whether the log of the store ends with each process: there is none to verify.
fn is_nothing_kept(config: &Config) -> bool {
    matches!(config.store, StoreLocation::Memory)
}

/// Opens the store, which brings it to the newest schema; or why it cannot be read, when it is damaged.
async fn opened(context: &Context, config: &Config) -> Result<Result<(), StoreError>, CliError> {
    let store = match open_store(config) {
        Ok(opened) => {
            context.notes(&opened.notices);
            opened.store
        }
        Err(StartError::Store(error @ StoreError::Corrupt { .. })) => return Ok(Err(error)),
        Err(StartError::Store(error @ (StoreError::File { .. } | StoreError::ReadOnly { .. }))) => {
            return Err(CliError {
                // Its own is to keep nothing, of which nothing could be verified.
                hints: vec![UNWRITABLE.to_owned()],
                ..CliError::from(StartError::Store(error))
            });
        }
        Err(error) => return Err(error.into()),
    };
    or_damage(store.chain_key().await.map(drop))
}

/// Sets damage, which is a finding, apart from what stops a verification.
fn or_damage<T>(found: Result<T, StoreError>) -> Result<Result<T, StoreError>, CliError> {
    match found {
        Err(error @ StoreError::Corrupt { .. }) => Ok(Err(error)),
        Err(error) => Err(error.into()),
        Ok(found) => Ok(Ok(found)),
    }
}

/// The keys of the log; none when none was made.
fn keys(config: &Config) -> Result<Option<AuditKeys>, CliError> {
    let Some(folder) = audit_key_folder(config) else {
        return Ok(None);
    };
    folder.read().map_err(|error| {
        let hint = error.hint();
        let error = CliError::start("the keys of the audit log cannot be read").because(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}

/// What is found of each chain; none when the store is damaged, and that it is.
fn of_store(
    config: &Config,
    keys: Option<&AuditKeys>,
    events: &BTreeSet<i64>,
    opened: Result<(), StoreError>,
) -> Result<(Vec<ChainReport>, Option<AuditProblem>), CliError> {
    if is_nothing_kept(config) {
        return Ok((Vec::new(), None));
    }
    let (location, store) = place_of_store(config)?;
    let found = match opened {
        Ok(()) => or_damage(Store::verify_audit(&location, &store, keys, events))?,
        Err(error) => Err(error),
    };
    Ok(match found {
        Ok(chains) => (chains, None),
        Err(error) => (Vec::new(), Some(damaged(&error))),
    })
}

/// What is found of the audit file, where there is one and a key.
fn of_file(
    config: &Config,
    keys: Option<&AuditKeys>,
    lines: &BTreeSet<u64>,
    chains: &[ChainReport],
) -> Result<Option<FileReport>, CliError> {
    let (Some(path), Some(keys)) = (&config.audit.file, keys) else {
        return Ok(None);
    };
    let mut file = verify_file(path, keys, lines)?;
    let lost = chains.iter().flat_map(|chain| chain.lost_keys.clone());
    file.accept_lost(&lost.collect::<Vec<_>>());
    Ok(Some(file))
}

impl Verification {
    fn of(
        config: &Config,
        (keys, opened): (Option<&AuditKeys>, Result<(), StoreError>),
        options: &AuditVerify,
    ) -> Result<Self, CliError> {
        let checkpoints = match (&options.against, keys) {
            (Some(path), Some(keys)) => Some(Checkpoints::read(path, keys)?),
            (Some(path), None) => return Err(no_key(path)),
            (None, _) => None,
        };
        let (events, lines) = match &checkpoints {
            Some(checkpoints) => (checkpoints.events(), checkpoints.lines()),
            None => (BTreeSet::new(), BTreeSet::new()),
        };
        let (mut chains, damage) = of_store(config, keys, &events, opened)?;
        let mut left_out = Vec::new();
        if let Some(host) = &options.host {
            left_out.extend(chains.extract_if(.., |chain| chain.host.as_ref() != Some(host)));
            if chains.is_empty() && damage.is_none() {
                return Err(no_host(host));
            }
        }
        let file = of_file(config, keys, &lines, &chains)?;
        let told = (chains.as_slice(), left_out.as_slice());
        let against = checkpoints.map(|checkpoints| checkpoints.compare(told, file.as_ref()));
        let is_damaged = damage.is_some();
        let is_nothing_kept = is_nothing_kept(config);
        let is_known = !is_damaged && !is_nothing_kept;
        let beside = beside_file(&chains, file.as_ref()).filter(|_| is_known);
        let mut problems: Vec<_> = damage.into_iter().chain(beside).collect();
        problems.extend(chains.iter().flat_map(|chain| chain.problems.clone()));
        problems.extend(file.iter().flat_map(|file| file.problems.clone()));
        problems.extend(against.iter().flat_map(|against| against.problems.clone()));
        let of_file = file.as_ref().map_or(0, |file| file.n_more);
        let sealed = chains.iter().filter(|chain| !chain.origin.is_empty());
        let of_chains: u64 = sealed.map(|chain| chain.n_more).sum();
        Ok(Self {
            n_more: of_chains + of_file,
            is_damaged,
            is_nothing_kept,
            notes: notes(&chains, file.as_ref()),
            chains,
            file,
            against,
            problems,
        })
    }

    fn json(&self) -> serde_json::Value {
        let of_hosts: Vec<_> = self.chains.iter().map(chain_json).collect();
        let is_shared = self.chains.iter().all(|chain| chain.host.is_some());
        let file = self.file.as_ref().map(|file| {
            json!({
                "lines": file.n_lines, "before": file.n_before, "first": file.first, "count": file.count,
                "head": file.head,
            })
        });
        json!({
            "ok": self.problems.is_empty(),
            "store": if is_shared { None } else { of_hosts.first() },
            "hosts": if is_shared { Some(&of_hosts) } else { None },
            "file": file,
            "against": self.against,
            "notes": self.notes,
            "problems": self.problems,
            "more_problems": self.n_more,
        })
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.problems.iter().map(ToString::to_string));
        if self.n_more > 0 {
            lines.push(format!("{} more problems", self.n_more));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.extend(self.chains.iter().map(summary));
        if self.is_nothing_kept {
            lines.push("store: in memory, there is nothing to verify".to_owned());
        } else if self.chains.is_empty() && !self.is_damaged {
            lines.push("store: nothing is recorded yet".to_owned());
        }
        if let Some(file) = &self.file {
            lines.push(format!(
                "audit file: {}",
                counted(file.n_lines, "line", "lines")
            ));
        }
        if let Some(against) = &self.against {
            lines.push(format!(
                "checkpoints: {} agree, {} are older than what is kept, {} are of other logs",
                against.n_good, against.n_older, against.n_others
            ));
        }
        lines.push(match self.problems.len() as u64 + self.n_more {
            0 => "everything is as it was recorded".to_owned(),
            n => counted(n, "problem", "problems"),
        });
        lines.join("\n") + "\n"
    }
}

fn chain_json(chain: &ChainReport) -> serde_json::Value {
    let mut value = json!({
        "origin": chain.origin, "calls": chain.n_calls, "records": chain.n_events,
        "before": chain.n_before, "removed_records": chain.n_removed_events,
        "removed_calls": chain.n_removed_calls, "unverified": chain.n_unverified,
        "lost": chain.n_lost, "count": chain.count,
        "head": chain.head,
    });
    if let Some(host) = &chain.host {
        value["host"] = host.as_str().into();
    }
    if !chain.forgotten.is_empty() {
        let logs = chain.forgotten.iter().map(|RemovalStatement { chain, .. }| {
            json!({
                "host": chain.host, "origin": chain.origin, "records": chain.upto, "head": chain.upto_code,
            })
        });
        value["removed_logs"] = logs.collect();
    }
    value
}

/// What a chain is of, at the beginning of a line.
fn subject(chain: &ChainReport) -> String {
    match &chain.host {
        Some(host) => format!("store, host {}", one_line(host, HOST_CHARS_MAX)),
        None => "store".to_owned(),
    }
}

fn summary(chain: &ChainReport) -> String {
    let what = match chain.origin.is_empty() {
        true => "nothing is sealed yet".to_owned(),
        false => format!(
            "{} in {}",
            counted(chain.n_calls, "call", "calls"),
            counted(chain.n_events, "record", "records")
        ),
    };
    format!("{}: {what}", subject(chain))
}

/// A store that cannot be read.
fn damaged(error: &StoreError) -> AuditProblem {
    AuditProblem {
        kind: AuditProblemKind::Damaged,
        place: AuditPlace::Store {
            host: None,
            record: 0,
        },
        call_id: None,
        message: format!(
            "nothing in it can be verified: {}",
            chain(error, REASON_CHARS_MAX)
        ),
    }
}

/// A store that knows of no call, beside an audit file with lines that hosts have sealed: it was removed, or another is looked at.
fn beside_file(chains: &[ChainReport], file: Option<&FileReport>) -> Option<AuditProblem> {
    let n_lines = file?.n_lines;
    let is_empty =
        |chain: &ChainReport| chain.origin.is_empty() && chain.n_before == 0 && chain.n_more == 0;
    (n_lines > 0 && chains.iter().all(is_empty)).then(|| AuditProblem {
        kind: AuditProblemKind::Removed,
        place: AuditPlace::Store {
            host: None,
            record: 1,
        },
        call_id: None,
        message: format!(
            "the audit file has {n_lines} sealed lines, and the store knows of no call"
        ),
    })
}

fn notes(chains: &[ChainReport], file: Option<&FileReport>) -> Vec<String> {
    let mut notes: Vec<String> = chains.iter().flat_map(notes_of).collect();
    if let Some(file) = file {
        if file.n_before > 0 {
            notes.push(format!(
                "{} from before it was sealed and not covered",
                counted(
                    file.n_before,
                    "line of the audit file is",
                    "lines of the audit file are"
                )
            ));
        }
        notes.extend(file.notes.clone());
    }
    notes
}

fn notes_of(chain: &ChainReport) -> Vec<String> {
    let mut notes = Vec::new();
    if chain.n_before > 0 && !chain.origin.is_empty() {
        notes.push(format!(
            "{} from before the log was sealed and not covered",
            counted(chain.n_before, "call is", "calls are")
        ));
    }
    if chain.n_removed_events > 0 {
        notes.push(format!(
            "retention removed {}, with the records up to {}",
            counted(chain.n_removed_calls, "call", "calls"),
            chain.n_removed_events
        ));
    }
    notes.extend(chain.earlier.as_ref().and_then(note_of_earlier));
    if let Some(RemovalStatement { chain: last, .. }) = chain.forgotten.last() {
        notes.push(format!(
            "retention removed the logs of hosts that were gone: {}, the last of host {} (`--json` lists them)",
            chain.forgotten.len(),
            one_line(&last.host, HOST_CHARS_MAX)
        ));
    }
    if chain.n_unverified > 0 {
        notes.push(format!(
            "{} of the removed records could not be verified then: their key was lost or out of reach",
            chain.n_unverified
        ));
    }
    if chain.n_lost > 0 {
        notes.push(format!(
            "{} cannot be verified: their key was lost, and the operator continued with another",
            counted(chain.n_lost, "record", "records")
        ));
    }
    if let Some(host) = &chain.host {
        notes
            .iter_mut()
            .for_each(|note| note.insert_str(0, &format!("host {host}: ")));
    }
    notes
}

/// Of an earlier log that is gone and not missed.
fn note_of_earlier(earlier: &EarlierChain) -> Option<String> {
    let Some(origin) = earlier.origin else {
        let note = "whether an earlier log was sealed in this store was not known, which the operator accepted";
        return earlier.is_accepted.then(|| note.to_owned());
    };
    let removal = earlier.removal.as_ref();
    match removal.filter(|removal| removal.is_verified) {
        _ if earlier.is_accepted => Some(format!(
            "an earlier log that was sealed in this store is gone, which the operator accepted (log {origin})"
        )),
        Some(ChainRemoval { host, .. }) => Some(format!(
            "an earlier log is gone: host {host} removed it when it was past its time (log {origin})"
        )),
        None => None,
    }
}

fn no_host(host: &str) -> CliError {
    CliError::user(format!("the store has no records of a host `{host}`"))
        .hint("`zeph-host audit verify` without `--host` lists all hosts")
}

fn no_key(path: &Path) -> CliError {
    CliError::user(format!(
        "`{}` cannot be compared: there is no key of the audit log",
        path.display()
    ))
    .hint("nothing was recorded here yet, or the key was removed")
}

/// Takes a checkpoint, prints it, and hands it over where that is configured.
pub(super) async fn checkpoint(context: &Context, config: &Config) -> Result<Exit, CliError> {
    let store = match &config.audit.file {
        Some(path) if path.exists() => {
            let file = AuditFile::open(path, config.audit.file_max_bytes)?;
            context.store(config)?.with_audit_file(file)
        }
        _ => context.store(config)?,
    };
    let (Some(head), Some(key)) = (store.chain_head().await?, store.chain_key().await?) else {
        return Err(failed(CheckpointError::Nothing));
    };
    let Some(keys) = keys(config)? else {
        let path = audit_key_folder(config).map(|folder| folder.file());
        let path = path.unwrap_or_default();
        return Err(StoreError::AuditKeyMissing { key, path }.into());
    };
    let egress = Egress::new(&config.egress);
    let checkpointer = Checkpointer::new(&config.audit, (&store, &keys), &egress);
    let line = match checkpointer.map_err(CliError::start)? {
        Some(checkpointer) => checkpointer.take().await.map_err(failed)?,
        None => checkpoints::signed(&store, &keys, &head, now_ms())?,
    };
    out::data(&format!("{line}\n"))?;
    Ok(Exit::Success)
}

fn failed(error: CheckpointError) -> CliError {
    CliError::internal("no checkpoint was made").because(error)
}

/// Goes on with a new key.
pub(super) async fn rekey(context: &Context, config: &Config) -> Result<Exit, CliError> {
    let Some(folder) = audit_key_folder(config) else {
        return Err(CliError::user("there is no store to keep a key beside").hint(STORE_HINT));
    };
    if is_nothing_kept(config) && config.audit.file.is_none() {
        let told = "there is no log to seal: the store is in memory, and there is no audit file";
        return Err(CliError::user(told).hint(STORE_HINT));
    }
    let store = context.store(config)?;
    let keys = folder
        .add(now_ms())
        .map_err(|error| CliError::internal("no key can be made").because(error))?;
    // What is accepted that another host removed is all of it, once this one is heard.
    store.keep_process(process::own()).await?;
    store.rekey_chain(keys, now_ms()).await?;
    out::remark(match config.store {
        StoreLocation::Server(_) => {
            "a new key seals the audit log of this host from now on; other hosts keep theirs"
        }
        StoreLocation::Memory => {
            "a new key seals the audit file from now on; the store is in memory, there is nothing to verify in it"
        }
        StoreLocation::File(_) => "a new key seals the audit log from now on",
    });
    Ok(Exit::Success)
}
