//! `zeph-host plugin info`: everything there is to know of one plugin.

use serde_json::{Value, json};
use zeph_config::lock_of;
use zeph_core::id::ToolName;
use zeph_core::tool::Tool;
use zeph_plugins::lock::{Lock, LockedPlugin};
use zeph_plugins::manage::holdings::{Holding, Holdings};
use zeph_plugins::manage::{names, selection, wishes};
use zeph_plugins::refusal::grant_command;
use zeph_plugins::set::{ManifestBy, PluginStanding, Status, VettedPlugin};
use zeph_store::{Reputation, UnreadableGrant};

use super::display::{self, Page};
use super::verify;
use crate::cli::args::PluginName;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::time;
use crate::clock::now_ms;
use crate::host::Host;
use crate::run::catalog;

/// Everything about a plugin of a folder.
struct Everything<'a> {
    standing: &'a PluginStanding,
    locked: Option<LockedPlugin>,
    holdings: Option<Holdings>,
    unreadable: Vec<UnreadableGrant>,
    /// Grants what is missing.
    command: Option<String>,
    /// What its recorded calls come to.
    reputation: Reputation,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginName) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        let host = super::settled(context, config).await?;
        let set = host.plugins();
        let is_dropped_in = set.standing(&options.name).is_some();
        if let (false, Some(own)) = (is_dropped_in, names::first_party(&set, &options.name)) {
            return first_party(&host, &own.good, options.json.json).await;
        }
        super::must_be_on(host.config())?;
        let standing = names::standing(&set, &options.name, &context.first_party())?;
        let everything = everything(context, &host, standing).await?;
        match options.json.json {
            true => display::print_json(&as_json(&everything)),
            false => as_page(&everything).print(),
        }?;
        Ok(Exit::Success)
    })
}

async fn everything<'a>(
    context: &Context,
    host: &Host,
    standing: &'a PluginStanding,
) -> Result<Everything<'a>, CliError> {
    let store = host.store();
    let name = &standing.name;
    let grants = store.list_grants(Some(name.clone())).await?;
    let mut unreadable = store.unreadable_grants().await?;
    unreadable.retain(|row| row.plugin == name.0);
    let config = host.config();
    let lock = Lock::read(&lock_of(&config.plugins.folders[standing.folder_idx]));
    let holdings = standing
        .good
        .as_ref()
        .map(|good| Holdings::new(&good.manifest, good.pin, grants, config, now_ms()));
    let missing = holdings.as_ref().map(Holdings::missing).unwrap_or_default();
    let missing = selection::possible(missing, config).capabilities;
    let command = !missing.is_empty();
    Ok(Everything {
        reputation: store.reputation(name.clone()).await?,
        standing,
        // What is wrong with a lock is the reason why the plugin is not in force, and shown as that.
        locked: lock.ok().and_then(|lock| lock.get(name).cloned()),
        holdings,
        unreadable,
        command: command.then(|| grant_command(&context.program(), name, &missing)),
    })
}

/// The tools of a plugin with the names they are offered by; their own when they are not offered.
fn tools<'a>(
    standing: &'a PluginStanding,
    good: &'a VettedPlugin,
) -> impl Iterator<Item = (&'a ToolName, &'a Tool)> {
    let own = good.plugin.tools().iter().enumerate();
    own.map(|(idx, tool)| (standing.tools.get(idx).unwrap_or(&tool.name), tool))
}

fn as_page(everything: &Everything<'_>) -> Page {
    let Everything {
        standing,
        locked,
        holdings,
        unreadable,
        command,
        reputation,
    } = everything;
    let mut page = Page::new();
    page.name(0, &standing.name.0, display::status(&standing.status));
    match &standing.status {
        Status::Quarantined(reason) => page.line(0, &format!("not used: {reason}")),
        _ if standing.has_changed => page.line(
            0,
            &format!("it is not what was accepted; `zeph-host plugin approve {}` shows what is different", standing.name),
        ),
        _ => &mut page,
    };
    let file = standing.path.to_string_lossy();
    page.push("\n").field("file", Some(&file));
    page.field("size", Some(&display::size(standing.n_bytes)));
    let Some(good) = &standing.good else {
        return page;
    };
    facts(&mut page, good, locked.as_ref());
    let signature = standing.signature.as_ref();
    page.field(
        "signed by",
        signature.map(verify::signature_text).as_deref(),
    );
    page.field("calls", Some(&calls(reputation)));
    if good.plugin.strategies().is_empty() {
        page.head("TOOLS");
    }
    for (name, tool) in tools(standing, good) {
        self::tool(&mut page, name, tool);
    }
    strategies(&mut page, standing, good);
    skipped(&mut page, good);
    if let Some(holdings) = holdings {
        wants(&mut page, holdings, nothing(good));
    }
    for row in unreadable {
        page.line(
            1,
            &format!(
                "{}: a grant that cannot be read and gives nothing: {}",
                row.id, row.problem
            ),
        );
    }
    if let Some(command) = command {
        page.head("TO GRANT WHAT IS MISSING").line(1, command);
    }
    page
}

