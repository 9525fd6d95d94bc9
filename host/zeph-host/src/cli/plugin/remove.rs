//! `zeph-host plugin remove`: deletes a plugin, its pin and its grants.

use serde_json::json;
use zeph_config::Config;
use zeph_core::id::PluginId;
use zeph_plugins::manage::names::{self, KnownPlugin};
use zeph_plugins::manage::{ManageError, forget};
use zeph_plugins::record::Records;

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
    let found = match names::find(&known, &options.name, &context.first_party()) {
        Ok(found) => found.clone(),
        Err(error @ ManageError::Unknown { .. }) => {
            let granted = only_granted(context, &config, &options.name)?;
            granted.ok_or(error)?
        }
        Err(error) => return Err(error.into()),
    };
    let found = &found;
    if !agreed(found, options.yes) {
        if options.json.json {
            display::print_json(&json!({ "name": found.name, "removed": false }))?;
        }
        return Ok(Exit::Confirm);
    }
    let records = Records::new(config.engine.cache_dir.as_deref());
    let store = context.store(&config)?;
    let n_grants = context::block_on(async { Ok(forget::ungrant(found, &known, &store).await?) })?;
    let forgotten = forget::delete(found, &records, n_grants)?;
    let name = &found.name;
    if options.json.json {
        let mut members = display::members(json!(forgotten));
        members.insert("name".to_owned(), json!(name));
        members.insert("removed".to_owned(), json!(true));
        display::print_json(&members.into())?;
        return Ok(Exit::Success);
    }
    let others = known
        .iter()
        .filter(|known| known.name == *name && known.folder != found.folder);
    for other in others.filter_map(|known| known.file.as_ref()) {
        let file = other.display();
        context.notes(&[format!("there is another plugin `{name}`: `{file}`")]);
    }
    let mut page = Page::new();
    page.line(0, &format!("plugin `{name}` is removed"));
    page.print()?;
    Ok(Exit::Success)
}

/// What is left of a plugin whose file and pin are gone, if it was granted something.
fn only_granted(
    context: &Context,
    config: &Config,
    name: &str,
) -> Result<Option<KnownPlugin>, CliError> {
    let folder = config.plugins.add_to.as_ref();
    let Some(folder) = folder.filter(|_| PluginId::problem(name).is_none()) else {
        return Ok(None);
    };
    let name = PluginId(name.to_owned());
    let store = context.store(config)?;
    let grants = store.list_grants(Some(name.clone()));
    let grants = context::block_on(async { Ok(grants.await?) })?;
    Ok((!grants.is_empty()).then(|| KnownPlugin {
        name,
        folder: folder.clone(),
        file: None,
        locked: None,
    }))
}

/// Whether it may be done; if not, that is said.
fn agreed(known: &KnownPlugin, yes: bool) -> bool {
    let answer = ask(&question(known), yes);
    match answer {
        Answer::Yes => {}
        Answer::No => out::remark("nothing was removed"),
        Answer::Nobody => {
            out::note("nothing was removed: that needs a person to agree, or `--yes`");
        }
    }
    answer == Answer::Yes
}

fn question(known: &KnownPlugin) -> String {
    let name = &known.name;
    match &known.file {
        Some(file) => format!(
            "Delete `{}`, and what was accepted of plugin `{name}` and granted to it?",
            file.display()
        ),
        None => format!("Forget what was accepted of plugin `{name}` and granted to it?"),
    }
}
