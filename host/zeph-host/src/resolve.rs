//! Stages 1 and 2 of the line: the tool a request names, its arguments read against the schema, the paths and the command among them,
//! and what the call would run with.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use zeph_config::Config;
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall, ToolRequest};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::command::CommandLine;
use zeph_core::failure::ToolFailure;
use zeph_core::policy::{CallTrust, SessionFacts};
use zeph_core::principal::Principal;
use zeph_core::tool::{Backend, Tool};
use zeph_core::user::run_as;
use zeph_egress::Egress;
use zeph_shell::analysis::analyse;
use zeph_shell::shell::ShellWork;
use zeph_store::{Agreement, TrustState};

use crate::authorisation::Authoriser;
use crate::builtin::BuiltinWork;
use crate::executor::backend::Backends;
use crate::network;
use crate::offers::Offer;
use crate::path;
use crate::replay::ReplayTerms;
use crate::scheduler;
use crate::servers::Servers;
use crate::session::Session;
use crate::work::Work;
use zeph_plugins::rights::{self, Rights, RightsSource};
use zeph_plugins::set::{InForce, PluginOrigin};

/// The plugin of the program whose tools take paths of files.
const FILE_PLUGIN: &str = "file";

/// What the stages work with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    pub(crate) config: &'a Config,
    /// Its rules say which paths have to be looked at, and which are hidden.
    pub(crate) authoriser: &'a Authoriser,
    pub(crate) rights: RightsSource<'a>,
    /// What there was at the moment at which the call began.
    pub(crate) offer: &'a Offer,
    /// The MCP servers.
    pub(crate) servers: &'a Servers,
    /// The executors of the program.
    pub(crate) backends: &'a Backends,
    /// The way out of its plugins.
    pub(crate) egress: &'a Egress,
    /// How a call of an earlier host is made again; none for calls of this one.
    pub(crate) replay: Option<&'a ReplayTerms>,
    /// What is known of trust at that moment.
    pub(crate) trust: &'a Arc<TrustState>,
}

/// A call that can be decided about.
#[derive(Debug)]
pub(crate) struct ResolvedRequest {
    pub(crate) call: ResolvedCall,
    pub(crate) work: Work,
    /// What its plugin holds; none for a tool of the host.
    pub(crate) rights: Option<Rights>,
    /// Who agreed to the call whose questions it answers.
    pub(crate) agreement: Option<Agreement>,
}

