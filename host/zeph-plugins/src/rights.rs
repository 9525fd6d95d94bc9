//! What one call of a plugin may touch: manifest ∩ grant ∩ policy, looked up anew for every call, so that a grant or a
//! revocation holds from the next call on in every running host.

mod operator;

use std::sync::Arc;

use zeph_config::Config;
use zeph_core::capability::{Capability, FsRights, FsRoot};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::grant::{Effective, effective};
use zeph_core::id::ConversationId;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::manifest::Manifest;
use zeph_core::network::HostAccess;
use zeph_core::policy::{GrantModes, Mode};
use zeph_core::secret::SecretUse;
use zeph_core::tool::Tool;
use zeph_engine::fs::FsPolicyError;
use zeph_engine::{CallGrant, NO_SETTINGS};
use zeph_store::{GrantRecord, Store, StoreError};

use super::set::{InForce, ManifestBy, PluginOrigin, VettedPlugin};
use crate::own_folder;

pub use self::operator::OperatorPolicy;

use self::operator::Lists;

impl Rights {
    /// The grants that the call uses up if it uses them.
    pub fn once(&self) -> Vec<GrantRecord> {
        let once = self.granted.iter().filter(|grant| grant.is_once());
        once.cloned().collect()
    }

    /// Removes what the rules hide from the call, which it might reach from a parent directory.
    ///
    /// Errors: `server_error`; then nothing is granted.
    pub fn hiding(mut self, operator: &OperatorPolicy, hidden: Lists) -> Result<Self, ToolFailure> {
        if hidden.is_empty() {
            return Ok(self);
        }
        let rulings = operator.rulings(hidden).map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the rules over paths cannot be applied"
            );
            fault("the rules over paths cannot be applied")
        })?;
        self.grant.fs = Arc::new(self.grant.fs.hiding(&rulings));
        Ok(self)
    }
}

/// What one call holds.
#[derive(Debug)]
pub struct Rights {
    /// What the engine holds it to.
    pub grant: CallGrant,
    /// Whether the call can change anything outside itself.
    pub can_change: bool,
    /// Where its requests may go. A tool that calls itself read-only fetches only.
    pub hosts: Arc<[HostAccess]>,
    /// Whether its author wrote no manifest, so that whatever it tries can be granted.
    pub wants_anything: bool,
    /// The grants of the operator it leans on, as they were when it was looked up.
    pub granted: Vec<GrantRecord>,
    /// The grants that withhold what others may give.
    pub withheld: Vec<GrantRecord>,
    /// What its manifest wants, resolved; more when its author wrote none.
    pub wanted: Vec<Capability>,
    /// The secrets that its requests get, each at a host that it may reach.
    pub secrets: Vec<SecretUse>,
    /// The programs it may run, and what they get.
    pub programs: ProgramRights,
    /// What it may have the host do elsewhere.
    pub services: ServiceRights,
    /// The grants it holds that do not simply allow.
    pub modes: GrantModes,
}

impl Rights {
    /// What it holds of what it wants, in words, each once. Limits are left out: they give nothing.
    pub fn held(&self) -> Vec<String> {
        let mut held = Vec::new();
        for grant in &self.granted {
            let wanted = self.wanted.iter();
            let effective = wanted.filter_map(|want| want.intersect(&grant.capability));
            for capability in effective.filter_map(|capability| self.narrowed(capability)) {
                let word = capability.to_string();
                if !held.contains(&word) {
                    held.push(word);
                }
            }
        }
        held
    }

    /// What the promises of the tool leave of a capability.
    fn narrowed(&self, capability: Capability) -> Option<Capability> {
        match capability {
            Capability::Limit { .. } => None,
            Capability::Directory { path, rights } if !self.can_change => {
                let rights = FsRights {
                    read: rights.read,
                    ..FsRights::default()
                };
                rights
                    .read
                    .then_some(Capability::Directory { path, rights })
            }
            Capability::Host(access) if self.programs.only_reads => {
                access.fetching().map(Capability::Host)
            }
            other => Some(other),
        }
    }
}

