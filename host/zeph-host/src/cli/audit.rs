//! `zeph-host audit`: the record of every call.

mod export;
mod follow;
mod verify;

use std::time::Duration;

use zeph_core::category::ErrorCategory;
use zeph_core::id::CallId;
use zeph_core::text::counted;
use zeph_store::{AuditFilter, AuditRecord, AuditResult, HostProcess, Store};

use self::follow::FollowState;
use super::args::{Audit, AuditCommand, AuditQuery, AuditTail};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::{out, time};
use crate::clock::now_ms;
use crate::process::{self, Liveness};
use crate::run::{approval_text, render, table};

/// How often `--follow` looks for new rows. Half a second is soon enough for a person and costs one indexed query.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the command.
pub(super) fn run(context: &Context, options: Audit) -> Result<Exit, CliError> {
    let filter = match &options.command {
        Some(AuditCommand::Query(query)) => Some(filter(query)?),
        _ => None,
    };
    let config = context.config()?;
    if !config.audit.enabled {
        context.notes(&["calls are not recorded: `tools.audit.enabled` is false".to_owned()]);
    }
    context::block_on(async {
        let store = match options.command {
            Some(AuditCommand::Verify(options)) => {
                return verify::verify(context, &config, options).await;
            }
            Some(AuditCommand::Checkpoint) => return verify::checkpoint(context, &config).await,
            Some(AuditCommand::Rekey) => return verify::rekey(context, &config).await,
            _ => context.store_to_look(&config)?,
        };
        match (options.command, filter) {
            (Some(AuditCommand::Export(options)), _) => {
                return export::run(&store, &config, options).await;
            }
            (Some(AuditCommand::Query(query)), Some(filter)) => {
                let records = oldest_first(&store, filter).await?;
                print(&records, &RunningHosts::of(&store).await?, query.json.json)?;
            }
            (Some(AuditCommand::Tail(tail)), _) => self::tail(&store, tail).await?,
            _ => self::tail(&store, options.tail).await?,
        }
        Ok(Exit::Success)
    })
}

fn filter(query: &AuditQuery) -> Result<AuditFilter, CliError> {
    let now = now_ms();
    let moment = |text: &Option<String>| {
        text.as_deref()
            .map(|text| time::read(text, now))
            .transpose()
    };
    Ok(AuditFilter {
        tool: query.tool.clone(),
        plugin: query.plugin.clone(),
        category: query.category.as_deref().map(category).transpose()?,
        conversation: query.conversation,
        since_ms: moment(&query.since).map_err(CliError::user)?,
        until_ms: moment(&query.until).map_err(CliError::user)?,
        unfinished_only: query.unfinished,
        ..AuditFilter::newest(query.limit)
    })
}

fn category(label: &str) -> Result<ErrorCategory, CliError> {
    let found = ErrorCategory::ALL
        .into_iter()
        .find(|category| category.label() == label);
    found.ok_or_else(|| {
        let labels = ErrorCategory::ALL.map(ErrorCategory::label).join(", ");
        CliError::user(format!("there is no category `{label}`"))
            .hint(format!("there are: {labels}"))
    })
}

async fn oldest_first(store: &Store, filter: AuditFilter) -> Result<Vec<AuditRecord>, CliError> {
    let mut records = store.audit_query(filter).await?;
    records.reverse();
    Ok(records)
}

async fn tail(store: &Store, options: AuditTail) -> Result<(), CliError> {
    let records = oldest_first(store, AuditFilter::newest(options.lines)).await?;
    print(&records, &RunningHosts::of(store).await?, options.json.json)?;
    if options.follow {
        let since_ms = records
            .last()
            .map_or_else(now_ms, |record| record.begin.at_ms);
        let mut followed = FollowState::after(store, &records, since_ms).await?;
        loop {
            tokio::time::sleep(FOLLOW_INTERVAL).await;
            let news = followed.news(store).await?;
            print_rows(&news, &RunningHosts::of(store).await?, options.json.json)?;
        }
    }
    Ok(())
}

fn print(records: &[AuditRecord], running: &RunningHosts, json: bool) -> Result<(), CliError> {
    match json {
        true => json_lines(records, running),
        false => out::styled(&table::render(HEAD, &rows(records, running), out::width())),
    }
}

/// Rows without their head, for going on.
fn print_rows(records: &[AuditRecord], running: &RunningHosts, json: bool) -> Result<(), CliError> {
    if json || records.is_empty() {
        return json_lines(records, running);
    }
    let table = table::render(HEAD, &rows(records, running), out::width());
    let body = table.split_once('\n').map_or("", |(_, body)| body);
    out::styled(body)
}

/// Records as JSON; one without an end says whether the host that makes the call still runs.
fn json_lines(records: &[AuditRecord], running: &RunningHosts) -> Result<(), CliError> {
    for record in records {
        let mut value = serde_json::to_value(record)
            .map_err(|error| CliError::internal("a record cannot be printed").because(error))?;
        if record.ending.is_none() {
            value["state"] = running.state(record).into();
        }
        out::json_line(&value)?;
    }
    Ok(())
}

/// The hosts of all machines that say that they run; none where a store is of one machine.
struct RunningHosts(Option<Vec<HostProcess>>);

