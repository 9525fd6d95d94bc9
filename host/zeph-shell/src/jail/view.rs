//! What a command sees: the mounts of a jail, and the same said to Landlock. Made for each run, since the file system of the
//! host goes on changing.

mod base;
mod protected;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_jail::plan::{MountCheck, PathAccess, Rule};

use self::base::{base, empty, git_config, home, own_mounts, temporary};
use self::protected::{Doors, held_links, places};
use super::aftermath::AftermathFinding;
use super::commits::CommitWatch;
use super::explain::ForeignRoot;
use super::git::OutsideGit;
use super::gitconfig::{CleanConfig, Missing};
use super::mount::{Mount, within_any};
use super::new_repositories::Loose;
use super::path_rules::PathRules;
use super::place::{Hold, MountPlace, PlaceKind, PlaceWatch, Places};
use super::place_state::{PlaceState, Why};
use super::policy::JailPolicy;
use super::rebase::{self, RebaseStep};
use super::survey::{Survey, lies_in_fetched};
use super::told::LeftOut;
use super::{JailError, Roots, sockets, system};

/// Most files with names elsewhere that are made read-only; each is a mount. Changes of more are told.
const LINKED_MAX: usize = 64;

/// Most files with names elsewhere that are compared: some four milliseconds before and after a run.
const COMPARED_MAX: usize = 4_000;

/// Most places that are held. Each is a mount; more repositories than that in one directory are a collection, not a project.
const HELD_MAX: usize = 1_500;

/// Where all would be more than that: how many files that programs obey, below the uppermost level of a root, are made read-only at least.
/// Each is a mount, and so is every directory on the way to it. Changes of more are told.
const DOORS_MAX: usize = 200;

/// What a command sees.
#[derive(Debug)]
pub(super) struct View {
    pub(super) mounts: Vec<Mount>,
    pub(super) checks: Vec<MountCheck>,
    pub(super) rules: Vec<Rule>,
    pub(super) watched: Vec<PlaceWatch>,
    /// What nothing protects, and is compared.
    pub(super) kept: Vec<PlaceState>,
    /// Git directories that no command can have changed what is obeyed in.
    pub(super) guarded: Vec<PathBuf>,
    /// Repositories that are looked at when they were changed.
    pub(super) loose: Vec<Loose>,
    /// What git would run that goes on with a rebase.
    pub(super) steps: BTreeSet<RebaseStep>,
    /// Commits, where they are without something.
    pub(super) commits: CommitWatch,
    /// What should be compared and is not.
    pub(super) left_out: LeftOut,
    /// What the caller should know of this view.
    pub(super) findings: Vec<AftermathFinding>,
    /// The home inside.
    pub(super) home: PathBuf,
    /// Where temporary files are put, if that is not the private `/tmp`.
    pub(super) temporary: Option<PathBuf>,
    /// Paths of the host that can be seen.
    pub(super) visible: Vec<PathBuf>,
    /// Whether named sockets may be made: none of others can be reached.
    pub(super) makes_sockets: bool,
    /// Sockets of others that are served, and covered.
    pub(super) covered_sockets: Arc<[PathBuf]>,
    /// What can be read only although it lies in a writable directory.
    pub(super) kept_files: Arc<[PathBuf]>,
    /// What stays where it is.
    pub(super) pinned: Arc<[PathBuf]>,
    /// A writable directory of another user than root, if commands run as root.
    pub(super) foreign: Option<ForeignRoot>,
}

/// Where commands find the certificates they are to trust, if these are others than those of the machine.
pub(super) const CERTIFICATES: &str = "/etc/zeph/certificates.pem";

/// Where libraries that look at no variable find the certificates of the machine, by distribution.
const OF_MACHINE: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A file of the certificates to trust, also in the place of those of the machine that are `visible`.
fn certificate_files<'a>(
    bytes: &'a [u8],
    visible: &'a [PathBuf],
) -> impl Iterator<Item = Mount> + 'a {
    let of_machine = OF_MACHINE.map(PathBuf::from).into_iter();
    let of_machine = of_machine.filter(move |path| {
        let metadata = path.symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.is_file()) && within_any(path, visible)
    });
    let bytes: Arc<[u8]> = bytes.into();
    of_machine
        .chain([PathBuf::from(CERTIFICATES)])
        .map(move |path| Mount::FixedFile {
            path,
            bytes: Arc::clone(&bytes),
        })
}

