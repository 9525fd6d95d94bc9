//! What was asked for on the command line, and whether it may be granted: only what the manifest wants can be.

mod requested;

use std::path::Path;

use zeph_config::{Config, PathBase};
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::failure::one_line;
use zeph_core::grant::effective;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_core::manifest::{Manifest, Want};
use zeph_core::network::HostAccess;
use zeph_core::program;
use zeph_core::secret::SecretUse;

use super::ManageError;
use crate::rights;

pub use self::requested::RequestedItem;

/// What may be granted, and what the operator should know about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GrantSelection {
    /// What may be granted, with absolute paths.
    pub capabilities: Vec<Capability>,
    /// One sentence each.
    pub notes: Vec<String>,
}

/// What a selection is checked against.
#[derive(Debug, Clone, Copy)]
pub struct SelectionContext<'a> {
    /// Who wrote the requests.
    pub plugin: &'a PluginId,
    /// What it wants.
    pub manifest: &'a Manifest,
    /// What the operator allows at all.
    pub config: &'a Config,
    /// What relative paths and `~` stand for.
    pub base: PathBase<'a>,
}

/// What was asked for, when all of it can be granted.
///
/// Errors: `NotWanted`, or `BadSelector` for a directory that does not exist and a limit nothing can have.
pub fn select(
    asked: &[RequestedItem],
    wanted: SelectionContext<'_>,
) -> Result<GrantSelection, ManageError> {
    let mut selection = GrantSelection::default();
    for asked in asked {
        for capability in meant(asked, wanted)? {
            selection.add(capability, wanted.config);
        }
    }
    Ok(selection)
}

/// What one thing that was typed means: one capability, or all uses of a secret.
fn meant(
    asked: &RequestedItem,
    wanted: SelectionContext<'_>,
) -> Result<Vec<Capability>, ManageError> {
    let capability = match asked {
        RequestedItem::Directory {
            path,
            rights,
            problem,
        } => directory(path, *rights, problem.as_deref(), wanted)?,
        RequestedItem::Host(access) => host(access, wanted)?,
        RequestedItem::Program(name) => program(name, wanted)?,
        RequestedItem::Variable(name) => {
            named(Capability::Variable { name: name.clone() }, wanted)?
        }
        RequestedItem::Embedder(name) => {
            chosen(Capability::Embedder { name: name.clone() }, wanted)?
        }
        RequestedItem::Tool(name) => chosen(Capability::Tool { name: name.clone() }, wanted)?,
        RequestedItem::Limit { name, value } => limit(*name, *value, wanted)?,
        RequestedItem::Secret { name, used } => return secrets(name, used.as_ref(), wanted),
    };
    Ok(vec![capability])
}

/// Everything the manifest wants that can be granted here; what cannot gets a note.
pub fn all(wanted: SelectionContext<'_>) -> GrantSelection {
    possible(
        rights::wanted(wanted.manifest, wanted.config),
        wanted.config,
    )
}

/// Those of `capabilities` that can be granted here; what cannot gets a note.
pub fn possible(capabilities: Vec<Capability>, config: &Config) -> GrantSelection {
    let mut selection = GrantSelection::default();
    for capability in capabilities {
        match &capability {
            Capability::Directory { path, .. } if !Path::new(path).is_dir() => {
                selection
                    .notes
                    .push(format!("there is no directory `{path}`; it is skipped"));
            }
            Capability::Limit { name, value } if *value > zeph_engine::ceiling(*name) => {
                let value = zeph_engine::ceiling(*name);
                selection.notes.push(format!(
                    "`{name}` can be {value} at most, and is granted that high"
                ));
                selection.add(Capability::Limit { name: *name, value }, config);
            }
            unnamed if unnamed.is_unnamed() => {
                let (kind, flag) = match unnamed {
                    Capability::Embedder { .. } => ("embedder", "--embedder NAME"),
                    _ => ("tool of an MCP server", "--tool SERVER/TOOL"),
                };
                selection.notes.push(format!(
                    "which {kind} it may use is for you to say: grant it with `{flag}`"
                ));
            }
            _ => selection.add(capability, config),
        }
    }
    selection
}

impl GrantSelection {
    fn add(&mut self, capability: Capability, config: &Config) {
        if self.capabilities.contains(&capability) {
            return;
        }
        self.notes.extend(note(&capability, config));
        self.capabilities.push(capability);
    }
}

