//! `zeph-host scheduler`: runs what was scheduled; lists it, takes it over and cancels it.

use serde_json::Value;
use zeph_config::SchedulerSettings;
use zeph_mcp::door::OpenDoor;
use zeph_store::Schedule;

use super::args::{Scheduler, SchedulerCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::admission::Tokens;
use crate::run::interrupt::Interrupts;
use crate::scheduler::clockwork::Clockwork;
use crate::scheduler::{directory, listing};

/// Most tasks that are listed.
const LIMIT: u32 = 10_000;

/// Runs the command.
pub(super) fn run(context: &Context, options: Scheduler) -> Result<Exit, CliError> {
    match options.command {
        None => wait(context),
        Some(SchedulerCommand::List { all, json }) => list(context, all, json.json),
        Some(SchedulerCommand::Adopt { directory }) => adopt(context, directory),
        Some(SchedulerCommand::Cancel {
            name,
            caller,
            directory,
        }) => cancel(context, name, (caller, directory)),
    }
}

/// Runs due tasks until a signal comes.
fn wait(context: &Context) -> Result<Exit, CliError> {
    let config = context.config()?;
    if config.scheduler.is_none() {
        return Err(
            CliError::user("nothing is scheduled here: `tools.scheduler.enabled` is off")
                .hint("set it in the configuration, or add `--set tools.scheduler.enabled=true`"),
        );
    }
    context::block_on_threads(async {
        let host = context.start(config, true, Vec::new(), None).await?;
        host.settled().await;
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let clockwork = Clockwork::start(&host);
        context.notes(&["running scheduled tasks; end with Ctrl-C".to_owned()]);
        let interruption = interrupts.next().await;
        clockwork.end().await;
        Ok(Exit::Interrupted(interruption))
    })
}

fn list(context: &Context, all: bool, is_json: bool) -> Result<Exit, CliError> {
    let config = context.config()?;
    let store = context.store_to_look(&config)?;
    let zone = zone(config.scheduler.as_ref());
    let here = directory(&config);
    // Who comes with no token is let in as a server of this configuration would.
    let door = OpenDoor::served(config.serve.oauth.is_some());
    context::block_on(async {
        let mut schedules = store.schedules(None, LIMIT).await?;
        let tokens = Tokens::read(&store, &door).await?;
        let n_all = schedules.len();
        schedules.retain(|one: &Schedule| all || one.what.owner.directory == here);
        let n_others = n_all - schedules.len();
        if n_others > 0 {
            context.notes(&[format!(
                "tasks of other directories, machines or replicas, which do not run here: {n_others}; `zeph-host scheduler list --all --json` shows them, `zeph-host scheduler adopt DIRECTORY` takes them over"
            )]);
        }
        match (is_json, schedules.is_empty()) {
            (true, _) => {
                let rows = schedules
                    .iter()
                    .map(|one| listing::as_json(one, &zone, &tokens));
                out::json(&rows.collect::<Vec<Value>>())
            }
            (false, true) => out::styled("No scheduled tasks.\n"),
            (false, false) => out::styled(&listing::as_table(&schedules, &zone, &tokens)),
        }?;
        Ok(Exit::Success)
    })
}

/// Takes over what a host elsewhere does not run any more.
fn adopt(context: &Context, from: String) -> Result<Exit, CliError> {
    let config = context.config()?;
    let store = context.store(&config)?;
    let here = directory(&config);
    context::block_on(async {
        let is_there = |one: &Schedule| one.what.owner.directory == from;
        let n_there = store.schedules(None, LIMIT).await?;
        let n_there = n_there.into_iter().filter(is_there).count() as u64;
        if n_there == 0 || from == here {
            return Err(
                CliError::user(format!("there is no task of `{from}` elsewhere"))
                    .hint("`zeph-host scheduler list --all --json` says where tasks belong"),
            );
        }
        let n_moved = store.move_schedules(from.clone(), here).await?;
        let mut notes = vec![format!("tasks that run here from now on: {n_moved}")];
        if n_moved < n_there {
            let n_left = n_there - n_moved;
            notes.push(format!(
                "tasks that stay, because there is one of their name here: {n_left}"
            ));
        }
        context.notes(&notes);
        Ok(Exit::Success)
    })
}

fn cancel(
    context: &Context,
    name: String,
    (caller, elsewhere): (Option<String>, Option<String>),
) -> Result<Exit, CliError> {
    let config = context.config()?;
    let store = context.store(&config)?;
    let place = elsewhere.unwrap_or_else(|| directory(&config));
    context::block_on(async {
        let mut is_cancelled = false;
        // One of a token that is gone may have the name of another.
        for Schedule { what, .. } in store.schedules(None, LIMIT).await? {
            if what.name == name && what.owner.directory == place && what.owner.caller.id == caller
            {
                is_cancelled |= store.cancel_schedule(what.owner, what.name).await?;
            }
        }
        if is_cancelled {
            return Ok(Exit::Success);
        }
        Err(CliError::user(format!("there is no task `{name}` here"))
            .hint("`zeph-host scheduler list` lists them; `--caller` names whose it is"))
    })
}

fn zone(settings: Option<&SchedulerSettings>) -> jiff::tz::TimeZone {
    settings.map_or(jiff::tz::TimeZone::UTC, |settings| {
        settings.time_zone.clone()
    })
}