/// Paths of the host that are shown as they are, those of the `system` among them.
pub(super) fn visible(policy: &JailPolicy, system: Vec<Mount>, roots: &Roots) -> Vec<PathBuf> {
    let home = home(policy, roots);
    // Nothing of the configuration of git is a path of the host.
    base(policy, system, roots, (&home, CleanConfig::default())).visible
}

/// Makes the view of the full jail over the mounts of the `system`, with a file of `certificates` if there are some.
///
/// Errors: more must be protected than can be.
pub(super) fn make(
    policy: &JailPolicy,
    system: Vec<Mount>,
    roots: &Roots,
    survey: &Survey,
    certificates: Option<&[u8]>,
) -> Result<View, JailError> {
    let home = home(policy, roots);
    let all: Vec<&PathBuf> = roots.writable.iter().chain(&roots.readable).collect();
    let sockets = sockets::of(survey, &all);
    let (places, outside) = held(roots, survey, &sockets.served)?;
    let config = git_config(policy, roots, &home);
    let base = base(policy, system, roots, (&home, config));
    let mut mounts = base.mounts;
    let mut visible = base.visible;
    mounts.extend(
        outside
            .iter()
            .map(|outside| Mount::Read(outside.common.clone())),
    );
    visible.extend(outside.iter().map(|outside| outside.common.clone()));
    let elsewhere = hidden_elsewhere(roots, &visible, &sockets.served);
    let held = places.held.iter().chain(&elsewhere).flat_map(mounts_of);
    // What looks empty may hold a directory that is given nevertheless.
    let (fixed, held): (Vec<Mount>, Vec<Mount>) =
        held.partition(|mount| matches!(mount, Mount::Fixed(_)));
    mounts.extend(held);
    mounts.extend(own_mounts(policy));
    mounts.extend(fixed);
    mounts.extend(base.fixed);
    mounts.extend(
        certificates
            .into_iter()
            .flat_map(|bytes| certificate_files(bytes, &visible)),
    );
    mounts.push(Mount::Fixed("/".into()));
    let rules = full_rules(policy, roots, (&visible, &home), &outside);
    // That of a submodule is written to as a whole; what git obeys in it is held.
    let common = outside.iter().map(|outside| &outside.common);
    let common = common.filter(|common| !outside.iter().any(|one| one.writable.contains(common)));
    let common: Vec<&PathBuf> = common.collect();
    let mut checks = roots.checks();
    let kept = common
        .iter()
        .map(|common| MountPlace::at(common, Hold::ReadOnly));
    checks.extend(kept.flatten().map(|place| place.check()));
    checks.extend(own_checks(policy));
    checks.extend(places.held.iter().chain(&elsewhere).map(MountPlace::check));
    let held_as = |hold: Hold| {
        let held = places.held.iter().filter(move |place| place.hold == hold);
        held.map(|place| place.path.clone())
    };
    let common = common.into_iter().cloned();
    let kept_files: Arc<[PathBuf]> = held_as(Hold::ReadOnly).chain(common).collect();
    let pinned: Arc<[PathBuf]> = held_as(Hold::Pinned).collect();
    let held: HashSet<&PathBuf> = held_links(survey).collect();
    let linked = survey.linked.iter().filter(|file| !held.contains(file));
    let mut compared = ComparedFiles::default();
    compared.add(linked, Why::Linked, roots);
    compared.add(places.compared.iter(), Why::OneOfMany, roots);
    Ok(View {
        kept: compared.kept,
        left_out: compared.left_out,
        checks,
        mounts,
        rules,
        watched: places.watched,
        steps: rebase::steps(&places.guarded, &places.loose),
        commits: CommitWatch::begin(base.missing, &places.guarded),
        guarded: places.guarded,
        loose: places.loose.iter().map(|path| Loose::now(path)).collect(),
        findings: roots.findings(),
        temporary: temporary(roots, &home),
        home,
        visible,
        makes_sockets: !sockets.is_open,
        covered_sockets: sockets.served.into(),
        kept_files,
        pinned,
        foreign: ForeignRoot::of(&roots.writable),
    })
}

