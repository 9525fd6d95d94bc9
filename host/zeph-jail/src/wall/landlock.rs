//! The second wall around files: what the mounts allow, said again to Landlock, in case a mount is wrong.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use zeph_jail::plan::{PathAccess, Plan, Rule, Stage};

use super::{Failure, failed};

/// The newest rules this program knows; the kernel takes those it knows too.
const NEWEST: ABI = ABI::V9;

/// Refuses everything that no rule of the plan lets through, for ever.
pub(super) fn restrict(plan: &Plan) -> Result<(), Failure> {
    let paths = open(&plan.rules)?;
    judged("restricting files", enforce(plan, paths))
}

/// Keeps signals of this process, and of all that it starts, among them.
pub(super) fn keep_signals() -> Result<(), Failure> {
    judged("keeping signals within the run", enforce_signals())
}

fn judged(step: &'static str, end: Result<RulesetStatus, RulesetError>) -> Result<(), Failure> {
    let reason = match end {
        Ok(RulesetStatus::NotEnforced) => "the kernel has no Landlock".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(Failure { step, reason })
}

fn enforce_signals() -> Result<RulesetStatus, RulesetError> {
    let ruleset = Ruleset::default().scope(Scope::Signal)?;
    Ok(ruleset.create()?.restrict_self()?.ruleset)
}

/// The places of the rules that are there, and what is let through at each.
///
/// Errors: one of them is another object than the host saw.
fn open(rules: &[Rule]) -> Result<Vec<(PathFd, BitFlags<AccessFs>)>, Failure> {
    let mut paths = Vec::with_capacity(rules.len());
    for rule in rules {
        let name = OsStr::from_bytes(&rule.path);
        // What is not there grants nothing.
        let Ok(path) = PathFd::new(name) else {
            continue;
        };
        let stat =
            rustix::fs::fstat(&path).map_err(|error| failed("looking at files")(error.into()))?;
        if rule
            .object
            .is_some_and(|object| object != (stat.st_dev, stat.st_ino))
        {
            return Err(Failure {
                step: "restricting files",
                reason: format!("`{}` was exchanged while the jail was made", name.display()),
            });
        }
        let access = match rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
            true => rights(rule.access),
            false => rights(rule.access) & AccessFs::from_file(NEWEST),
        };
        paths.push((path, access));
    }
    Ok(paths)
}

fn enforce(
    plan: &Plan,
    paths: Vec<(PathFd, BitFlags<AccessFs>)>,
) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if plan.stage == Stage::AloneWithoutNetwork {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut created = ruleset.create()?;
    for (path, access) in paths {
        if access.is_empty() {
            continue;
        }
        created = created.add_rule(PathBeneath::new(path, access))?;
    }
    Ok(created.restrict_self()?.ruleset)
}

fn rights(access: PathAccess) -> BitFlags<AccessFs> {
    let everything = AccessFs::from_all(NEWEST)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    match access {
        PathAccess::List => AccessFs::ReadDir.into(),
        PathAccess::Read => AccessFs::from_read(NEWEST),
        PathAccess::Write => everything & !AccessFs::ResolveUnix,
        PathAccess::Private => everything,
        PathAccess::Device => {
            AccessFs::ReadFile
                | AccessFs::WriteFile
                | AccessFs::ReadDir
                | AccessFs::Truncate
                | AccessFs::IoctlDev
        }
    }
}
