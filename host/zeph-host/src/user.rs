//! The user that tools work as: looked up, tried out, and become by threads that work for tools (`tools.scope.run_as_user`).
//!
//! Commands, hooks, programs of plugins and MCP servers are started by a thread that became that user for good; what the host looks at
//! for their jails, the files of guests and the snapshots of transactions are reached by such threads too. The store, the audit, the
//! caches of compiled components and the groups of processes stay the host's.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use uzers::os::unix::UserExt as _;
use zeph_config::Config;
use zeph_core::user::{ToolUser, UserFacts};

/// Where the folder of a user is: below the home, or else with the number of the user behind it.
const AT_HOME: &str = ".cache/zeph-host";
const ELSEWHERE: &str = "/var/tmp/zeph-host-";

/// Why tools cannot work as the user they are to work as. One line: what, and how to change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tools are to work as `{name}` (`tools.scope.run_as_user`), but {reason}")]
pub(crate) struct UserError {
    name: String,
    reason: String,
}

/// The configuration with the user that tools work as, where that is another one than the host's: its home, and a folder of its own for
/// what the host keeps for its programs. May ask a directory service. A configuration that has one already stays as it is.
///
/// Errors: there is no such user; the host may not become that user; there is no place for the folder; the user cannot enter a directory
/// that tools work in.
pub(crate) fn found(mut config: Config) -> Result<Config, UserError> {
    let scope = config.rules.policy.scope.as_ref();
    let wanted = scope.and_then(|scope| scope.run_as_user.clone());
    let Some(name) = wanted.filter(|_| config.tool_user.is_none()) else {
        return Ok(config);
    };
    let failed = |reason: String| UserError {
        name: name.clone(),
        reason,
    };
    let facts = facts(&name).map_err(failed)?;
    if facts.uid == rustix::process::geteuid().as_raw() {
        return Ok(config);
    }
    may_become(&facts).map_err(failed)?;
    let user = ToolUser::new(facts.clone());
    let folder = user.run(|| folder(&facts));
    let folder = folder.map_err(|error| failed(refused(&facts, &error)))?;
    // Without it snapshots would silently not be taken.
    let folder = Some(folder.ok_or_else(|| failed(no_folder(&facts)))?);
    let user = ToolUser::new(UserFacts { folder, ..facts });
    may_enter(&config, &user).map_err(failed)?;
    give(&mut config, user);
    Ok(config)
}

/// Whether there is the user that tools work as, and the host may become that user. Changes nothing.
///
/// Errors: as [`found`], but for the folder and the directories.
pub(crate) fn check(config: &Config) -> Result<(), UserError> {
    let scope = config.rules.policy.scope.as_ref();
    let Some(name) = scope.and_then(|scope| scope.run_as_user.clone()) else {
        return Ok(());
    };
    let checked = facts(&name).and_then(|facts| {
        let is_own = facts.uid == rustix::process::geteuid().as_raw();
        if is_own { Ok(()) } else { may_become(&facts) }
    });
    checked.map_err(|reason| UserError { name, reason })
}

/// What the system knows of a user, its groups included.
fn facts(name: &str) -> Result<UserFacts, String> {
    let Some(user) = uzers::get_user_by_name(name) else {
        return Err("this machine has no such user; create it, or name another one".to_owned());
    };
    let gid = user.primary_group_id();
    let groups = uzers::get_user_groups(user.name(), gid).unwrap_or_default();
    let mut groups: Vec<u32> = groups.iter().map(uzers::Group::gid).chain([gid]).collect();
    groups.sort_unstable();
    groups.dedup();
    Ok(UserFacts {
        name: user.name().to_string_lossy().into_owned(),
        uid: user.uid(),
        gid,
        groups,
        home: user.home_dir().to_owned(),
        folder: None,
        become_user: system::become_user,
    })
}

/// Whether the host has the privilege.
fn may_become(facts: &UserFacts) -> Result<(), String> {
    if facts.uid == 0 {
        return Err("tools do not work as root; name another user, or start the host as root and remove the key".to_owned());
    }
    if !system::has_privilege() {
        return Err(format!(
            "this host may not change users; start it as root or with CAP_SETUID, CAP_SETGID and CAP_KILL, or as that user: `sudo -u {} -H zeph-host …`",
            facts.name
        ));
    }
    Ok(())
}