impl RunningHosts {
    async fn of(store: &Store) -> Result<Self, CliError> {
        Ok(Self(store.running_processes().await?))
    }

    /// What became of a call whose end is not recorded, by the process that makes it.
    fn state(&self, record: &AuditRecord) -> &'static str {
        match &record.begin.host {
            Some(host) => self.state_of(host),
            None => "unfinished",
        }
    }

    fn state_of(&self, host: &HostProcess) -> &'static str {
        match (process::liveness(host), &self.0) {
            (Liveness::Running, _) => "running",
            (Liveness::Ended, _) => "died",
            // Many machines: each says which of its hosts run.
            (Liveness::OtherBoot | Liveness::Elsewhere, Some(running)) => {
                match running.contains(host) {
                    true => "running",
                    false => "died",
                }
            }
            (Liveness::OtherBoot, None) => "died",
            (Liveness::Elsewhere, None) => "unfinished",
        }
    }
}

/// Padded, so that the rows of `--follow`, which come one by one, line up with those before.
const HEAD: [&str; 7] = [
    "TIME",
    "ID                          ",
    "PID   ",
    "TOOL            ",
    "RESULT      ",
    "TOOK   ",
    "ARGUMENTS",
];

/// Characters of an ID that are shown, which `revoke` and `replay` take: its millisecond, and the number that tells calls of one millisecond
/// apart. Rows that are not shown can begin alike up to there only by a chance of one in 2^41.
const ID_CHARS: usize = "01938c2e-5a51-7cc3-98f2-8c1f".len();

fn rows(records: &[AuditRecord], running: &RunningHosts) -> Vec<[String; 7]> {
    let rows = records.iter();
    rows.map(|record| {
        let took = record
            .ending
            .as_ref()
            .map(|ending| took(ending.duration_ms));
        let host = record.begin.host.as_ref();
        let pid = host.map(|host| host.pid.to_string());
        [
            time::shown(record.begin.at_ms),
            short_id(record.begin.call_id),
            pid.unwrap_or_default(),
            record.begin.tool.clone(),
            result(record, running),
            took.unwrap_or_default(),
            record.begin.command.clone(),
        ]
    })
    .collect()
}

/// As much of an ID as tells it from all others.
fn short_id(id: CallId) -> String {
    let mut shown = id.to_string();
    shown.truncate(ID_CHARS);
    shown
}

/// The record has whole milliseconds: shorter calls must not look like measured ones.
fn took(ms: u64) -> String {
    match ms {
        0 => "<1 ms".to_owned(),
        1..10 => format!("{ms} ms"),
        _ => render::duration(Duration::from_millis(ms)),
    }
}

fn result(record: &AuditRecord, running: &RunningHosts) -> String {
    let Some(ending) = &record.ending else {
        return running.state(record).to_owned();
    };
    let outcome = match &ending.result {
        AuditResult::Success => "ok",
        AuditResult::Blocked { .. } => "blocked",
        AuditResult::Error { .. } => "failed",
        AuditResult::Timeout => "timeout",
        AuditResult::Cancelled => "cancelled",
    };
    let category = ending.failed.map(|failed| failed.category.to_string());
    let attempts = ending.attempts.map(|n| counted(n, "attempt", "attempts"));
    let cached = ending.cache_age_ms.map(|_| "cached".to_owned());
    let agreement = record.begin.agreement.as_ref();
    let agreed = agreement.map(|agreement| format!("agreed: {}", approval_text::by(agreement)));
    let category = category.filter(|category| category != outcome);
    let more = [category, attempts, cached, agreed];
    let more: Vec<String> = more.into_iter().flatten().collect();
    match more.is_empty() {
        true => outcome.to_owned(),
        false => format!("{outcome} ({})", more.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use zeph_core::id::CallId;

    use zeph_store::HostProcess;

    use super::{HEAD, ID_CHARS, RunningHosts, short_id};
    use crate::process;

    /// What is said of a call of a process, over a file and over a server whose running processes are these.
    #[test]
    fn whether_a_call_runs_is_said_by_who_can_know() {
        let of_start = |start: String| HostProcess { pid: 1, start };
        let here = process::own();
        let gone = of_start(format!("{}1", here.start));
        let other_boot = of_start(format!("{}/another-boot/pid:[1]/7", process::machine()));
        let far = of_start("another-machine/boot/pid:[1]/7".to_owned());
        let all = [&here, &gone, &other_boot, &far];
        let running = [other_boot.clone(), far.clone()];
        let cases = [
            (None, ["running", "died", "died", "unfinished"]),
            (Some(Vec::new()), ["running", "died", "died", "died"]),
            (
                Some(running.to_vec()),
                ["running", "died", "running", "running"],
            ),
        ];
        for (running, expected) in cases {
            let hosts = RunningHosts(running);
            assert_eq!(all.map(|host| hosts.state_of(host)), expected);
        }
    }

    /// Many of them are of one millisecond, and of one process.
    #[test]
    fn what_is_shown_of_an_id_is_of_one_call_alone() {
        let shown: BTreeSet<String> = (0..20_000).map(|_| short_id(CallId::new())).collect();
        assert_eq!(shown.len(), 20_000);
        assert_eq!(HEAD[1].len(), ID_CHARS);
    }
}
