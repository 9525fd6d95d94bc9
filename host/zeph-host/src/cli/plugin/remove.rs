//! `zeph-host plugin remove`: deletes a plugin, its pin and its grants.

use serde_json::json;
use zeph_plugins::manage::forget;
use zeph_plugins::manage::names::{self, KnownPlugin};
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
    let found = names::find(&known, &options.name, &context.first_party())?;
    if !agreed(found, options.yes) {
        if options.json.json {
            display::print_json(&json!({ "name": found.name, "removed": false }))?;
        }
        return Ok(Exit::Confirm);
    }
    let records = Records::new(config.engine.cache_dir.as_deref());
    let store = context.store(&config)?;
    let mut forgotten = forget::delete(found, &records)?;
    context::block_on(async {
        forget::ungrant(found, &store, &mut forgotten).await?;
        Ok(())
    })?;
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