fn refused(facts: &UserFacts, error: &io::Error) -> String {
    format!(
        "the system refuses to make a thread theirs ({error}); start the host as root, or as that user: `sudo -u {} -H zeph-host …`",
        facts.name
    )
}

fn no_folder(facts: &UserFacts) -> String {
    format!(
        "no private folder can be made for that user: neither `{}` nor `{ELSEWHERE}{}` is one that only that user can change; remove what stands there",
        facts.home.join(AT_HOME).display(),
        facts.uid
    )
}

/// Whether the user can enter every directory that tools work in.
fn may_enter(config: &Config, user: &ToolUser) -> Result<(), String> {
    let of_files = config.file.roots.iter().map(|root| root.path.as_path());
    let of_commands = config.shell.allowed_paths.iter().map(PathBuf::as_path);
    let roots: Vec<&Path> = of_files.chain(of_commands).collect();
    let closed = user.run(|| {
        let mut roots = roots.into_iter();
        roots.find_map(|root| Some((root, root.join(".").metadata().err()?)))
    });
    match closed.map_err(|error| refused(user.facts(), &error))? {
        None => Ok(()),
        Some((root, error)) => Err(format!(
            "that user cannot enter `{}` ({error}); give the user access, or start the host in another directory",
            root.display()
        )),
    }
}

/// A private folder of the user. Made on a thread of that user: in the home, or beside the temporary files.
fn folder(facts: &UserFacts) -> Option<PathBuf> {
    let home = facts.home.metadata();
    let has_home = home.is_ok_and(|home| home.is_dir() && home.uid() == facts.uid);
    let at_home = facts.home.join(AT_HOME);
    let elsewhere = PathBuf::from(format!("{ELSEWHERE}{}", facts.uid));
    let places = has_home.then_some(at_home).into_iter().chain([elsewhere]);
    places.filter_map(|place| private(&place, facts.uid)).next()
}

/// The folder, made when missing, if nobody but the user can change what is in it.
fn private(place: &Path, uid: u32) -> Option<PathBuf> {
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true).mode(0o700).create(place).ok()?;
    let about = place.symlink_metadata().ok()?;
    let is_private = about.is_dir() && about.uid() == uid && about.mode() & 0o022 == 0;
    place.canonicalize().ok().filter(|_| is_private)
}

/// Has everything that is built from the configuration work as the user.
fn give(config: &mut Config, user: ToolUser) {
    let facts = user.facts();
    config.plugins.home = Some(facts.home.clone());
    config.mcp_homes = facts.folder.as_ref().map(|folder| folder.join("homes"));
    if let Some(folder) = &facts.folder {
        config.sandbox.hide.push(folder.clone());
        let pattern = globset::escape(&folder.to_string_lossy());
        let below = format!("{pattern}/**");
        config.file.deny_read.extend([pattern, below]);
    }
    config.tool_user = Some(user);
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use rustix::process::{Gid, Uid};
    use rustix::thread::{CapabilitySet, CapabilitySets};
    use zeph_core::user::UserFacts;

    /// What a host needs that changes users and ends what other users run.
    const NEEDED: CapabilitySet = CapabilitySet::SETUID
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::KILL);

    pub(super) fn has_privilege() -> bool {
        let held = rustix::thread::capabilities(None);
        held.is_ok_and(|held| held.effective.contains(NEEDED))
    }

    /// The groups first: afterwards nobody may change them any more.
    pub(super) fn become_user(facts: &UserFacts) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(facts.uid), Gid::from_raw(facts.gid));
        let groups: Vec<Gid> = facts.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        rustix::thread::set_thread_groups(&groups)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        // A host that holds single capabilities would keep them.
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        rustix::thread::set_capabilities(None, sets)?;
        let held = rustix::thread::capabilities(None)?;
        let is_user = rustix::process::geteuid() == uid && rustix::process::getegid() == gid;
        match is_user && held.effective.is_empty() && held.permitted.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other("the thread kept rights of the host")),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use zeph_core::user::UserFacts;

    pub(super) fn has_privilege() -> bool {
        false
    }

    pub(super) fn become_user(_: &UserFacts) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests;