/// What is held in the writable directories, `sockets` of others among it.
///
/// Errors: more must be protected than can be.
fn held(
    roots: &Roots,
    survey: &Survey,
    sockets: &[PathBuf],
) -> Result<(Places, Vec<OutsideGit>), JailError> {
    let at_most = |doors: &Doors, doors_max: Option<usize>| {
        let (mut places, outside) = places(roots, survey, (doors, doors_max));
        let inside = sockets
            .iter()
            .filter(|path| within_any(path, &roots.writable));
        let covered = inside.filter_map(|path| MountPlace::at(path, Hold::Hidden));
        places.held.extend(covered);
        let places = places.sorted();
        match places.held.len() <= HELD_MAX {
            true => Ok((places, outside)),
            false => Err(JailError::TooMuch {
                limit: HELD_MAX,
                most: most_frequent(&places.held),
            }),
        }
    };
    let doors = Doors::all(survey);
    at_most(&doors, None).or_else(|too_much| {
        let (doors, limits) = doors.ranked(survey, DOORS_MAX);
        let fitting = limits
            .iter()
            .find_map(|limit| at_most(&doors, Some(*limit)).ok());
        fitting.ok_or(too_much)
    })
}

/// The name that most of `places` have.
fn most_frequent(places: &[MountPlace]) -> Option<String> {
    let mut counts: HashMap<&OsStr, usize> = HashMap::new();
    for name in places.iter().filter_map(|place| place.path.file_name()) {
        *counts.entry(name).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(name, count)| (*count, *name));
    most.map(|(name, _)| name.to_string_lossy().into_owned())
}

/// The rules of the full jail, whose root, home and directories in memory are private.
fn full_rules(
    policy: &JailPolicy,
    roots: &Roots,
    (visible, home): (&[PathBuf], &Path),
    outside: &[OutsideGit],
) -> Vec<Rule> {
    let mut rules = rules(roots, visible);
    rules.extend(own_rules(policy));
    for path in ["/tmp", "/dev/shm"]
        .map(Path::new)
        .into_iter()
        .chain([home])
    {
        rules.push(rule(path, PathAccess::Private));
    }
    rules.push(rule("/etc", PathAccess::Read));
    // The names in the private root, not what lies behind them.
    rules.push(rule("/", PathAccess::List));
    rules.extend(outside.iter().flat_map(|outside| {
        outside
            .writable
            .iter()
            .map(|path| rule(path, PathAccess::Write))
    }));
    without_covered(rules)
}

/// Without rules to read what another one lets be read, since Landlock asks the rules of every directory above: to put each on takes time.
fn without_covered(rules: Vec<Rule>) -> Vec<Rule> {
    let lies_in = |path: &[u8], above: &[u8]| {
        let below = path.strip_prefix(above);
        below.is_some_and(|below| matches!(below.first(), None | Some(b'/')))
    };
    let covers = |other: &Rule, rule: &Rule| match other.access {
        PathAccess::Write | PathAccess::Private => lies_in(&rule.path, &other.path),
        PathAccess::Read => lies_in(&rule.path, &other.path) && rule.path != other.path,
        PathAccess::List | PathAccess::Device => false,
    };
    let is_needed = |rule: &&Rule| {
        let reads = rule.access == PathAccess::Read && rule.object.is_none();
        !reads || !rules.iter().any(|other| covers(other, rule))
    };
    rules.iter().filter(is_needed).cloned().collect()
}

