//! `zeph-host plugin grant`: gives a plugin some of what it wants.

use std::sync::Arc;
use zeph_core::capability::Capability;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::network::Destination;
use zeph_core::policy::Mode;
use zeph_egress::{Dialer, private_host_entry};

use serde_json::{Value, json};
use zeph_config::{Config, StoreLocation, lock_of};
use zeph_plugins::manage::selection::{self, GrantSelection, RequestedItem, SelectionContext};
use zeph_plugins::manage::wishes::{self, WrittenRequests};
use zeph_plugins::manage::{ManageError, carrying, names};
use zeph_plugins::refusal::grant_command;
use zeph_plugins::rights;
use zeph_plugins::set::{PluginStanding, Status, VettedPlugin};
use zeph_store::GrantRecord;

use super::display::{self, Page};
use crate::cli::args::{GrantMode, HowLong, PluginGrant, Selectors};
use crate::cli::ask::{Answer, ask};
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, time};
use crate::clock::now_ms;
use crate::host::Host;
use crate::known_secrets;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginGrant) -> Result<Exit, CliError> {
    let lifetime = lifetime(&options.how_long)?;
    let asked = asked(&options.what)?;
    let config = context.config()?;
    if config.store == StoreLocation::Memory {
        return Err(ManageError::NoStore.into());
    }
    context::block_on(async {
        let host = super::settled(context, config).await?;
        let set = host.plugins();
        if let Some(own) = names::first_party(&set, &options.name) {
            let selection = select(context, host.config(), &own.good, options, &asked)?;
            let is_plain = lifetime == GrantLifetime::Always && options.terms.mode.is_none();
            if options.what.all && is_plain {
                return restore(&host, &own.good, options).await;
            }
            carry_out(context, &host, &own.good, selection, lifetime, options).await?;
            return Ok(Exit::Success);
        }
        super::must_be_on(host.config())?;
        let standing = names::standing(&set, &options.name, &context.first_party())?;
        let good = wishing(context, &host, standing, grantable(standing)?, &asked).await?;
        let selection = select(context, host.config(), &good, options, &asked)?;
        if options.what.all && !agreed(standing, &selection, options.yes) {
            if options.json.json {
                display::print_json(&json!({ "name": options.name, "granted": [], "notes": [] }))?;
            }
            return Ok(Exit::Confirm);
        }
        carry_out(context, &host, &good, selection, lifetime, options).await?;
        Ok(Exit::Success)
    })
}

/// Gives a plugin of the program its default grants back.
async fn restore(host: &Host, own: &VettedPlugin, options: &PluginGrant) -> Result<Exit, CliError> {
    let name = own.plugin.id();
    let is_new = host.store().restore_defaults(name.clone()).await?;
    let granted = rights::default_grants(own, host.config());
    if options.json.json {
        display::print_json(&json!({
            "name": name,
            "granted": granted.iter().map(display::grant_json).collect::<Value>(),
            "notes": [],
        }))?;
        return Ok(Exit::Success);
    }
    let mut page = Page::new();
    page.line(
        0,
        &match is_new {
            true => format!("plugin `{name}` has its default grants again"),
            false => format!("plugin `{name}` had its default grants already"),
        },
    );
    for grant in &granted {
        page.line(1, &display::grant(grant));
    }
    page.print()?;
    Ok(Exit::Success)
}

/// What was typed, read.
pub(super) fn asked(what: &Selectors) -> Result<Vec<RequestedItem>, ManageError> {
    let Selectors {
        directories,
        hosts,
        programs,
        variables,
        limits,
        secrets,
        embedders,
        tools,
        all: _,
    } = what;
    let mut asked: Vec<RequestedItem> = directories
        .iter()
        .map(|text| RequestedItem::directory(text))
        .collect();
    for text in hosts {
        asked.push(RequestedItem::host(text)?);
    }
    asked.extend(programs.iter().cloned().map(RequestedItem::Program));
    asked.extend(variables.iter().cloned().map(RequestedItem::Variable));
    for text in limits {
        asked.push(RequestedItem::limit(text)?);
    }
    for text in secrets {
        asked.push(RequestedItem::secret(text)?);
    }
    asked.extend(embedders.iter().cloned().map(RequestedItem::Embedder));
    asked.extend(tools.iter().cloned().map(RequestedItem::Tool));
    Ok(asked)
}