fn facts(page: &mut Page, good: &VettedPlugin, locked: Option<&LockedPlugin>) {
    let about = &good.about;
    page.field("kind", Some(&about.kind))
        .field("version", about.version.as_deref())
        .field("about", about.description.as_deref())
        .field("authors", about.authors.as_deref())
        .field("licenses", about.licences.as_deref())
        .field("homepage", about.homepage.as_deref())
        .field("file is", Some(&good.pin.wasm.to_string()))
        .field("tools are", Some(&good.pin.tools.to_string()));
    let Some(locked) = locked else {
        return;
    };
    page.field("accepted", Some(&time::shown(locked.accepted_at_ms)));
    if locked.pin != good.pin {
        page.field("file was", Some(&locked.pin.wasm.to_string()))
            .field("tools were", Some(&locked.pin.tools.to_string()));
    }
}

/// What the recorded calls of a plugin come to, in words.
fn calls(reputation: &Reputation) -> String {
    let Reputation {
        n_calls,
        n_failed,
        n_refused,
        n_limited,
        failed_at_ms,
    } = reputation;
    let last = failed_at_ms.map(|at_ms| format!(", last {}", time::shown(at_ms)));
    format!(
        "{n_calls}: {n_failed} failed{}, {n_refused} refused, {n_limited} met a limit",
        last.unwrap_or_default()
    )
}

fn reputation_json(reputation: &Reputation) -> Value {
    json!({
        "calls": reputation.n_calls,
        "failures": reputation.n_failed,
        "refusals": reputation.n_refused,
        "limits_hit": reputation.n_limited,
        "last_failure": reputation.failed_at_ms.map(time::shown),
    })
}

fn tool(page: &mut Page, name: &ToolName, tool: &Tool) {
    let own = match *name == tool.name {
        true => String::new(),
        false => format!(" · its own name is {}", tool.name),
    };
    page.name(1, name.as_str(), &format!("{}{own}", catalog::effect(tool)));
    // The whole of it: what a model reads, its operator can read.
    page.text(2, &tool.description);
    page.dim(2, &tool.parameters.compact());
}

fn strategies(page: &mut Page, standing: &PluginStanding, good: &VettedPlugin) {
    let strategies = good.plugin.strategies();
    if !strategies.is_empty() {
        page.head("FILTER STRATEGIES");
    }
    for (idx, strategy) in strategies.iter().enumerate() {
        let name = standing.strategies.get(idx).unwrap_or(&strategy.name);
        page.name(1, &format!("wasm:{name}"), "");
        page.text(2, &strategy.description);
        page.dim(2, &strategy.options);
    }
}

fn skipped(page: &mut Page, good: &VettedPlugin) {
    if good.about.skipped.is_empty() {
        return;
    }
    page.head("FUNCTIONS THAT ARE NO TOOLS");
    for (name, reason) in &good.about.skipped {
        page.line(1, &format!("{name}: {reason}"));
    }
}

/// Why it wants nothing, when it does.
fn nothing(good: &VettedPlugin) -> &'static str {
    match wishes::may_be_written(good) {
        true => "nothing, and its author wrote no manifest: what you grant it will stand here",
        false => "nothing: it can be granted nothing",
    }
}

fn wants(page: &mut Page, holdings: &Holdings, nothing: &str) {
    page.head("WANTS");
    if holdings.wants.is_empty() {
        page.line(1, nothing);
    }
    for held in &holdings.wants {
        want(page, held);
    }
    if !holdings.idle.is_empty() {
        page.head("GRANTS THAT GIVE NOTHING");
    }
    for (grant, reason) in &holdings.idle {
        page.line(1, &format!("{}; {reason}", display::grant(grant)));
    }
}

fn want(page: &mut Page, held: &Holding) {
    page.name(1, &held.want.capability.to_string(), "");
    page.line(2, &format!("it says: {}", held.want.reason));
    if held.grants.is_empty() {
        page.dim(2, "not granted");
    }
    for grant in &held.grants {
        page.line(2, &format!("granted {}", display::grant(grant)));
    }
    if held.is_outside_policy() {
        page.dim(
            2,
            "of that `tools.file` leaves nothing here: it lies outside the allowed directories",
        );
    } else if !held.effective.is_empty() {
        page.dim(
            2,
            &format!("in force: {}", display::capabilities(&held.effective)),
        );
    }
    if !held.withheld.is_empty() {
        page.dim(
            2,
            &format!("withheld: {}", display::capabilities(&held.withheld)),
        );
    }
    if !held.grants.is_empty() && !held.missing.is_empty() {
        page.dim(
            2,
            &format!("missing: {}", display::capabilities(&held.missing)),
        );
    }
}

