//! `zeph-host plugin revoke`: revokes grants. It reads no plugin file, so it works even if the plugin is gone.

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_core::id::PluginId;
use zeph_plugins::manage::revocation::{self, RevocationTarget};
use zeph_plugins::manage::{ManageError, names};
use zeph_store::{GrantRecord, Store};

use super::display::{self, Page};
use crate::cli::args::PluginRevoke;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::clock::now_ms;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginRevoke) -> Result<Exit, CliError> {
    let asked = super::grant::asked(&options.what)?;
    let named = match options.what.all {
        true => RevocationTarget::All,
        false if asked.is_empty() && options.ids.is_empty() => {
            return Err(CliError::user("nothing to revoke was named").hint(
                "name it as `plugin grant` does, or `--id N` as `zeph-host plugin info` shows it, or `--all`",
            ));
        }
        false => RevocationTarget::These {
            asked: &asked,
            ids: &options.ids,
        },
    };
    let config = context.config()?;
    let store = context.store(&config)?;
    context::block_on(async {
        let name = PluginId(options.name.clone());
        let grants = store.list_grants(Some(name.clone())).await?;
        let mut unreadable = store.unreadable_grants().await?;
        unreadable.retain(|row| row.plugin == name.0);
        let is_own = context.first_party().contains(&name);
        let mut has_revoked = false;
        if is_own && options.what.all {
            has_revoked = store.revoke_defaults(name.clone(), now_ms()).await?;
            if grants.is_empty() && unreadable.is_empty() {
                print_own(&name, has_revoked, options.json.json)?;
                return Ok(Exit::Success);
            }
        }
        if is_own && grants.is_empty() && unreadable.is_empty() {
            let message = format!("plugin `{name}` has no grants besides its default ones");
            return Err(CliError::user(message).hint(format!(
                "`{program} plugin revoke {name} --all` revokes those; then grant what it is to keep",
                program = context.program()
            )));
        }
        if grants.is_empty() && unreadable.is_empty() {
            must_exist(context, &config, &store, &name).await?;
        }
        let base = context.surroundings.base();
        let plan = revocation::plan(&name, &grants, &unreadable, &named, base)?;
        let (revoked, rows) = (plan.revoked.clone(), plan.unreadable.clone());
        let kept = plan.carry_out(&name, &store, now_ms()).await?;
        if is_own && store.has_defaults(name.clone()).await? {
            context.notes(&[format!(
                "the default grants of plugin `{name}` still apply; `--all` revokes them, too"
            )]);
        }
        if has_revoked && !options.json.json {
            print_own(&name, has_revoked, false)?;
        }
        print(&name, &revoked, &rows, &kept, options.json.json)?;
        Ok(Exit::Success)
    })
}

/// What became of the default grants of a plugin of the program.
fn print_own(name: &PluginId, has_revoked: bool, json: bool) -> Result<(), CliError> {
    if json {
        return display::print_json(&json!({
            "name": name,
            "revoked": [],
            "defaults": has_revoked,
            "unreadable": [],
            "kept": [],
        }));
    }
    let mut page = Page::new();
    page.line(
        0,
        &match has_revoked {
            true => format!("the default grants of plugin `{name}` are revoked"),
            false => format!("the default grants of plugin `{name}` were revoked already"),
        },
    );
    page.dim(
        0,
        &format!("`zeph-host plugin grant {name} --all` gives them back"),
    );
    page.print()
}

/// Distinguishes a plugin without grants from an unknown name.
async fn must_exist(
    context: &Context,
    config: &Config,
    store: &Store,
    name: &PluginId,
) -> Result<(), CliError> {
    let known = names::known(&config.plugins.typed_first()).unwrap_or_default();
    let with_grants = store.list_grants(None).await?;
    let mut host = context.first_party();
    let found = names::find(&known, &name.0, &host);
    if let Err(ManageError::Unknown { .. }) = found {
        host.extend(with_grants.into_iter().map(|grant| grant.plugin));
    }
    names::find(&known, &name.0, &host)?;
    Ok(())
}

fn print(
    name: &PluginId,
    revoked: &[GrantRecord],
    rows: &[i64],
    kept: &[GrantRecord],
    json: bool,
) -> Result<(), CliError> {
    if json {
        return display::print_json(&json!({
            "name": name,
            "revoked": revoked.iter().map(display::grant_json).collect::<Value>(),
            "unreadable": rows,
            "kept": kept.iter().map(display::grant_json).collect::<Value>(),
        }));
    }
    let mut page = Page::new();
    page.line(0, &format!("of plugin `{name}` was revoked"));
    for grant in revoked {
        page.line(1, &display::grant(grant));
    }
    for row in rows {
        page.line(1, &format!("{row}: a grant that could not be read"));
    }
    if !kept.is_empty() {
        page.line(0, "of that stays");
    }
    for grant in kept {
        page.line(1, &display::grant(grant));
    }
    page.print()
}
