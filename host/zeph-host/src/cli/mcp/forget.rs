//! `zeph-host mcp forget`: removes what is kept of a server that no configuration has, so that one of its name is a new one.
//!
//! What the server itself wrote stays, in its private home: that is said.

use std::sync::Arc;

use serde_json::json;
use zeph_config::{Config, StoreLocation};
use zeph_core::failure::one_line;
use zeph_core::id::{ApprovalId, ServerName};
use zeph_core::nearest::nearest;
use zeph_core::policy::{ToolOwner, TrustSubject};
use zeph_core::server;
use zeph_mcp::client::oauth::LoginStore as _;
use zeph_plugins::lock::Lock;
use zeph_plugins::manage::ManageError;
use zeph_store::Store;

use super::is_json;
use super::wrapped::Outside;
use crate::cli::args::McpApprove;
use crate::cli::ask::{Answer, ask};
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::known_secrets::KnownSecrets;
use crate::servers::login::Logins;
use crate::servers::{self, pending};

/// What is kept of a server.
struct Kept {
    is_pinned: bool,
    login: Option<Logins>,
    approvals: Vec<ApprovalId>,
    trust: Vec<TrustSubject>,
    store: Option<Store>,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpApprove) -> Result<Exit, CliError> {
    let config = context.config()?;
    let name = ServerName::new(options.name.as_str());
    let name = name.map_err(|bad| CliError::user(bad.to_string()))?;
    if config.mcp_servers.contains_key(&name) {
        let problem = format!("MCP server `{name}` is in the configuration");
        return Err(CliError::user(problem).hint(format!(
            "remove [mcp.servers.{name}] first; `{} mcp approve {name}` accepts what changed in it",
            context.program()
        )));
    }
    context::block_on(shown_and_forgotten(context, &config, &name, options))
}

async fn shown_and_forgotten(
    context: &Context,
    config: &Config,
    name: &ServerName,
    options: &McpApprove,
) -> Result<Exit, CliError> {
    let kept = kept(context, config, name).await?;
    let outside = Outside::look(context, config);
    if kept.is_nothing() {
        return Err(unknown(context, &outside, name));
    }
    let question = format!(
        "Forget what was accepted of MCP server `{name}`, its login, and what was approved and set for its tools?"
    );
    if !agreed(&question, options.yes) {
        if is_json(&options.json) {
            out::json(&json!({ "name": name, "forgotten": false }))?;
        }
        return Ok(Exit::Confirm);
    }
    let home = config.mcp_homes.as_deref();
    let home = home.map(|homes| homes.join(name.as_str()));
    let home = home.filter(|home| home.is_dir());
    let told = json!({
        "name": name,
        "forgotten": true,
        "was_pinned": kept.is_pinned,
        "was_logged_in": kept.login.is_some(),
        "approvals": kept.approvals.len(),
        "trust": kept.trust.len(),
        "home": home,
    });
    forget(config, name, kept).await?;
    match is_json(&options.json) {
        true => out::json(&told)?,
        false => out::remark(&format!("MCP server `{name}` is forgotten")),
    }
    let mut notes = Vec::new();
    if let Some(home) = home {
        let home = home.display();
        notes.push(format!(
            "what it wrote into its private home is left in `{home}`"
        ));
    }
    let started = outside.wrapped.get(name.as_str());
    let files = started.map(|standing| standing.files.iter());
    notes.extend(
        files.into_iter().flatten().map(|file| {
            format!("{file} starts it through `zeph-host wrap`; it is pinned anew then")
        }),
    );
    context.notes(&notes);
    Ok(Exit::Success)
}

impl Kept {
    fn is_nothing(&self) -> bool {
        let is_kept = self.is_pinned || self.login.is_some();
        !is_kept && self.approvals.is_empty() && self.trust.is_empty()
    }
}

async fn kept(context: &Context, config: &Config, name: &ServerName) -> Result<Kept, CliError> {
    let lock = config.mcp_lock.as_deref().map(Lock::read);
    let lock = lock.transpose().map_err(ManageError::from)?;
    let locked = || lock.iter().flat_map(Lock::servers).map(|one| &one.name);
    let secrets = Arc::new(KnownSecrets::open(config));
    let logins = Logins::new(config, &secrets);
    let store = match &config.store {
        StoreLocation::File(path) if !path.exists() => None,
        StoreLocation::Memory => None,
        StoreLocation::File(_) | StoreLocation::Server(_) => Some(context.store(config)?),
    };
    let (mut approvals, mut trust) = (Vec::new(), Vec::new());
    if let Some(store) = &store {
        // A name that begins like those of its tools may be another server's.
        let others = config.mcp_servers.keys().chain(locked());
        let names: Vec<&ServerName> = others.chain([name]).collect();
        let is_its = |tool: &str| server::owner(tool, names.iter().copied()) == Some(name);
        let stored = store.list_approvals(now_ms()).await?.into_iter();
        let its = stored.filter(|approval| is_its(approval.call.tool.as_str()));
        approvals.extend(its.map(|approval| approval.id));
        let subjects = store.trust().await?.records.into_iter();
        let subjects = subjects.map(|record| record.subject);
        trust.extend(subjects.filter(|subject| subject.owner == ToolOwner::Server(name.clone())));
    }
    Ok(Kept {
        is_pinned: locked().any(|locked| locked == name),
        login: logins.filter(|logins| !matches!(logins.load(name.as_str()), Ok(None))),
        approvals,
        trust,
        store,
    })
}

/// The pin goes last: an interrupted command is found by it.
async fn forget(config: &Config, name: &ServerName, kept: Kept) -> Result<(), CliError> {
    if let Some(logins) = &kept.login {
        logins.forget(name).await.map_err(super::login::failed)?;
    }
    if let Some(store) = &kept.store {
        for id in kept.approvals {
            store.revoke_approval(id).await?;
        }
        for subject in kept.trust {
            store.reset_trust(subject).await?;
        }
    }
    pending::forget(config, name);
    servers::forget_notes(config, name).map_err(|error| {
        CliError::internal(format!(
            "the notes on MCP server `{name}` cannot be removed"
        ))
        .because(error)
    })?;
    if let Some(lock) = config.mcp_lock.as_deref() {
        zeph_plugins::server::forget(lock, name).map_err(ManageError::from)?;
    }
    Ok(())
}

/// Whether it may be done; if not, that is said.
fn agreed(question: &str, yes: bool) -> bool {
    let answer = ask(question, yes);
    match answer {
        Answer::Yes => {}
        Answer::No => out::remark("nothing was forgotten"),
        Answer::Nobody => {
            out::note("nothing was forgotten: that needs a person to agree, or `--yes`");
        }
    }
    answer == Answer::Yes
}

fn unknown(context: &Context, outside: &Outside, name: &ServerName) -> CliError {
    let shown = one_line(name.as_str(), 80);
    let near = nearest(&shown, outside.wrapped.keys().map(String::as_str));
    let problem = match near {
        Some(near) => format!("nothing is kept of an MCP server `{shown}`; did you mean `{near}`?"),
        None => format!("nothing is kept of an MCP server `{shown}`"),
    };
    CliError::user(problem).hint(format!("`{} mcp list` lists them", context.program()))
}