/// Rules for the jail without namespaces. Nothing can be covered there, so what must be hidden is given no rule, and neither are
/// the directories above it as a whole.
///
/// Errors: too much lies beside what must be hidden.
pub(super) fn alone(
    policy: &JailPolicy,
    system: Vec<Mount>,
    roots: &Roots,
    survey: &Survey,
    scratch: &Path,
) -> Result<View, JailError> {
    let home = home(policy, roots);
    let (places, outside) = places(roots, survey, (&Doors::all(survey), None));
    // What is mounted elsewhere is written into the place of the run here.
    let mut config = git_config(policy, roots, scratch);
    let files = std::mem::take(&mut config.files);
    let base = base(policy, system, roots, (&home, config));
    let mut around = PathRules::new(roots);
    for path in &base.visible {
        let access = match roots.writable.contains(path) {
            true => PathAccess::Write,
            false => PathAccess::Read,
        };
        around.give(path, access)?;
    }
    let (mut rules, findings) = around.finish();
    rules.push(rule("/proc", PathAccess::Read));
    // Terminals are the host's here.
    let devices = DEVICES.iter().filter(|name| !TERMINALS.contains(name));
    rules.extend(devices.map(|name| rule(Path::new("/dev").join(name), PathAccess::Device)));
    // Where a private list stands in the full jail, the host's own must do.
    let made = ["passwd", "group", "nsswitch.conf", "hosts", "resolv.conf"];
    let etc = Path::new("/etc");
    let made = made.iter().map(|name| etc.join(name));
    // Directories are given above, but for what is hidden in them.
    let settings = system::settings(etc).into_iter();
    let settings = settings.filter(|path| !base.visible.contains(path));
    rules.extend(
        made.chain(settings)
            .map(|path| rule(path, PathAccess::Read)),
    );
    rules.push(rule(scratch, PathAccess::Write));
    for (path, bytes) in files {
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, bytes))
            .map_err(JailError::system("write the configuration of git"))?;
    }
    rules.extend(own_rules(policy));
    for one in &outside {
        rules.extend(rule_of(&one.common, PathAccess::Read));
        let writable = one.writable.iter();
        rules.extend(writable.filter_map(|path| rule_of(path, PathAccess::Write)));
    }
    Ok(View {
        rules,
        visible: base.visible,
        ..looked(places, (roots, survey), (findings, base.missing), scratch)
    })
}

/// What is looked at after a run that nothing is mounted for.
#[cfg(target_vendor = "apple")]
pub(super) fn looked_at(
    policy: &JailPolicy,
    system: Vec<Mount>,
    roots: &Roots,
    survey: &Survey,
    scratch: &Path,
) -> View {
    let (places, _) = places(roots, survey, (&Doors::all(survey), None));
    let home = home(policy, roots);
    let config = git_config(policy, roots, &home);
    let base = base(policy, system, roots, (&home, config));
    View {
        visible: base.visible,
        ..looked(places, (roots, survey), (Vec::new(), base.missing), scratch)
    }
}

fn looked(
    places: Places,
    (roots, survey): (&Roots, &Survey),
    (mut findings, missing): (Vec<AftermathFinding>, Missing),
    scratch: &Path,
) -> View {
    findings.extend(roots.findings());
    let places = places.sorted();
    let mut compared = ComparedFiles::default();
    compared.add(survey.linked.iter(), Why::Linked, roots);
    let linked: HashSet<&PathBuf> = survey.linked.iter().collect();
    let held = places.held.iter();
    let obeyed = held.filter(|place| place.hold == Hold::ReadOnly && !linked.contains(&place.path));
    let obeyed = obeyed.filter_map(|place| PlaceState::now(&place.path, Why::Obeyed));
    View {
        kept: obeyed.chain(compared.kept).collect(),
        left_out: compared.left_out,
        mounts: Vec::new(),
        checks: Vec::new(),
        rules: Vec::new(),
        watched: places.watched,
        steps: rebase::steps(&places.guarded, &places.loose),
        commits: CommitWatch::begin(missing, &places.guarded),
        guarded: places.guarded,
        loose: places.loose.iter().map(|path| Loose::now(path)).collect(),
        findings,
        home: scratch.to_owned(),
        temporary: None,
        visible: Vec::new(),
        makes_sockets: false,
        covered_sockets: Arc::default(),
        kept_files: Arc::default(),
        pinned: Arc::default(),
        foreign: ForeignRoot::of(&roots.writable),
    }
}