/// What a call may have the host do elsewhere, all of it by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceRights {
    /// Providers of embeddings that it may send texts to.
    pub embedders: Vec<String>,
    /// Tools of MCP servers that it may call, each `SERVER/TOOL`.
    pub tools: Vec<String>,
}

/// The programs that a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramRights {
    /// Each with what its arguments may be (`zeph_core::program`).
    pub patterns: Vec<String>,
    /// The directories they see at most, with what they may do there: those of the plugin itself.
    pub directories: Vec<FsRoot>,
    /// The parts of them that are withheld, with the rights that they lack there.
    pub denied: Vec<FsRoot>,
    /// Whether the tool calls itself read-only: then they can change nothing either, and have no network.
    pub only_reads: bool,
}

/// Where rights are looked up.
#[derive(Debug, Clone, Copy)]
pub struct RightsSource<'a> {
    /// What the operator decided.
    pub config: &'a Config,
    /// What any plugin can have of files at most.
    pub operator: &'a OperatorPolicy,
    /// The grants.
    pub store: &'a Store,
    /// The time of the call, in Unix milliseconds: grants end.
    pub now_ms: i64,
}

/// Looks up what a call of `tool` may touch; takes nothing.
///
/// A tool that declares itself read-only holds nothing that changes anything, whatever was granted: the platform keeps its promise.
/// Errors: `server_error` when the grants cannot be read; then nothing is granted.
pub async fn of_call(
    host: RightsSource<'_>,
    in_force: &InForce,
    tool: &Tool,
    conversation: ConversationId,
) -> Result<Rights, ToolFailure> {
    let promises = tool.annotations;
    let only_reads = promises.read_only && !promises.open_world;
    let good = &in_force.good;
    let mut wanted = wanted(&good.manifest, host.config);
    let given = match (wanted.is_empty(), in_force.origin) {
        (true, _) => Vec::new(),
        (false, PluginOrigin::Folder) => granted(host, good, conversation).await?,
        (false, PluginOrigin::Program) => own_granted(host, good, conversation).await?,
    };
    let (withheld, granted) = without_withheld(given);
    let denied = directories_of(&withheld);
    let capabilities: Vec<Capability> = granted
        .iter()
        .map(|grant| grant.capability.clone())
        .collect();
    let mut effective = effective(&wanted, &capabilities, &host.config.file);
    if promises.read_only {
        let fetching = effective.hosts.iter().filter_map(HostAccess::fetching);
        effective.hosts = fetching.collect();
    }
    let wants_anything = good.manifest_by != ManifestBy::Author;
    if wants_anything {
        wanted.extend(anything(host.config));
    }
    let settings = host.config.plugins.settings.get(&good.plugin.id().0);
    let grant = CallGrant {
        settings: settings.map_or_else(|| NO_SETTINGS.into(), Arc::clone),
        ..call_grant(host, &effective, &wanted, &denied)?
    };
    let can_change = !only_reads && effective.can_change_something();
    let grant = if only_reads { grant.read_only() } else { grant };
    let grant = own_folder::given(grant, in_force, host.config)?;
    Ok(Rights {
        can_change,
        secrets: secrets(&effective),
        modes: modes(&granted, &wanted),
        hosts: effective.hosts.into(),
        wants_anything,
        grant,
        granted,
        withheld,
        wanted,
        programs: ProgramRights {
            patterns: effective.programs,
            directories: apart_from(effective.directories, &denied),
            denied,
            only_reads: promises.read_only,
        },
        services: ServiceRights {
            embedders: effective.embedders,
            tools: effective.tools,
        },
    })
}