fn lifetime(how_long: &HowLong) -> Result<GrantLifetime, CliError> {
    let HowLong {
        once,
        session,
        until,
    } = how_long;
    Ok(match (once, session, until) {
        (true, _, _) => GrantLifetime::Once,
        (_, Some(conversation), _) => GrantLifetime::Session {
            conversation: *conversation,
        },
        (_, _, Some(text)) => GrantLifetime::Until {
            at_ms: time::end(text, now_ms()).map_err(CliError::user)?,
        },
        _ => GrantLifetime::Always,
    })
}

fn mode(mode: GrantMode) -> Mode {
    match mode {
        GrantMode::Observe => Mode::Observe,
        GrantMode::Ask => Mode::Ask,
        GrantMode::Deny => Mode::Deny,
    }
}

/// The plugin, when it is what was accepted: a grant is for exactly that.
fn grantable(standing: &PluginStanding) -> Result<&Arc<VettedPlugin>, ManageError> {
    let name = &standing.name;
    let cannot = |state: &str, hint: Option<String>| ManageError::State {
        name: name.clone(),
        state: state.to_owned(),
        hint,
    };
    match (&standing.status, &standing.good) {
        (Status::Active | Status::Disabled, Some(good)) if !standing.has_changed => Ok(good),
        (Status::Active | Status::Disabled, Some(_)) | (Status::Changed, _) => Err(cannot(
            "is not what was accepted and can be granted nothing",
            Some(format!(
                "look at the changes with `zeph-host plugin approve {name}`"
            )),
        )),
        (Status::Quarantined(reason), _) => Err(cannot(
            &format!("is not used and can be granted nothing: {reason}"),
            None,
        )),
        _ => Err(cannot(
            "is still being loaded",
            Some("try again".to_owned()),
        )),
    }
}

/// The plugin; with wishes for what was asked for, where its author made none and the operator may.
async fn wishing(
    context: &Context,
    host: &Host,
    standing: &PluginStanding,
    good: &Arc<VettedPlugin>,
    asked: &[RequestedItem],
) -> Result<Arc<VettedPlugin>, CliError> {
    let wanted = SelectionContext {
        plugin: good.plugin.id(),
        manifest: &good.manifest,
        config: host.config(),
        base: context.surroundings.base(),
    };
    let is_enough = asked.is_empty() || selection::select(asked, wanted).is_ok();
    if is_enough || !wishes::may_be_written(good) {
        return Ok(Arc::clone(good));
    }
    let manifest = wishes::with(&good.manifest, asked, wanted.base)?;
    let wider = good.with_wants(&manifest.wants);
    let manifest = &wider.manifest;
    selection::select(asked, SelectionContext { manifest, ..wanted })?;
    let folder = &host.config().plugins.folders[standing.folder_idx];
    let name = &standing.name;
    let WrittenRequests { old, new } = wishes::write(folder, name, manifest, Some(good.pin))?;
    let place = (host.config(), host.store());
    carrying::carry(place, folder, name, (old, new)).await?;
    let lock = lock_of(folder);
    context.notes(&[format!(
        "plugin `{name}` came without a manifest; the requests that you added are in `{}`",
        lock.display()
    )]);
    Ok(Arc::new(wider))
}

fn select(
    context: &Context,
    config: &Config,
    good: &VettedPlugin,
    options: &PluginGrant,
    asked: &[RequestedItem],
) -> Result<GrantSelection, CliError> {
    let wanted = SelectionContext {
        plugin: good.plugin.id(),
        manifest: &good.manifest,
        config,
        base: context.surroundings.base(),
    };
    let selection = match options.what.all {
        true => selection::all(wanted),
        false => selection::select(asked, wanted)?,
    };
    if !selection.capabilities.is_empty() {
        return Ok(selection);
    }
    let name = good.plugin.id();
    if good.manifest.wants.is_empty() {
        let error = CliError::user(format!(
            "plugin `{name}` requests nothing, so there is nothing to grant"
        ));
        return Err(match wishes::may_be_written(good) {
            true => error.hint(format!(
                "its author wrote no manifest; name what it is to get, such as `{} plugin grant {name} --dir .:read`",
                context.program()
            )),
            false => error,
        });
    }
    let everything = selection::all(wanted).capabilities;
    Err(CliError::user("nothing to grant was named").hint(format!(
        "name some of it, or `--all`: `{}`",
        grant_command(&context.program(), name, &everything)
    )))
}

