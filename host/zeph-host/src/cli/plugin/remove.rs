//! `zeph-host plugin remove`: deletes a plugin, its pin and, unless others may use them, its grants.

use serde_json::{Value, json};
use zeph_config::{Config, StoreLocation};
use zeph_core::id::PluginId;
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::carrying::is_used_elsewhere;
use zeph_plugins::manage::forget::{PluginRemoval, RemovedPlugin};
use zeph_plugins::manage::names::{self, KnownPlugin};
use zeph_plugins::record::Records;
use zeph_store::{GrantRecord, Revoke, Store};

use super::display::{self, Page};
use crate::cli::args::ConfirmedPlugin;
use crate::cli::ask::{Answer, ask};
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;

/// Runs the command.
pub(super) fn run(context: &Context, options: &ConfirmedPlugin) -> Result<Exit, CliError> {
    let config = context.config()?;
    let known = names::removable(&config.plugins.typed_first())?;
    match names::find(&known, &options.name, &context.first_party()) {
        Ok(found) => remove(context, &config, (found, &known), options),
        Err(error @ ManageError::Unknown { .. }) => {
            let store = context.store(&config)?;
            context::block_on(async {
                let name = PluginId(options.name.clone());
                let grants = store.list_grants(Some(name.clone())).await?;
                match (grants.is_empty(), &config.store) {
                    (true, _) => Err(error.into()),
                    // Here nobody has it; what other hosts have is not known.
                    (false, StoreLocation::Server(_)) => Err(CliError::from(error).hint(format!(
                        "other hosts of the store may use what it was granted; `{} plugin revoke {name} --all` revokes it for all of them",
                        context.program()
                    ))),
                    (false, _) => revoke(&store, &name, &grants, options).await,
                }
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn remove(
    context: &Context,
    config: &Config,
    (found, known): (&KnownPlugin, &[KnownPlugin]),
    options: &ConfirmedPlugin,
) -> Result<Exit, CliError> {
    let name = &found.name;
    if !agreed(&question(config, found), options.yes) {
        return not_agreed(name, options);
    }
    let records = Records::new(config.engine.cache_dir.as_deref());
    let store = context.store(config)?;
    let removal = PluginRemoval::begin(found)?;
    context::block_on(async {
        let n_grants = removal.ungrant(config, &store).await?;
        let left = store.list_grants(Some(name.clone())).await?;
        let pin = removal.pin();
        let (kept, left): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|grant| pin == Some(grant.pin));
        let removed = removal.delete(&records)?;
        if options.json.json {
            print_json(name, &removed, n_grants, &kept)?;
        } else {
            let mut page = Page::new();
            page.line(0, &format!("plugin `{name}` is removed"));
            page.print()?;
        }
        note_kept(context, name, &kept);
        note_others(context, (found, known), &left);
        Ok(Exit::Success)
    })
}

fn print_json(
    name: &PluginId,
    removed: &RemovedPlugin,
    n_grants: usize,
    kept: &[GrantRecord],
) -> Result<(), CliError> {
    let mut members = display::members(json!(removed));
    members.insert("name".to_owned(), json!(name));
    members.insert("removed".to_owned(), json!(true));
    members.insert("grants".to_owned(), json!(n_grants));
    let kept: Value = kept.iter().map(display::grant_json).collect();
    members.insert("kept".to_owned(), kept);
    display::print_json(&members.into())
}

/// Says what stays of what it was granted, because others may use it, and what revokes that.
fn note_kept(context: &Context, name: &PluginId, kept: &[GrantRecord]) {
    if kept.is_empty() {
        return;
    }
    let ids: Vec<String> = kept
        .iter()
        .map(|grant| format!("--id {}", grant.id))
        .collect();
    let grants: Vec<String> = kept.iter().map(display::grant).collect();
    context.notes(&[format!(
        "what plugin `{name}` was granted stays, because other hosts of the store, or another folder, may use it ({}); once none does, `{} plugin revoke {name} {}` revokes it",
        grants.join(", "),
        context.program(),
        ids.join(" ")
    )]);
}

/// Says what has the name still: plugins in other folders, and grants that count for none of them.
fn note_others(
    context: &Context,
    (found, known): (&KnownPlugin, &[KnownPlugin]),
    left: &[GrantRecord],
) {
    let name = &found.name;
    let is_other = |other: &&KnownPlugin| other.name == *name && other.folder != found.folder;
    let others: Vec<&KnownPlugin> = known.iter().filter(is_other).collect();
    let files = others.iter().filter_map(|other| other.file.as_ref());
    let mut notes: Vec<String> = files
        .map(|file| format!("there is another plugin `{name}`: `{}`", file.display()))
        .collect();
    let counts = |grant: &GrantRecord| others.iter().any(|other| other.pin() == Some(grant.pin));
    if !left.iter().all(counts) {
        notes.push(format!(
            "grants of other components named `{name}` remain; `{} plugin revoke {name} --all` revokes them",
            context.program()
        ));
    }
    context.notes(&notes);
}

/// Revokes what was granted under a name that no plugin of the folders has: it may be the name of one in a folder that was not typed this time.
async fn revoke(
    store: &Store,
    name: &PluginId,
    grants: &[GrantRecord],
    options: &ConfirmedPlugin,
) -> Result<Exit, CliError> {
    if !options.yes {
        let mut page = Page::for_stderr();
        page.line(0, &format!("no plugin is named `{name}`; it was granted"));
        push_grants(&mut page, grants);
        page.print_to_stderr();
    }
    if !agreed(&format!("Revoke what `{name}` was granted?"), options.yes) {
        return not_agreed(name, options);
    }
    let ids = grants.iter().map(|grant| grant.id).collect();
    let n_revoked = store.revoke_grants(name.clone(), Revoke::Ids(ids)).await?;
    if options.json.json {
        display::print_json(&json!({
            "name": name,
            "removed": false,
            "file": null,
            "was_pinned": false,
            "grants": n_revoked,
            "revoked": grants.iter().map(bound_json).collect::<Value>(),
        }))?;
        return Ok(Exit::Success);
    }
    let mut page = Page::new();
    page.line(
        0,
        &format!("no plugin is named `{name}`; what it was granted is revoked"),
    );
    push_grants(&mut page, grants);
    page.print()?;
    Ok(Exit::Success)
}

/// Grants, each with the component that it counts for.
fn push_grants(page: &mut Page, grants: &[GrantRecord]) {
    for grant in grants {
        page.line(1, &display::grant(grant));
        page.dim(2, &format!("for component {}", grant.pin.wasm));
    }
}

fn bound_json(grant: &GrantRecord) -> Value {
    let mut members = display::members(display::grant_json(grant));
    members.insert("pin".to_owned(), json!(grant.pin));
    members.into()
}

/// Whether it may be done; if not, that is said.
fn agreed(question: &str, yes: bool) -> bool {
    let answer = ask(question, yes);
    match answer {
        Answer::Yes => {}
        Answer::No => out::remark("nothing was removed"),
        Answer::Nobody => {
            out::note("nothing was removed: that needs a person to agree, or `--yes`");
        }
    }
    answer == Answer::Yes
}

fn not_agreed(name: &PluginId, options: &ConfirmedPlugin) -> Result<Exit, CliError> {
    if options.json.json {
        display::print_json(&json!({ "name": name, "removed": false }))?;
    }
    Ok(Exit::Confirm)
}

fn question(config: &Config, known: &KnownPlugin) -> String {
    let name = &known.name;
    let is_granted = |pin| !is_used_elsewhere(config, (name, pin), &known.folder);
    let granted = match known.pin().is_none_or(is_granted) {
        true => " and granted to it",
        false => "",
    };
    match &known.file {
        Some(file) => format!(
            "Delete `{}`, and what was accepted of plugin `{name}`{granted}?",
            file.display()
        ),
        None => format!("Forget what was accepted of plugin `{name}`{granted}?"),
    }
}