/// Why a grant gives less than it says.
fn note(capability: &Capability, config: &Config) -> Option<String> {
    match capability {
        Capability::Directory { path, rights } => {
            let alone = std::slice::from_ref(capability);
            let left = effective(alone, alone, &config.file).directories;
            let left = left
                .iter()
                .fold(FsRights::default(), |sum, root| sum.union(root.rights));
            if left == FsRights::default() {
                return Some(format!(
                    "`{path}` lies outside the directories that tools may touch here (`tools.file.allowed_paths`, `--root`): \
                     the grant gives nothing until it lies inside"
                ));
            }
            let lacking = rights.without(left);
            (lacking != FsRights::default()).then(|| {
                format!("`tools.file.rights` allows no tool to {lacking} in `{path}`: that part of the grant gives nothing")
            })
        }
        Capability::Limit { name, value } => {
            let now = current(*name, &config.limits);
            (*value <= now).then(|| {
                format!(
                    "`limits.{name}` is {now} for every plugin: granting {value} changes nothing"
                )
            })
        }
        _ => None,
    }
}

fn directory(
    text: &str,
    rights: Option<FsRights>,
    problem: Option<&str>,
    wanted: SelectionContext<'_>,
) -> Result<Capability, ManageError> {
    let path = place(text, problem, wanted.base)?;
    let in_manifest = rights_wanted(Path::new(&path), wanted);
    let rights = rights.unwrap_or(in_manifest);
    let is_inside = rights.without(in_manifest) == FsRights::default();
    if !is_inside || rights == FsRights::default() {
        return Err(not_wanted(Capability::Directory { path, rights }, wanted));
    }
    Ok(Capability::Directory { path, rights })
}

/// The canonical path of an existing directory that was typed.
///
/// Shape:  `problem` is why what stands behind its last colon is no list of rights.
/// Errors: `BadSelector`.
pub fn place(text: &str, problem: Option<&str>, base: PathBase<'_>) -> Result<String, ManageError> {
    let path = base.directory(text).map_err(|error| {
        let why = problem.map(|problem| format!(" ({problem})"));
        ManageError::BadSelector(error + &why.unwrap_or_default())
    })?;
    path.into_os_string().into_string().map_err(|path| {
        let path = path.to_string_lossy();
        ManageError::BadSelector(format!("`{path}` is not Unicode and cannot be granted"))
    })
}

/// The rights the manifest wants at a place. One that wants `.` wants whatever directories a host is given, and a grant
/// holds for hosts that are started elsewhere too.
fn rights_wanted(path: &Path, wanted: SelectionContext<'_>) -> FsRights {
    let wants = wanted.manifest.wants.iter();
    wants.fold(FsRights::default(), |sum, want| match &want.capability {
        Capability::Directory { path: tree, rights } => {
            let holds = |here: &Capability| match here {
                Capability::Directory { path: here, .. } => path.starts_with(here),
                _ => false,
            };
            match tree == "." || here(want, wanted.config).iter().any(holds) {
                true => sum.union(*rights),
                false => sum,
            }
        }
        _ => sum,
    })
}

fn here(want: &Want, config: &Config) -> Vec<Capability> {
    let alone = Manifest {
        wants: vec![want.clone()],
    };
    rights::wanted(&alone, config)
}

fn named(capability: Capability, wanted: SelectionContext<'_>) -> Result<Capability, ManageError> {
    let mut wants = wanted.manifest.wants.iter();
    match wants.any(|want| want.capability == capability) {
        true => Ok(capability),
        false => Err(not_wanted(capability, wanted)),
    }
}

/// An embedder or a tool, which a grant has to name whatever the manifest says.
fn chosen(capability: Capability, wanted: SelectionContext<'_>) -> Result<Capability, ManageError> {
    if let Some(problem) = capability.problem() {
        let problem = format!("`{}`: {problem}", one_line(&capability.to_string(), 200));
        return Err(ManageError::BadSelector(problem));
    }
    if capability.is_unnamed() {
        let problem = format!("`{capability}` names none; name the one to grant");
        return Err(ManageError::BadSelector(problem));
    }
    let mut wants = wanted.manifest.wants.iter();
    let covers = |want: &Want| want.capability.intersect(&capability).is_some();
    match wants.any(covers) {
        true => Ok(capability),
        false => Err(not_wanted(capability, wanted)),
    }
}