fn own_rules(policy: &JailPolicy) -> impl Iterator<Item = Rule> {
    let read = policy.own.read.iter();
    let write = policy.own.write.iter();
    let read = read.filter_map(|path| rule_of(path, PathAccess::Read));
    read.chain(write.filter_map(|path| rule_of(path, PathAccess::Private)))
}

fn own_checks(policy: &JailPolicy) -> impl Iterator<Item = MountCheck> {
    let read = policy.own.read.iter();
    let write = policy.own.write.iter();
    let read = read.filter_map(|path| MountPlace::at(path, Hold::ReadOnly));
    let write = write.filter_map(|path| MountPlace::at(path, Hold::Writable));
    read.chain(write).map(|place| place.check())
}

/// Files that should stay as they are and that no mount protects.
#[derive(Debug, Default)]
struct ComparedFiles {
    kept: Vec<PlaceState>,
    left_out: LeftOut,
}

impl ComparedFiles {
    /// Adds the first of some files, with those among packages last, and counts the others. Of packages none is counted: package managers
    /// link very many files to their stores, and no user can do anything about it.
    fn add<'a>(&mut self, files: impl Iterator<Item = &'a PathBuf>, why: Why, roots: &Roots) {
        let mut files = files;
        let first = files.by_ref().take(COMPARED_MAX);
        self.kept
            .extend(first.filter_map(|file| PlaceState::now(file, why)));
        for file in files.take_while(|file| !lies_in_fetched(file, &roots.writable)) {
            self.left_out.first.get_or_insert_with(|| file.clone());
            self.left_out.n += 1;
        }
    }
}

fn mounts_of(place: &MountPlace) -> Vec<Mount> {
    let path = place.path.clone();
    match (place.hold, place.kind) {
        (Hold::Pinned | Hold::Writable, _) => vec![Mount::Write(path)],
        (Hold::ReadOnly, _) => vec![Mount::Read(path)],
        (Hold::Hidden, kind) => nothing_at(path, kind),
    }
}

fn nothing_at(path: PathBuf, kind: PlaceKind) -> Vec<Mount> {
    match kind {
        PlaceKind::Directory => vec![empty(path.clone()), Mount::Fixed(path)],
        PlaceKind::File => vec![Mount::FixedFile {
            path,
            bytes: Arc::default(),
        }],
    }
}

/// What must be hidden in places that are only read, `sockets` of others among it.
fn hidden_elsewhere(roots: &Roots, visible: &[PathBuf], sockets: &[PathBuf]) -> Vec<MountPlace> {
    let elsewhere = roots
        .hidden
        .iter()
        .chain(sockets)
        .filter(|path| within_any(path, visible) && !within_any(path, &roots.writable));
    let places = elsewhere.filter_map(|path| MountPlace::at(path, Hold::Hidden));
    places.collect()
}

/// The same as the mounts, said to Landlock. It cannot take back what a rule above gave, so it holds the outer border only.
fn rules(roots: &Roots, visible: &[PathBuf]) -> Vec<Rule> {
    let read = visible.iter().map(|path| rule(path, PathAccess::Read));
    let mut rules: Vec<Rule> = read.collect();
    rules.extend(
        roots
            .writable
            .iter()
            .map(|path| rule(path, PathAccess::Write)),
    );
    rules.push(rule("/proc", PathAccess::Read));
    for name in DEVICES {
        rules.push(rule(Path::new("/dev").join(name), PathAccess::Device));
    }
    rules
}

/// What every program expects below `/dev`, besides the private `shm`.
const DEVICES: [&str; 8] = [
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts",
];

/// A rule for what is at a path now and nothing else.
fn rule_of(path: &Path, access: PathAccess) -> Option<Rule> {
    let place = MountPlace::at(path, Hold::Pinned)?;
    Some(Rule {
        object: Some((place.device, place.inode)),
        ..rule(path, access)
    })
}

/// Those of them that lead to a person.
const TERMINALS: [&str; 3] = ["tty", "ptmx", "pts"];

pub(super) fn rule(path: impl AsRef<Path>, access: PathAccess) -> Rule {
    Rule {
        path: path.as_ref().as_os_str().as_bytes().to_vec(),
        access,
        object: None,
    }
}