/// What is withheld, and the grants that are held: of directories the other parts, else none that has anything in common with
/// what is withheld.
pub(crate) fn without_withheld(given: Vec<GrantRecord>) -> (Vec<GrantRecord>, Vec<GrantRecord>) {
    let (withheld, mut held): (Vec<_>, Vec<_>) = given
        .into_iter()
        .partition(|grant| grant.mode == Some(Mode::Deny));
    held.retain(|grant| {
        let both = |denied: &GrantRecord| denied.capability.intersect(&grant.capability);
        let is_directory = matches!(grant.capability, Capability::Directory { .. });
        !withheld
            .iter()
            .filter_map(both)
            .any(|both| !is_directory || both == grant.capability)
    });
    (withheld, held)
}

/// The directories among capabilities that were granted.
fn directories_of(grants: &[GrantRecord]) -> Vec<FsRoot> {
    let capabilities = grants.iter().map(|grant| &grant.capability);
    capabilities.filter_map(root).collect()
}

/// What programs see of directories: a denied one takes its rights from those in it. What it takes from a directory around it is for the
/// sandbox to withhold.
fn apart_from(mut directories: Vec<FsRoot>, denied: &[FsRoot]) -> Vec<FsRoot> {
    for root in &mut directories {
        let around = denied.iter().filter(|one| root.path.starts_with(&one.path));
        root.rights = around.fold(root.rights, |left, one| left.without(one.rights));
    }
    directories.retain(|root| root.rights != FsRights::default());
    directories
}

/// The grants that do not simply allow, as far as the manifest wants them at all and no plain grant gives the same.
fn modes(granted: &[GrantRecord], wanted: &[Capability]) -> GrantModes {
    let mut modes = GrantModes::default();
    for grant in granted {
        let Some(mode) = grant.mode else { continue };
        let is_wanted = |want: &Capability| want.intersect(&grant.capability).is_some();
        let is_plain = |other: &GrantRecord| {
            other.mode.is_none()
                && other.capability.intersect(&grant.capability).as_ref() == Some(&grant.capability)
        };
        if wanted.iter().any(is_wanted) && !granted.iter().any(is_plain) {
            modes.add(mode, grant.capability.to_string());
        }
    }
    modes
}

/// The granted secrets whose host was granted, too.
fn secrets(effective: &Effective) -> Vec<SecretUse> {
    let Effective { secrets, hosts, .. } = effective;
    let is_reached = |used: &&SecretUse| hosts.iter().any(|access| access.name.covers(&used.host));
    secrets.iter().filter(is_reached).cloned().collect()
}

/// What a plugin of the program holds: its default grants, unless they were revoked, and what it was granted besides.
async fn own_granted(
    host: RightsSource<'_>,
    good: &VettedPlugin,
    conversation: ConversationId,
) -> Result<Vec<GrantRecord>, ToolFailure> {
    let plugin = good.plugin.id().clone();
    let own = host
        .store
        .own_grants_of_call(plugin, good.pin, conversation, host.now_ms);
    let own = own.await.map_err(|error| unreadable(good, &error))?;
    let mut granted = own.granted;
    if own.has_defaults {
        granted.extend(default_grants(good, host.config));
    }
    Ok(granted)
}

/// The default grants of a plugin of the program, on this machine. Their number is 0: no row stands for them.
pub fn default_grants(good: &VettedPlugin, config: &Config) -> Vec<GrantRecord> {
    let plugin = good.plugin.id();
    let defaults = config.plugins.default_grants.get(&plugin.0);
    let here = on_this_machine(defaults.into_iter().flatten(), config);
    let record = |capability| GrantRecord {
        id: 0,
        plugin: plugin.clone(),
        pin: good.pin,
        capability,
        lifetime: GrantLifetime::Always,
        granted_at_ms: 0,
        mode: None,
    };
    here.into_iter().map(record).collect()
}

fn unreadable(good: &VettedPlugin, error: &StoreError) -> ToolFailure {
    tracing::error!(error = error as &dyn std::error::Error, plugin = %good.plugin.id(), "the grants of a plugin cannot be read");
    fault("the host cannot read what was granted to the plugin")
}

async fn granted(
    host: RightsSource<'_>,
    good: &VettedPlugin,
    conversation: ConversationId,
) -> Result<Vec<GrantRecord>, ToolFailure> {
    let plugin = good.plugin.id().clone();
    let granted = host
        .store
        .grants_of_call(plugin, good.pin, conversation, host.now_ms);
    granted.await.map_err(|error| unreadable(good, &error))
}

