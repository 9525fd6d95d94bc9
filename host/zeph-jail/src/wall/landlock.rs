//! The second wall around files: what the mounts allow, said again to Landlock, in case a mount is wrong.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use zeph_jail::plan::{Access, Plan, Stage};

use super::Failure;

/// The newest rules this program knows; the kernel takes those it knows too.
const NEWEST: ABI = ABI::V9;

/// Refuses everything that no rule of the plan lets through, for ever.
pub(super) fn restrict(plan: &Plan) -> Result<(), Failure> {
    match enforce(plan) {
        Ok(RulesetStatus::NotEnforced) => Err(Failure {
            step: "restricting files",
            reason: "the kernel has no Landlock".to_owned(),
        }),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure {
            step: "restricting files",
            reason: error.to_string(),
        }),
    }
}

fn enforce(plan: &Plan) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if plan.stage == Stage::AloneWithoutNetwork {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut created = ruleset.create()?;
    for rule in &plan.rules {
        // What is not there grants nothing.
        let Ok(path) = PathFd::new(OsStr::from_bytes(&rule.path)) else {
            continue;
        };
        let access = match is_directory(&path) {
            true => rights(rule.access),
            false => rights(rule.access) & AccessFs::from_file(NEWEST),
        };
        if access.is_empty() {
            continue;
        }
        created = created.add_rule(PathBeneath::new(path, access))?;
    }
    Ok(created.restrict_self()?.ruleset)
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    let everything = AccessFs::from_all(NEWEST)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    match access {
        Access::List => AccessFs::ReadDir.into(),
        Access::Read => AccessFs::from_read(NEWEST),
        Access::Write => everything & !AccessFs::ResolveUnix,
        Access::Private => everything,
        Access::Device => {
            AccessFs::ReadFile
                | AccessFs::WriteFile
                | AccessFs::ReadDir
                | AccessFs::Truncate
                | AccessFs::IoctlDev
        }
    }
}

fn is_directory(path: &PathFd) -> bool {
    let kind =
        rustix::fs::fstat(path).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| kind.is_dir())
}
