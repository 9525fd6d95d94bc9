//! `zeph-host plugin`: what is in the folders of plugins, and what it may do. What is decided is in `plugins::manage`; here it is
//! asked, printed, and turned into an exit code.

mod add;
mod agree;
mod approve;
mod bundle;
mod check;
mod consent;
mod dev;
pub(super) mod display;
mod grant;
mod indexes;
mod info;
mod keygen;
mod list;
mod new;
mod origin;
mod outdated;
mod publish;
mod registry;
mod releases;
mod remove;
mod revoke;
mod said;
mod search;
mod sign;
mod suggest;
mod supply;
mod switch;
mod sync;
mod update;
mod verify;
mod vouching;

use std::path::Path;
use std::sync::Arc;

use zeph_config::{Config, StoreLocation};
use zeph_plugins::event::{PluginEvent, Tell};
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::forget::Switch;
use zeph_plugins::manage::holdings::Holdings;
use zeph_plugins::rights;
use zeph_plugins::set::VettedPlugin;

use super::args::{Plugin, PluginCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::announcements;
use crate::clock::now_ms;
use crate::host::Host;

/// Runs the command, and tells the servers on the same store that what is offered may be different, however the command ended: it may have
/// changed one plugin and not the next, or nobody read what it printed.
pub(super) fn run(context: &Context, options: Plugin) -> Result<Exit, CliError> {
    let changes_offer = match &options.command {
        Some(PluginCommand::Sign(options)) => sign::is_offered(context, options),
        command => command.as_ref().is_some_and(changes_offer),
    };
    let ended = run_alone(context, options);
    if changes_offer {
        let told = tell_replicas(context);
        return ended.and_then(|exit| told.map(|()| exit));
    }
    ended
}

/// Whether the command writes into a folder of plugins or its lock. `plugin dev` does after each build, and says so itself; `plugin sign` does
/// where the component lies in one.
fn changes_offer(command: &PluginCommand) -> bool {
    match command {
        PluginCommand::Add(_)
        | PluginCommand::Remove(_)
        | PluginCommand::Approve(_)
        | PluginCommand::Disable(_)
        | PluginCommand::Enable(_)
        | PluginCommand::Update(_)
        // It writes down what is requested for a plugin without a manifest.
        | PluginCommand::Grant(_) => true,
        PluginCommand::Sync(options) => !options.dry_run,
        PluginCommand::List { .. }
        | PluginCommand::Info(_)
        | PluginCommand::Check(_)
        | PluginCommand::Publish(_)
        | PluginCommand::Revoke(_)
        | PluginCommand::Suggest(_)
        | PluginCommand::Keygen(_)
        | PluginCommand::Sign(_)
        | PluginCommand::Verify(_)
        | PluginCommand::Search(_)
        | PluginCommand::Outdated(_)
        | PluginCommand::Bundle(_)
        | PluginCommand::New(_)
        | PluginCommand::Dev(_) => false,
    }
}

fn tell_replicas(context: &Context) -> Result<(), CliError> {
    let config = context.config()?;
    context::block_on(announce(context, &config))
}

/// Where no server is one of several, folders that are watched are enough.
async fn announce(context: &Context, config: &Config) -> Result<(), CliError> {
    let is_shared = matches!(config.store, StoreLocation::Server(_));
    if config.serve.replica.is_none() && !is_shared {
        return Ok(());
    }
    let store = context.store(config)?;
    Ok(announcements::plugins_changed(&store).await?)
}

fn run_alone(context: &Context, options: Plugin) -> Result<Exit, CliError> {
    match options.command {
        None => list::run(context, options.json, false),
        Some(PluginCommand::List { json, all }) => list::run(context, json, all),
        Some(PluginCommand::Info(options)) => info::run(context, &options),
        Some(PluginCommand::Check(options)) => check::run(context, &options),
        Some(PluginCommand::Add(options)) => add::run(context, &options),
        Some(PluginCommand::Publish(options)) => publish::run(context, &options),
        Some(PluginCommand::Remove(options)) => remove::run(context, &options),
        Some(PluginCommand::Grant(options)) => grant::run(context, &options),
        Some(PluginCommand::Revoke(options)) => revoke::run(context, &options),
        Some(PluginCommand::Suggest(options)) => suggest::run(context, &options),
        Some(PluginCommand::Approve(options)) => approve::run(context, &options),
        Some(PluginCommand::Disable(options)) => switch::run(context, &options, Switch::Off),
        Some(PluginCommand::Enable(options)) => switch::run(context, &options, Switch::On),
        Some(PluginCommand::Keygen(options)) => keygen::run(context, &options),
        Some(PluginCommand::Sign(options)) => sign::run(context, &options),
        Some(PluginCommand::Verify(options)) => verify::run(context, &options),
        Some(PluginCommand::Search(options)) => search::run(context, &options),
        Some(PluginCommand::Outdated(json)) => outdated::run(context, json),
        Some(PluginCommand::Update(options)) => update::run(context, &options),
        Some(PluginCommand::Sync(options)) => sync::run(context, &options),
        Some(PluginCommand::Bundle(options)) => bundle::run(context, &options),
        Some(PluginCommand::New(options)) => new::run(context, &options),
        Some(PluginCommand::Dev(options)) => dev::run(context, &options),
    }
}

/// The folder that plugins are added to: the one that `sync`, `bundle`, `outdated` and `update` work on.
///
/// Errors: there is none.
fn folder(config: &Config) -> Result<&Path, ManageError> {
    config.plugins.add_to.as_deref().ok_or(ManageError::Off)
}

/// Stops a command that has nothing to work on.
fn must_be_on(config: &Config) -> Result<(), ManageError> {
    match config.plugins.folders.is_empty() || !config.tools_enabled {
        true => Err(ManageError::Off),
        false => Ok(()),
    }
}

/// A host that has loaded every plugin. The command shows their problems itself; they are not reported during the start.
pub(super) async fn settled(context: &Context, config: Config) -> Result<Host, CliError> {
    let host = context
        .start(config, false, Vec::new(), Some(progress(context)))
        .await?;
    host.settled().await;
    Ok(host)
}

/// Tells that a component is compiled, which may take seconds, and what is wrong with whole folders.
fn progress(context: &Context) -> Tell {
    let quiet = context.quiet;
    Arc::new(move |event: &PluginEvent| {
        let is_progress = matches!(
            event,
            PluginEvent::Compiling { .. }
                | PluginEvent::Compiled { .. }
                | PluginEvent::Folder { .. }
        );
        if is_progress && !quiet {
            out::note(&event.to_string());
        }
    })
}

/// What a plugin of the program holds, and whether its default grants count.
async fn own_holdings(host: &Host, own: &VettedPlugin) -> Result<(bool, Holdings), CliError> {
    let name = own.plugin.id().clone();
    let has_defaults = host.store().has_defaults(name.clone()).await?;
    let mut grants = host.store().list_grants(Some(name)).await?;
    if has_defaults {
        grants.extend(rights::default_grants(own, host.config()));
    }
    let holdings = Holdings::new(&own.manifest, own.pin, grants, host.config(), now_ms());
    Ok((has_defaults, holdings))
}

#[cfg(test)]
mod tests;