fn call_grant(
    host: RightsSource<'_>,
    effective: &Effective,
    wanted: &[Capability],
    denied: &[FsRoot],
) -> Result<CallGrant, ToolFailure> {
    let wanted: Vec<FsRoot> = wanted.iter().filter_map(root).collect();
    let granted = &effective.directories;
    let operator = &host.operator.everything;
    // Who holds all that there is gets it without another look at any directory.
    let is_everything = *granted == host.config.file.roots && denied.is_empty();
    if is_everything && effective.variables.is_empty() {
        return Ok(CallGrant {
            fs: Arc::clone(operator),
            limits: effective.raise(host.config.limits),
            variables: Arc::default(),
            settings: NO_SETTINGS.into(),
            http: None,
        });
    }
    let fs = operator.for_plugin(granted, &wanted).map_err(|error| {
        if let FsPolicyError::RootReplaced { .. } = error {
            let (category, phase) = (ErrorCategory::PolicyBlocked, ErrorPhase::Setup);
            return ToolFailure::new(category, phase, error.to_string());
        }
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "the directories of a plugin cannot be opened"
        );
        fault("a granted directory cannot be opened")
    })?;
    let variable = |name: &String| Some((name.clone(), zeph_config::variable(name)?));
    Ok(CallGrant {
        fs: Arc::new(match denied {
            [] => fs,
            _ => fs.withholding(denied),
        }),
        limits: effective.raise(host.config.limits),
        variables: effective.variables.iter().filter_map(variable).collect(),
        settings: NO_SETTINGS.into(),
        http: None,
    })
}

fn fault(message: &str) -> ToolFailure {
    ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Setup, message)
}

fn root(wanted: &Capability) -> Option<FsRoot> {
    match wanted {
        Capability::Directory { path, rights } => Some(FsRoot {
            path: path.into(),
            rights: *rights,
        }),
        _ => None,
    }
}

/// What a plugin may turn out to want whose author said nothing: each directory the host was given, whatever is done there. It
/// gets no access that way, but its failed attempts are recorded, and reported with the command that grants them.
fn anything(config: &Config) -> impl Iterator<Item = Capability> {
    let roots = config.file.roots.iter();
    let paths = roots.filter_map(|root| root.path.to_str());
    paths.map(|path| Capability::Directory {
        path: path.to_owned(),
        rights: FsRights::ALL,
    })
}

/// What a manifest wants, on this machine: `.` stands for each directory the host was given, `~` for the home, and directories
/// are canonical as far as they exist.
pub fn wanted(manifest: &Manifest, config: &Config) -> Vec<Capability> {
    let wants = manifest.wants.iter().map(|want| &want.capability);
    on_this_machine(wants, config)
}

fn on_this_machine<'a>(
    capabilities: impl Iterator<Item = &'a Capability>,
    config: &Config,
) -> Vec<Capability> {
    let mut here = Vec::new();
    for capability in capabilities {
        match capability {
            Capability::Directory { path, rights } => {
                let paths = directories(path, config);
                here.extend(paths.into_iter().map(|path| Capability::Directory {
                    path,
                    rights: *rights,
                }));
            }
            other => here.push(other.clone()),
        }
    }
    here
}

fn directories(path: &str, config: &Config) -> Vec<String> {
    if path == "." {
        let roots = config.file.roots.iter();
        return roots
            .filter_map(|root| root.path.to_str().map(str::to_owned))
            .collect();
    }
    let absolute = match path.strip_prefix('~') {
        Some(rest) => match &config.plugins.home {
            Some(home) => home.join(rest.trim_start_matches('/')),
            None => return Vec::new(),
        },
        None => path.into(),
    };
    let canonical = absolute.canonicalize().unwrap_or(absolute);
    canonical.to_str().map(str::to_owned).into_iter().collect()
}