fn as_json(everything: &Everything<'_>) -> Value {
    let Everything {
        standing,
        locked,
        holdings,
        unreadable,
        command,
        reputation,
    } = everything;
    let mut members = display::members(json!({
        "name": standing.name,
        "file": standing.path,
        "folder": standing.path.parent(),
        "bytes": standing.n_bytes,
        "signature": standing.signature.as_ref().map(verify::signature_json),
        "accepted": locked.as_ref().map(|locked| json!({
            "wasm": locked.pin.wasm,
            "tools": locked.pin.tools,
            "at": time::shown(locked.accepted_at_ms),
        })),
        "disabled": locked.as_ref().is_some_and(|locked| locked.disabled),
        "unreadable_grants": unreadable.iter().map(display::unreadable_json).collect::<Value>(),
        "grant_command": command,
        "reputation": reputation_json(reputation),
    }));
    members.extend(display::status_json(&standing.status));
    if let Some(good) = &standing.good {
        members.extend(good_json(standing, good));
    }
    if let Some(holdings) = holdings {
        members.extend(holdings_json(holdings));
    }
    Value::Object(members)
}

fn good_json(standing: &PluginStanding, good: &VettedPlugin) -> serde_json::Map<String, Value> {
    let about = &good.about;
    let tools = tools(standing, good).map(|(name, tool)| {
        let mut members = display::members(json!(tool));
        members.remove("backend");
        members.insert("name".to_owned(), json!(name));
        members.insert("own_name".to_owned(), json!(tool.name));
        Value::Object(members)
    });
    display::members(json!({
        "pin": good.pin,
        "manifest": match good.manifest_by {
            ManifestBy::Author => "author",
            ManifestBy::Operator => "operator",
            ManifestBy::Nobody => "none",
        },
        "kind": about.kind,
        "version": about.version,
        "description": about.description,
        "authors": about.authors,
        "licences": about.licences,
        "homepage": about.homepage,
        "tools": tools.collect::<Value>(),
        "strategies": good.plugin.strategies(),
        "skipped": display::skipped_json(&about.skipped),
    }))
}

fn holdings_json(holdings: &Holdings) -> serde_json::Map<String, Value> {
    let wants = holdings.wants.iter().map(|held| {
        let mut members = display::members(json!(held.want));
        members.extend(display::members(json!({
            "here": held.here,
            "grants": held.grants.iter().map(display::grant_json).collect::<Value>(),
            "effective": held.effective,
            "withheld": held.withheld,
            "missing": held.missing,
            "is_granted": held.is_granted(),
        })));
        Value::Object(members)
    });
    let idle = holdings.idle.iter().map(|(grant, reason)| {
        let mut members = display::members(display::grant_json(grant));
        members.insert("reason".to_owned(), json!(reason));
        Value::Object(members)
    });
    let limits = holdings.limits();
    let limits = limits
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value)));
    display::members(json!({
        "wants": wants.collect::<Value>(),
        "idle_grants": idle.collect::<Value>(),
        "limits": limits.collect::<serde_json::Map<_, _>>(),
    }))
}

/// One that is part of the program: it is not in any folder, and has default grants.
async fn first_party(host: &Host, own: &VettedPlugin, json: bool) -> Result<Exit, CliError> {
    let name = own.plugin.id();
    let (has_defaults, holdings) = super::own_holdings(host, own).await?;
    let tools = own.plugin.tools();
    let reputation = host.store().reputation(name.clone()).await?;
    if json {
        let mut members = display::members(json!({
            "name": name,
            "reputation": reputation_json(&reputation),
            "status": "active",
            "kind": "part of the host",
            "pin": { "wasm": own.plugin.digest() },
            "default_grants": has_defaults,
            "tools": tools,
        }));
        members.extend(holdings_json(&holdings));
        display::print_json(&Value::Object(members))?;
        return Ok(Exit::Success);
    }
    let mut page = Page::new();
    page.name(0, &name.0, "part of the host");
    let revoke = "zeph-host plugin revoke";
    page.line(0, &match has_defaults {
        true => format!(
            "it has the default grants of `plugins.default_grants`; `{revoke} {name} --all` takes them"
        ),
        false => format!(
            "its default grants are revoked; `zeph-host plugin grant {name} --all` gives them back"
        ),
    });
    page.field("calls", Some(&calls(&reputation)));
    page.head("TOOLS");
    for tool in tools {
        self::tool(&mut page, &tool.name, tool);
    }
    wants(&mut page, &holdings, "nothing");
    page.print()?;
    Ok(Exit::Success)
}