/// Shows all of it, with the reasons, and asks.
fn agreed(standing: &PluginStanding, selection: &GrantSelection, yes: bool) -> bool {
    if yes {
        return true;
    }
    let name = &standing.name;
    let mut page = Page::for_stderr();
    page.line(0, &format!("plugin `{name}` would get"));
    for capability in &selection.capabilities {
        page.line(1, &capability.to_string());
    }
    let good = standing.good.as_ref();
    for want in good.iter().flat_map(|good| &good.manifest.wants) {
        page.dim(
            1,
            &format!("of {} it says: {}", want.capability, want.reason),
        );
    }
    page.print_to_stderr();
    match ask("Grant all of it?", false) {
        Answer::Yes => true,
        Answer::No => {
            out::remark("nothing was granted");
            false
        }
        Answer::Nobody => {
            out::note("nothing was granted; `--all` needs confirmation on a terminal, or `--yes`");
            false
        }
    }
}

/// Secrets that were granted and have no value yet, one sentence each.
fn unset(config: &Config, granted: &[GrantRecord]) -> Vec<String> {
    let folder = known_secrets::folder(config);
    let Some(Ok(stored)) = folder.map(|folder| folder.list()) else {
        return Vec::new();
    };
    let used = granted.iter().filter_map(|grant| match &grant.capability {
        Capability::Secret(used) => Some(&used.name),
        _ => None,
    });
    used.filter(|name| !stored.iter().any(|secret| secret.name == **name))
        .map(|name| {
            format!("there is no secret `{name}` yet; `zeph-host secret set {name}` sets it")
        })
        .collect()
}

/// Addresses that were granted and stay closed, one sentence each.
fn closed(config: &Config, granted: &[GrantRecord]) -> Vec<String> {
    let dialer = Dialer::new(Arc::clone(&config.egress.private));
    let addresses = granted.iter().filter_map(|grant| match &grant.capability {
        Capability::Host(access) => Some(Destination {
            host: access.name.host()?.clone(),
            port: access.name.port(),
        }),
        _ => None,
    });
    addresses
        .filter_map(|address| {
            let why = dialer.forbidden_literal(&address)?;
            let opening = private_host_entry(&address);
            Some(format!(
                "`{address}` is {why}: it stays closed until the configuration file has {opening}"
            ))
        })
        .collect()
}

async fn carry_out(
    context: &Context,
    host: &Host,
    good: &VettedPlugin,
    selection: GrantSelection,
    lifetime: GrantLifetime,
    options: &PluginGrant,
) -> Result<(), CliError> {
    let name = good.plugin.id();
    let store = host.store();
    carrying::remember_folders(host.config());
    let granted = store
        .add_grants_in_mode(
            name.clone(),
            good.pin,
            selection.capabilities,
            (lifetime, options.terms.mode.map(mode)),
            now_ms(),
        )
        .await?;
    if options.json.json {
        return display::print_json(&json!({
            "name": name,
            "granted": granted.iter().map(display::grant_json).collect::<Value>(),
            "notes": selection.notes,
        }));
    }
    context.notes(&selection.notes);
    context.notes(&unset(host.config(), &granted));
    context.notes(&closed(host.config(), &granted));
    let mut page = Page::new();
    let head = match options.terms.mode {
        Some(GrantMode::Deny) => format!("from plugin `{name}` is withheld"),
        _ => format!("plugin `{name}` was granted"),
    };
    page.line(0, &head);
    for grant in &granted {
        page.line(1, &display::grant(grant));
    }
    page.print()
}