impl Resolver<'_> {
    /// Resolves `request`, for `session`.
    ///
    /// Errors: `tool_not_found`, what is wrong with the arguments, or `server_error` when the grants cannot be read.
    pub(crate) async fn resolve(
        &self,
        session: &Session,
        frame: CallFrame,
        request: ToolRequest,
    ) -> Result<ResolvedRequest, ToolFailure> {
        let tool = self.tool(&request.tool)?;
        // A plugin's author knows which arguments the tool declares: others would make another call than the one that was meant.
        let is_open = matches!(tool.backend, Backend::Mcp(_)) && !session.is_of_plugin();
        let arguments = arguments(&tool, request.arguments, is_open).await?;
        let (call, own_work) = self.named(session, frame, (tool, arguments))?;
        match own_work {
            Some(work) => Ok(ResolvedRequest {
                call,
                work,
                rights: None,
                agreement: None,
            }),
            None => self.of_plugin(session, call).await,
        }
    }

    /// Finds the tool.
    fn tool(&self, name: &str) -> Result<Arc<Tool>, ToolFailure> {
        let found = self.offer.catalog.resolve_shared(name);
        found.map(Arc::clone).map_err(|unknown| {
            let absent = self.servers.why_absent(&self.offer.plugins, name);
            absent.or_else(|| self.turned_off(name)).unwrap_or(unknown)
        })
    }

    /// Why a tool of the program is not there, where the configuration turns it off.
    fn turned_off(&self, name: &str) -> Option<ToolFailure> {
        let is_of_scheduler = scheduler::tools::ALL.contains(&name);
        let message = match self.config.tools_enabled {
            false => "there are no tools: `tools.enabled` is false".to_owned(),
            true if is_of_scheduler && self.config.scheduler.is_none() => {
                format!("`{name}` is offered when `tools.scheduler.enabled` is true")
            }
            true => return None,
        };
        let (category, phase) = (ErrorCategory::ToolNotFound, ErrorPhase::Setup);
        Some(ToolFailure::new(category, phase, message))
    }

    /// Resolves the paths that the arguments name. The work of a plugin's tool is not known yet.
    fn named(
        &self,
        session: &Session,
        frame: CallFrame,
        (tool, arguments): (Arc<Tool>, Arguments),
    ) -> Result<(ResolvedCall, Option<Work>), ToolFailure> {
        // Only rules look at paths, those too that a user agrees to when the call of a model asks; what a guest may reach is decided by
        // its grant, on the object really opened.
        let is_model = matches!(frame.principal, Principal::Model { .. });
        let paths = match self.config.file.roots.first() {
            Some(root) if is_model || self.authoriser.policy_of(session).looks_at_paths() => {
                let directory = self.servers.directory(&tool.backend);
                path::named_by(&arguments.values, directory.unwrap_or(&root.path))
            }
            _ => Vec::new(),
        };
        let (work, command) = match tool.backend {
            Backend::Shell => {
                let (work, text) = ShellWork::read(&tool, &arguments.values)?;
                (Some(Work::Shell(work)), text)
            }
            Backend::Builtin => match self.backends.work(&tool, &arguments.values) {
                Some(work) => (Some(Work::Delegated(work)), None),
                None => {
                    let work = BuiltinWork::read(&tool, &arguments.values)?;
                    (Some(Work::Builtin(work)), None)
                }
            },
            Backend::Mcp(_) => {
                let work = self
                    .servers
                    .work(&self.offer.servers, &tool, &arguments.values)?;
                (Some(Work::Mcp(work)), None)
            }
            Backend::Wasm(_) => (None, None),
        };
        let call = ResolvedCall {
            frame,
            tool,
            arguments,
            paths,
            command: command.map(|text| self.taken_apart(session, &text)),
            // What runs beside the host is believed only as far as its annotations are, which say the same.
            can_change: true,
            files: FileFacts::default(),
        };
        Ok((call, work))
    }

    /// A command line with its parts, and the files they name.
    fn taken_apart(&self, session: &Session, text: &str) -> CommandLine {
        let mut line = analyse(text);
        let targets = line
            .redirections
            .iter()
            .filter_map(|redirection| redirection.target.as_deref());
        // The platform is looked at only where the answer matters.
        let is_temporary =
            |target: &str| target.starts_with("/tmp/") || target.starts_with("/var/tmp/");
        let asks = targets.into_iter().any(is_temporary) || path::line::moves::moves_files(&line);
        let has_private_tmp = asks && session.commands().has_private_tmp();
        let policy = &self.authoriser.policy;
        let mut kept = policy.roots.clone();
        kept.extend_from_slice(&self.config.sandbox.read);
        line.places = path::line::places(
            &line,
            path::line::Here {
                directory: &session.shell().commands().directory(),
                home: self.config.plugins.home.as_deref(),
                has_private_tmp,
                kept: &kept,
                looks_at_words: policy.looks_at_words(),
            },
        );
        line
    }

    /// Looks up what the plugin of a call holds.
    async fn of_plugin(
        &self,
        session: &Session,
        mut call: ResolvedCall,
    ) -> Result<ResolvedRequest, ToolFailure> {
        let Some(in_force) = self.offer.plugins.plugin(&call.tool.backend) else {
            return Err(not_active());
        };
        let trust = self.trust_of(session, &call.tool);
        let facts = SessionFacts {
            trust: &trust,
            ..self.authoriser.facts(session.calls_made(), None)
        };
        let hidden = self.authoriser.policy.hidden_paths(&facts, &call);
        let (tool, conversation) = (&call.tool, call.frame.conversation);
        let rights = rights::of_call(self.rights, in_force, tool, conversation).await?;
        let rights = rights.hiding(self.rights.operator, hidden)?;
        let rights = match self.replay {
            Some(replay) => replay.confined(rights)?,
            None => rights,
        };
        call.can_change = rights.can_change;
        call.files = self.file_facts(in_force, &call).await;
        call.files.lacking = self.lacking(in_force, &call);
        let work = in_force.plugin().work(rights.grant.clone());
        let exit = (self.replay.is_none())
            .then(|| network::exit(self.egress, in_force, &rights, &self.authoriser.secrets));
        Ok(ResolvedRequest {
            call,
            work: Work::Guest(work.reaching(exit)),
            rights: Some(rights),
            agreement: None,
        })
    }

    /// How far a call of `tool` is trusted.
    pub(crate) fn trust_of(&self, session: &Session, tool: &Tool) -> CallTrust {
        let plugin = self.offer.plugins.plugin(&tool.backend);
        let origin = plugin.map(|plugin| plugin.origin);
        let room = &self.authoriser.trust;
        room.of_call(self.trust, session, tool, origin)
    }

    /// Why `tools.file.rights` leaves a file tool nothing that it could do.
    fn lacking(&self, in_force: &InForce, call: &ResolvedCall) -> Option<String> {
        let is_ours = in_force.origin == PluginOrigin::Program;
        if !is_ours || in_force.plugin().id().0 != FILE_PLUGIN {
            return None;
        }
        let (tool, values) = (call.tool.name.as_str(), &call.arguments.values);
        let roots = &self.config.file.roots;
        let look = || path::rights::lacking(tool, values, roots);
        run_as(self.config.tool_user.as_ref(), look).ok().flatten()
    }

    /// What the paths of a call are, as far as that can be seen before it runs.
    async fn file_facts(&self, in_force: &InForce, call: &ResolvedCall) -> FileFacts {
        let is_ours = in_force.origin == PluginOrigin::Program;
        if !(call.can_change || is_ours) {
            return FileFacts::default();
        }
        // Where rules look at paths they are resolved by now, and a call that only reads is asked no more than where they lie.
        let is_inside = |path: &PathBuf| {
            let mut roots = self.config.file.roots.iter();
            roots.any(|root| path.starts_with(&root.path))
        };
        let is_known = !call.can_change && !call.paths.is_empty();
        if is_known && call.paths.iter().all(is_inside) {
            return FileFacts::default();
        }
        let roots = self.config.file.roots.iter().map(|root| root.path.clone());
        let look = path::Look {
            arguments: call.arguments.values.clone(),
            roots: roots.collect(),
            git_user: self.config.git_user.clone(),
            kind: call.tool.kind,
            can_change: call.can_change,
            is_ours,
        };
        let user = self.config.tool_user.clone();
        if !look.can_change {
            return run_as(user.as_ref(), || look.facts()).unwrap_or_default();
        }
        // It may list directories.
        let look = move || run_as(user.as_ref(), || look.facts());
        let facts = tokio::task::spawn_blocking(look).await;
        facts.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// Reads arguments against the schema of `tool`. Those that take more than a moment, and may take seconds, on a thread for such work.
/// `is_open`: unknown ones stay where the schema does not say otherwise.
async fn arguments(
    tool: &Arc<Tool>,
    given: Value,
    is_open: bool,
) -> Result<Arguments, ToolFailure> {
    let read = match is_open {
        true => Parameters::read_open,
        false => Parameters::read,
    };
    if tool.parameters.is_quick(&given) {
        return read(&tool.parameters, given);
    }
    let tool = Arc::clone(tool);
    let read = tokio::task::spawn_blocking(move || read(&tool.parameters, given)).await;
    read.unwrap_or_else(|_| {
        Err(ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::ParamHandling,
            "the arguments could not be read",
        ))
    })
}

/// The set of plugins is the one the tool was found in: this is a defect of the host.
pub(crate) fn not_active() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        "the plugin of this tool is not active",
    )
}
