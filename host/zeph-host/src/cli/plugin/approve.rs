//! `zeph-host plugin approve`: shows what is different, asks, and pins exactly what was shown.

use serde_json::{Value, json};
use zeph_core::id::PluginId;
use zeph_plugins::diff::{UpdateRisk, yanked_warning};
use zeph_plugins::manage::approval::{self, ChangedPlugin};
use zeph_plugins::manage::carrying;
use zeph_plugins::manage::holdings::Holdings;
use zeph_plugins::manage::names;
use zeph_store::GrantRecord;

use super::agree;
use super::consent;
use super::display::{self, Page};
use super::indexes;
use crate::cli::args::{Consent, PluginApprove};
use crate::cli::ask::accepted;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::clock::now_ms;
use crate::host::Host;

/// A grant, and its effect after the plugin is approved.
type CarriedGrant = (GrantRecord, &'static str);

/// Runs the command.
pub(super) fn run(context: &Context, typed: &PluginApprove) -> Result<Exit, CliError> {
    let options = &typed.plugin;
    let config = context.config()?;
    super::must_be_on(&config)?;
    context::block_on(async {
        let host = super::settled(context, config).await?;
        let set = host.plugins();
        let standing = names::standing(&set, &options.name, &context.first_party())?;
        if standing.awaits_agreement {
            return agree::run(context, &host, standing, typed).await;
        }
        let folder = &host.config().plugins.folders[standing.folder_idx];
        let Some(mut approval) = approval::compare(standing, folder, now_ms())? else {
            nothing_changed(&standing.name, options.json.json)?;
            return Ok(Exit::Success);
        };
        let indexes = indexes::usable(context, host.config()).await?;
        let said = approval.good.version();
        if let Some(reason) = indexes::yanked(&indexes, &approval.new, said) {
            let changes = &mut approval.changes;
            changes.warn(UpdateRisk::Yanked, &yanked_warning(&reason));
        }
        let carried = carried(&host, &approval).await?;
        if !options.json.json {
            page(&approval, &carried).print()?;
        }
        let is_agreed = agreed(&approval, typed);
        if is_agreed {
            accept(&host, &approval).await?;
        }
        print(&approval, &carried, is_agreed, options.json.json)?;
        Ok(match is_agreed {
            true => Exit::Success,
            false => Exit::Confirm,
        })
    })
}

/// The grants of the accepted version, and those that this one has already, each with its effect after approval.
async fn carried(host: &Host, approval: &ChangedPlugin) -> Result<Vec<CarriedGrant>, CliError> {
    let name = approval.name().clone();
    let mut grants = host.store().list_grants(Some(name)).await?;
    let (old_pin, new_pin) = (approval.old.pin, approval.good.pin);
    grants.retain(|grant| [old_pin, new_pin].contains(&grant.pin));
    let is_bound = |grant: &GrantRecord| grant.pin == new_pin && new_pin != old_pin;
    let bound: Vec<i64> = grants
        .iter()
        .filter(|one| is_bound(one))
        .map(|one| one.id)
        .collect();
    grants.iter_mut().for_each(|grant| grant.pin = new_pin);
    let manifest = &approval.good.manifest;
    let holdings = Holdings::new(manifest, new_pin, grants.clone(), host.config(), now_ms());
    let fate = |grant: GrantRecord| {
        let idle = holdings.idle.iter().find(|(idle, _)| idle.id == grant.id);
        let fate = match (idle, bound.contains(&grant.id)) {
            (Some((_, reason)), _) => *reason,
            (None, true) => "granted to this version already",
            (None, false) => "carried over",
        };
        (grant, fate)
    };
    Ok(grants.into_iter().map(fate).collect())
}

fn page(approval: &ChangedPlugin, carried: &[CarriedGrant]) -> Page {
    let mut page = Page::new();
    page.name(0, &approval.name().0, "is not what was accepted");
    page.diff(&approval.changes.lines());
    if !carried.is_empty() {
        page.head("GRANTS");
    }
    for (grant, fate) in carried {
        page.line(1, &format!("{}; {fate}", display::grant(grant)));
    }
    page
}

fn agreed(approval: &ChangedPlugin, typed: &PluginApprove) -> bool {
    let options = &typed.plugin;
    let name = approval.name();
    let command = format!("zeph-host plugin approve {name}");
    let risks = approval.changes.risks();
    if !risks.is_empty() {
        let consent = Consent {
            yes: options.yes,
            accept: typed.accept.clone(),
        };
        let question = format!("Accept plugin `{name}` as it is now?");
        return consent::given((&question, &command), &consent, options.json.json, risks);
    }
    let subject = format!("plugin `{name}`");
    let asked = (options.json.json, options.yes);
    accepted((&subject, "plugin"), &command, asked)
}

/// Pins what was compared and carries the grants over. The pin first: a failure after it costs grants and gives none.
pub(super) async fn accept(host: &Host, approval: &ChangedPlugin) -> Result<(), CliError> {
    approval.accept()?;
    let pins = (approval.old.pin, approval.new.pin);
    let place = (host.config(), host.store());
    let carried = carrying::carry(place, &approval.folder, approval.name(), pins).await;
    carried.map_err(|error| {
        CliError::from(error)
            .hint("the plugin is approved, and what it was granted has to be granted again")
    })
}

fn print(
    approval: &ChangedPlugin,
    carried: &[CarriedGrant],
    is_agreed: bool,
    json: bool,
) -> Result<(), CliError> {
    let name = approval.name();
    if json {
        let grants = carried.iter().map(|(grant, fate)| {
            let mut members = display::members(display::grant_json(grant));
            members.insert("fate".to_owned(), json!(fate));
            Value::Object(members)
        });
        return display::print_json(&json!({
            "name": name,
            "changed": true,
            "approved": is_agreed,
            "changes": approval.changes,
            "grants": grants.collect::<Value>(),
        }));
    }
    if !is_agreed {
        return Ok(());
    }
    let mut page = Page::new();
    page.head(&format!("plugin `{name}` is approved"));
    if approval.old.disabled {
        page.line(
            0,
            &format!("it stays off until `zeph-host plugin enable {name}`"),
        );
    }
    page.print()
}

fn nothing_changed(name: &PluginId, json: bool) -> Result<(), CliError> {
    if json {
        return display::print_json(&json!({ "name": name, "changed": false, "approved": true }));
    }
    let mut page = Page::new();
    page.line(
        0,
        &format!("plugin `{name}` is what was accepted; there is nothing to approve"),
    );
    page.print()
}