/// What is wanted of the hosts that were typed.
fn host(access: &HostAccess, wanted: SelectionContext<'_>) -> Result<Capability, ManageError> {
    let wants = wanted.manifest.wants.iter();
    let mut both = wants.filter_map(|want| match &want.capability {
        Capability::Host(want) => want.intersect(access),
        _ => None,
    });
    let is_all = |both: &HostAccess| {
        both.name == access.name && (access.methods.is_none() || both.methods == access.methods)
    };
    match both.find(is_all) {
        Some(both) => Ok(Capability::Host(both)),
        None => Err(not_wanted(Capability::Host(access.clone()), wanted)),
    }
}

/// A name alone is all that the manifest wants of that program; else what some request of it covers.
fn program(name: &str, wanted: SelectionContext<'_>) -> Result<Capability, ManageError> {
    let capability = Capability::Program {
        name: name.to_owned(),
    };
    if let Some(problem) = capability.problem() {
        let problem = format!("`{}`: {problem}", one_line(name, 200));
        return Err(ManageError::BadSelector(problem));
    }
    let fits = |want: &Want| match &want.capability {
        Capability::Program { name: want } => {
            let is_bare = !name.contains(' ');
            program::covers(want, name) || is_bare && program::covers(name, want)
        }
        _ => false,
    };
    let mut wants = wanted.manifest.wants.iter();
    match wants.any(fits) {
        true => Ok(capability),
        false => Err(not_wanted(capability, wanted)),
    }
}

fn limit(
    name: LimitName,
    value: Option<u64>,
    wanted: SelectionContext<'_>,
) -> Result<Capability, ManageError> {
    let wants = wanted.manifest.wants.iter();
    let most = wants
        .filter_map(|want| match &want.capability {
            Capability::Limit { name: other, value } if *other == name => Some(*value),
            _ => None,
        })
        .max();
    let value = value.or(most).unwrap_or_default();
    if most.is_none_or(|most| value > most) {
        return Err(not_wanted(Capability::Limit { name, value }, wanted));
    }
    let max = zeph_engine::ceiling(name);
    if value > max || value == 0 {
        let problem = format!("`{name}` can be 1 to {max}, not {value}");
        return Err(ManageError::BadSelector(problem));
    }
    Ok(Capability::Limit { name, value })
}

/// The uses of a secret that were asked for; all that the manifest wants when only its name was.
fn secrets(
    name: &str,
    used: Option<&SecretUse>,
    wanted: SelectionContext<'_>,
) -> Result<Vec<Capability>, ManageError> {
    let wants = wanted.manifest.wants.iter();
    let of_name: Vec<&SecretUse> = wants
        .filter_map(|want| match &want.capability {
            Capability::Secret(secret) if secret.name == name => Some(secret),
            _ => None,
        })
        .collect();
    let Some(used) = used else {
        let all = of_name.into_iter().cloned().map(Capability::Secret);
        let all: Vec<Capability> = all.collect();
        return match all.is_empty() {
            false => Ok(all),
            true => Err(ManageError::BadSelector(format!(
                "the manifest requests no secret `{name}`, so nothing says where it would be sent; \
                 a secret is granted as `{name}=HOST:HEADER`"
            ))),
        };
    };
    // Without methods it means those of the manifest.
    let both = of_name.iter().find_map(|want| want.intersect(used));
    match both.filter(|both| used.methods.is_none() || both == used) {
        Some(both) => Ok(vec![Capability::Secret(both)]),
        None => Err(not_wanted(Capability::Secret(used.clone()), wanted)),
    }
}

fn not_wanted(what: Capability, wanted: SelectionContext<'_>) -> ManageError {
    ManageError::NotWanted {
        name: wanted.plugin.clone(),
        what: Box::new(what),
        wants: wanted.manifest.wants.clone(),
    }
}

/// The value a limit has for every plugin, in the unit of its name.
pub fn current(name: LimitName, limits: &CallLimits) -> u64 {
    match name {
        LimitName::WallClockSecs => limits.wall_clock.as_secs(),
        LimitName::CpuSecs => limits.cpu.as_secs(),
        LimitName::MemoryBytes => limits.memory_bytes,
        LimitName::TableElements => limits.table_elements,
        LimitName::OutputBytes => limits.output_bytes,
        LimitName::LogBytes => limits.log_bytes,
        LimitName::HostCalls => limits.host_calls,
        LimitName::Handles => limits.handles.into(),
    }
}

#[cfg(test)]
mod tests;
