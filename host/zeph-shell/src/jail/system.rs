//! The parts of the host's system a command needs to run: programs, libraries, a short list from `/etc`, devices.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::mount::Mount;
use super::policy::Network;
use super::survey::TICK;

/// Where programs and libraries lie; links stay links.
const PROGRAMS: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// What libraries and ordinary programs read in `/etc`. No file here is secret on any machine; accounts are not copied but
/// made (`accounts`). Small files are copied, since a mount costs ten times as much. What of `ssl` and `pki` is not for everyone is
/// hidden (`secrets`).
const SETTINGS: [&str; 26] = [
    "OpenCL",
    "alternatives",
    "debian_version",
    "dictionaries-common",
    "dotnet",
    "fonts",
    "gai.conf",
    "groff",
    "host.conf",
    "java",
    "ld.so.cache",
    "locale.alias",
    "localtime",
    "manpath.config",
    "mime.types",
    "os-release",
    "papersize",
    "pki",
    "protocols",
    "services",
    "sgml",
    "ssl",
    "texmf",
    "timezone",
    "vim",
    "xml",
];

/// What distributions keep in `/etc` of a toolchain that does not start, or ends with other results, without it. Only these parts: what is
/// beside them can hold passwords, such as the settings of Maven and the site's own of R.
const TOOLCHAIN_SETTINGS: [&str; 13] = [
    "ImageMagick-*",
    "R/Makeconf",
    "R/Renviron",
    "R/ldpaths",
    "R/repositories",
    "java-*/logging.properties",
    "java-*/net.properties",
    "java-*/security",
    "maven/logging",
    "maven/m2.conf",
    "perl/Net",
    "php/*/cli/conf.d",
    "php/*/mods-available",
];

/// What distributions keep in `/var/lib` of packages whose programs lie in `/usr`: registered libraries, formats and lists of names that were
/// made when they were installed. All of it is for everyone, and no service keeps data there.
const STATE: [&str; 8] = [
    "aspell",
    "dictionaries-common",
    "gems",
    "ghc",
    "ispell",
    "sgml-base",
    "texmf",
    "xml-core",
];

/// Directories of `/etc` that are shown and may hold keys that only some users read, a host that is root among them.
const WITH_SECRETS: [&str; 2] = ["ssl", "pki"];

/// How deep these are looked through, as for `pki/tls/private`, and how many entries.
const SECRETS_DEPTH_MAX: usize = 3;
const SECRETS_ENTRIES_MAX: usize = 5_000;

/// Files up to so many bytes are copied.
const COPIED_BYTES_MAX: u64 = 128 * 1024;

/// Directories with at most so many files, of so many bytes together, are copied, too: while a mount is made, all that are there already
/// are read again.
const COPIED_ENTRIES_MAX: usize = 3;
const COPIED_ENTRIES_BYTES_MAX: u64 = 16 * 1024;

/// The mounts of the system, kept for as long as all they were made from is what it was: to look whether it is takes a fraction of the
/// time that making them takes.
#[derive(Debug, Default)]
pub(super) struct SystemMounts {
    /// Protects what was made last, for the moment of a look.
    kept: Mutex<KeptMounts>,
}

/// What is kept.
#[derive(Debug, Default)]
struct KeptMounts {
    n_made: usize,
    made: Option<MadeMounts>,
}

/// How often they are made before they are kept: a jail around one program, such as a server, has no use for copies of files.
const MADE_BEFORE: usize = 2;

/// What was made, and from what.
#[derive(Debug)]
struct MadeMounts {
    mounts: Vec<Mount>,
    sources: Vec<Source>,
}

/// A path that was looked at, and what stood there.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    path: PathBuf,
    /// Whether a link at the path was followed.
    is_followed: bool,
    stamp: Option<SourceStamp>,
}

/// What changes when a file or a directory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourceStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl SystemMounts {
    /// Those of a jail with this `network`, in their order.
    pub(super) fn now(&self, network: Network) -> Vec<Mount> {
        let mut mounts = self.kept();
        if network == Network::Open {
            // Often a link to a place that is not in the jail.
            if let Ok(servers) = std::fs::read("/etc/resolv.conf") {
                mounts.push(Mount::File {
                    path: "/etc/resolv.conf".into(),
                    bytes: servers.into(),
                });
            }
        }
        mounts.push(Mount::Directory("/run".into()));
        mounts.push(Mount::Link {
            path: "/var/tmp".into(),
            target: "/tmp".into(),
        });
        mounts
    }

    /// Keeps what is made from now on: it will be asked for again.
    pub(super) fn keep(&self) {
        self.lock().n_made = MADE_BEFORE;
    }

    fn kept(&self) -> Vec<Mount> {
        let mut kept = self.lock();
        let is_same = |made: &&MadeMounts| made.sources.iter().all(Source::is_same);
        if let Some(made) = kept.made.as_ref().filter(is_same) {
            return made.mounts.clone();
        }
        kept.made = None;
        kept.n_made += 1;
        let begun = clock_gettime(ClockId::Realtime);
        let mut look = Look::default();
        let mounts = make(Path::new("/etc"), &mut look);
        let is_old = |source: &Source| source.stamp.is_none_or(|stamp| stamp.is_older_than(begun));
        if kept.n_made > MADE_BEFORE && look.sources.iter().all(is_old) {
            kept.made = Some(MadeMounts {
                mounts: mounts.clone(),
                sources: look.sources,
            });
        }
        mounts
    }

    fn lock(&self) -> MutexGuard<'_, KeptMounts> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn is_same(&self) -> bool {
        let about = match self.is_followed {
            true => self.path.metadata(),
            false => self.path.symlink_metadata(),
        };
        about.ok().as_ref().map(SourceStamp::of) == self.stamp
    }
}

impl SourceStamp {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    /// Whether another change right after `clock` would show.
    fn is_older_than(self, clock: Timespec) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since = (clock.tv_sec - seconds) * 1_000_000_000 + clock.tv_nsec - nanoseconds;
        since > TICK
    }
}

/// One look at the system, which notes everything it sees before it is read: what changes meanwhile is another one the next time. A name
/// that appears, vanishes or leads elsewhere changes the directory it is in.
#[derive(Debug, Default)]
struct Look {
    sources: Vec<Source>,
    /// Each path is looked at once.
    seen: HashMap<PathBuf, Option<Metadata>>,
}

impl Look {
    /// What stands at `path`; a link is not followed.
    fn at(&mut self, path: &Path) -> Option<Metadata> {
        if let Some(seen) = self.seen.get(path) {
            return seen.clone();
        }
        let about = path.symlink_metadata().ok();
        self.note(path, false, about.as_ref());
        self.seen.insert(path.to_owned(), about.clone());
        about
    }

    /// The text that `path` leads to.
    fn text(&mut self, path: &Path) -> String {
        self.note(path, true, path.metadata().ok().as_ref());
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// The first `n_max` names in a directory, in their order.
    fn names(&mut self, directory: &Path, n_max: usize) -> Vec<OsString> {
        self.at(directory);
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.take(n_max).map(|entry| entry.file_name());
        let mut names: Vec<OsString> = names.collect();
        names.sort();
        names
    }

    fn note(&mut self, path: &Path, is_followed: bool, about: Option<&Metadata>) {
        self.sources.push(Source {
            path: path.to_owned(),
            is_followed,
            stamp: about.map(SourceStamp::of),
        });
    }
}

/// The mounts that are the same in every network.
fn make(etc: &Path, look: &mut Look) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = PROGRAMS
        .iter()
        .filter_map(|path| as_on_host(Path::new(path), look))
        .collect();
    mounts.extend(state().filter_map(|path| for_everyone(&path, look)));
    mounts.push(Mount::Directory("/etc".into()));
    let settings = settings_of(etc, look);
    mounts.extend(settings.iter().filter_map(|path| setting(path, look)));
    mounts.push(made("/etc/passwd", &accounts(etc, look)));
    mounts.push(made("/etc/group", &groups(etc, look)));
    mounts.push(made("/etc/nsswitch.conf", NAMES));
    mounts.push(made("/etc/hosts", HOSTS));
    mounts
}

const NAMES: &str =
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";
const HOSTS: &str = "127.0.0.1 localhost jail\n::1 localhost ip6-localhost\n";

fn made(path: &str, content: &str) -> Mount {
    Mount::File {
        path: path.into(),
        bytes: content.as_bytes().into(),
    }
}

/// The path as it is on the host: nothing, a link, or a mount.
fn as_on_host(path: &Path, look: &mut Look) -> Option<Mount> {
    match look.at(path)?.is_symlink() {
        true => link(path),
        false => Some(Mount::Read(path.to_owned())),
    }
}

fn state() -> impl Iterator<Item = PathBuf> {
    STATE.iter().map(|name| Path::new("/var/lib").join(name))
}

/// A directory that every user of the machine may read.
fn for_everyone(path: &Path, look: &mut Look) -> Option<Mount> {
    let about = look.at(path)?;
    is_open(&about).then(|| directory(path, &about, look))
}

fn is_open(about: &Metadata) -> bool {
    about.is_dir() && about.mode() & 0o005 == 0o005
}

/// A directory, with few small files as a copy.
fn directory(path: &Path, about: &Metadata, look: &mut Look) -> Mount {
    let path = path.to_owned();
    match copies(&path, about, look) {
        Some(entries) => Mount::Copied { path, entries },
        None => Mount::Read(path),
    }
}

/// Copies of all that is in a directory; `None` where they would differ from it, or are too many or too large.
fn copies(directory: &Path, about: &Metadata, look: &mut Look) -> Option<Arc<[Mount]>> {
    // Where directories are counted as links, another one lies in it.
    if !is_open(about) || about.nlink() > 2 {
        return None;
    }
    let names = look.names(directory, COPIED_ENTRIES_MAX + 1);
    let mut left = COPIED_ENTRIES_BYTES_MAX;
    let mut entries = Vec::new();
    for name in &names {
        let path = directory.join(name);
        let about = look.at(&path)?;
        if about.is_symlink() {
            entries.push(link(&path)?);
            continue;
        }
        let is_plain = about.is_file() && about.mode() & 0o7115 == 0o004;
        left = left.checked_sub(about.len()).filter(|_| is_plain)?;
        let bytes = std::fs::read(&path).ok()?.into();
        entries.push(Mount::File { path, bytes });
    }
    (names.len() <= COPIED_ENTRIES_MAX).then(|| entries.into())
}

/// What lies in the settings of `etc` that commands see and is not for every user of the machine, such as keys of its servers.
///
/// Limits: looks at 5,000 entries, three levels deep.
pub(super) fn secrets(etc: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = SECRETS_ENTRIES_MAX;
    let tops = WITH_SECRETS.iter().map(|name| (etc.join(name), 0));
    let mut pending: Vec<(PathBuf, usize)> = tops.collect();
    while let Some((folder, depth)) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else {
                return found;
            };
            left = rest;
            // Not through links: they lead to what is shown elsewhere, or to nothing. Certificates are hundreds of them.
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if about.mode() & 0o004 == 0 {
                found.push(path);
            } else if about.is_dir() && depth + 1 < SECRETS_DEPTH_MAX {
                pending.push((path, depth + 1));
            }
        }
    }
    found
}

/// The settings that there are in `etc`.
pub(super) fn settings(etc: &Path) -> Vec<PathBuf> {
    settings_of(etc, &mut Look::default())
}

fn settings_of(etc: &Path, look: &mut Look) -> Vec<PathBuf> {
    let named = SETTINGS.iter().map(|name| etc.join(name));
    let mut found: Vec<PathBuf> = named.filter(|path| look.at(path).is_some()).collect();
    let listed = look.names(etc, usize::MAX);
    for pattern in TOOLCHAIN_SETTINGS {
        found.extend(matching(etc, &listed, pattern, look));
    }
    found
}

/// What there is below `base`, which holds the names `listed`, that fits `pattern`, in which a name can end in `*`. Symbolic links are
/// not followed: they could lead to anything.
fn matching(base: &Path, listed: &[OsString], pattern: &str, look: &mut Look) -> Vec<PathBuf> {
    let mut found = vec![base.to_owned()];
    for (depth, name) in pattern.split('/').enumerate() {
        let mut below = Vec::new();
        for directory in &found {
            match (name.strip_suffix('*'), depth) {
                (None, _) => below.push(directory.join(name)),
                (Some(start), 0) => below.extend(starting(directory, listed, start)),
                (Some(start), _) => {
                    let names = look.names(directory, usize::MAX);
                    below.extend(starting(directory, &names, start));
                }
            }
        }
        below.retain(|path| look.at(path).is_some_and(|about| !about.is_symlink()));
        found = below;
    }
    found
}

fn starting(directory: &Path, names: &[OsString], start: &str) -> Vec<PathBuf> {
    let names = names.iter();
    let fitting = names.filter(|name| name.as_bytes().starts_with(start.as_bytes()));
    fitting.map(|name| directory.join(name)).collect()
}

/// The path as it is on the host, small files as a copy.
fn setting(path: &Path, look: &mut Look) -> Option<Mount> {
    let about = look.at(path)?;
    if about.is_symlink() {
        return link(path);
    }
    if about.is_dir() {
        return Some(directory(path, &about, look));
    }
    let is_small = about.is_file() && about.len() <= COPIED_BYTES_MAX;
    let bytes = is_small.then(|| std::fs::read(path).ok()).flatten();
    let path = path.to_owned();
    Some(match bytes {
        Some(bytes) => Mount::File {
            path,
            bytes: bytes.into(),
        },
        None => Mount::Read(path),
    })
}

fn link(path: &Path) -> Option<Mount> {
    let target = std::fs::read_link(path).ok()?;
    Some(Mount::Link {
        path: path.to_owned(),
        target,
    })
}

/// The accounts a command needs to know: its own, the first one, and the one for everything that is not mapped. Who else has an
/// account on the machine is nobody's business.
fn accounts(etc: &Path, look: &mut Look) -> String {
    let me = rustix::process::geteuid().as_raw().to_string();
    pick(&look.text(&etc.join("passwd")), &[&me, "0", "65534"])
}

fn groups(etc: &Path, look: &mut Look) -> String {
    let me = rustix::process::getegid().as_raw().to_string();
    let known = look.text(&etc.join("group"));
    // Members are names of accounts.
    let mut picked = String::new();
    for line in pick(&known, &[&me, "0", "65534"]).lines() {
        let fields: Vec<&str> = line.splitn(4, ':').collect();
        picked.push_str(&fields[..fields.len().min(3)].join(":"));
        picked.push_str(":\n");
    }
    picked
}

/// The lines whose third field is one of `numbers`.
fn pick(file: &str, numbers: &[&str]) -> String {
    file.lines()
        .filter(|line| {
            let number = line.split(':').nth(2);
            number.is_some_and(|number| numbers.contains(&number))
        })
        .fold(String::new(), |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use rustix::time::Timespec;

    use super::{
        Look, Mount, Network, Source, SourceStamp, SystemMounts, copies, make, secrets, settings,
    };

    fn made(etc: &Path) -> (Vec<Mount>, Vec<Source>) {
        let mut look = Look::default();
        let mounts = make(etc, &mut look);
        (mounts, look.sources)
    }

    #[test]
    fn mounts_that_are_kept_are_those_that_would_be_made() {
        let system = SystemMounts::default();
        let first = system.now(Network::Loopback);
        assert!(first.starts_with(&made(Path::new("/etc")).0));
        for _ in 0..3 {
            assert_eq!(system.now(Network::Loopback), first);
        }
        let with_servers = system.now(Network::Open);
        let added = usize::from(Path::new("/etc/resolv.conf").exists());
        assert_eq!(with_servers.len(), first.len() + added);
    }

    #[test]
    fn what_mounts_are_made_from_is_another_when_a_name_or_a_text_is() {
        let etc = tempfile::tempdir().unwrap();
        let etc = etc.path();
        fs::create_dir_all(etc.join("php/8.2")).unwrap();
        fs::write(etc.join("passwd"), "root:x:0:0").unwrap();
        fs::write(etc.join("timezone"), "Etc/UTC").unwrap();
        fs::create_dir(etc.join("vim")).unwrap();
        let (_, mut before) = made(etc);
        let mut check = |what: &str| {
            assert!(!before.iter().all(Source::is_same), "{what}");
            let (_, now) = made(etc);
            assert!(now.iter().all(Source::is_same), "{what}");
            before = now;
        };
        fs::write(etc.join("vim/vimrc"), "set").unwrap();
        check("a file in a directory that is copied");
        fs::write(etc.join("vim/vimrc"), "set all").unwrap();
        check("the text of such a file");
        fs::create_dir_all(etc.join("php/8.2/cli/conf.d")).unwrap();
        check("a directory of settings two levels below");
        fs::write(etc.join("services"), "").unwrap();
        check("a file of settings");
        fs::write(etc.join("passwd"), "root:x:0:0\nme:x:1000:1000").unwrap();
        check("accounts");
        fs::write(etc.join("new"), "Etc/CET").unwrap();
        fs::rename(etc.join("new"), etc.join("timezone")).unwrap();
        check("a file in the place of another");
        fs::remove_file(etc.join("timezone")).unwrap();
        check("a file that is gone");
    }

    #[test]
    fn what_changed_just_now_is_not_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = SourceStamp::of(&file.path().metadata().unwrap());
        let (tv_sec, tv_nsec) = stamp.changed;
        assert!(!stamp.is_older_than(Timespec { tv_sec, tv_nsec }));
        let later = Timespec {
            tv_sec: tv_sec + 1,
            tv_nsec,
        };
        assert!(stamp.is_older_than(later));
    }

    #[test]
    fn a_directory_is_copied_where_nothing_of_it_is_lost() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path();
        let file = |path: &Path, mode| {
            fs::write(path, "text").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let copied = || {
            let about = at.symlink_metadata().unwrap();
            copies(at, &about, &mut Look::default())
        };
        let n_copied = || copied().map(|entries| entries.len());
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(n_copied(), Some(0));
        file(&at.join("a"), 0o644);
        std::os::unix::fs::symlink("a", at.join("b")).unwrap();
        let expect = [
            Mount::File {
                path: at.join("a"),
                bytes: b"text".as_slice().into(),
            },
            Mount::Link {
                path: at.join("b"),
                target: "a".into(),
            },
        ];
        assert_eq!(copied().as_deref(), Some(expect.as_slice()));
        for mode in [0o640, 0o600, 0o755, 0o645, 0o4644] {
            file(&at.join("c"), mode);
            assert_eq!(n_copied(), None, "{mode:o}");
        }
        fs::remove_file(at.join("c")).unwrap();
        fs::create_dir(at.join("c")).unwrap();
        assert_eq!(n_copied(), None, "a directory");
        fs::remove_dir(at.join("c")).unwrap();
        fs::write(at.join("c"), vec![b'x'; 16 * 1024]).unwrap();
        assert_eq!(n_copied(), None, "a large file");
        file(&at.join("c"), 0o644);
        assert_eq!(n_copied(), Some(3));
        file(&at.join("d"), 0o644);
        assert_eq!(n_copied(), None, "many files");
        fs::remove_file(at.join("d")).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(n_copied(), None, "not for everyone");
    }

    #[test]
    fn keys_of_the_machine_are_secrets_of_its_settings() {
        let etc = tempfile::tempdir().unwrap();
        let etc = etc.path();
        for (path, mode) in [
            ("ssl/certs/ca.pem", 0o644),
            ("ssl/certs/own.key", 0o600),
            ("ssl/private/server.key", 0o640),
            ("pki/tls/private/server.key", 0o640),
            ("pki/tls/openssl.cnf", 0o644),
            ("other/key", 0o600),
        ] {
            let path = etc.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        for private in ["ssl/private", "pki/tls/private"] {
            fs::set_permissions(etc.join(private), fs::Permissions::from_mode(0o710)).unwrap();
        }
        std::os::unix::fs::symlink("../private/server.key", etc.join("ssl/certs/link")).unwrap();
        let mut found = secrets(etc);
        found.sort();
        let expect = ["pki/tls/private", "ssl/certs/own.key", "ssl/private"];
        assert_eq!(found, expect.map(|path| etc.join(path)));
    }

    #[test]
    fn of_toolchains_only_what_holds_no_password() {
        let etc = tempfile::tempdir().unwrap();
        let etc = etc.path();
        let files = [
            "java-17-openjdk/security/java.security",
            "java-17-openjdk/management/jmxremote.password",
            "java-21-openjdk/net.properties",
            "javac",
            "maven/m2.conf",
            "maven/settings.xml",
            "ImageMagick-6/policy.xml",
            "R/Renviron",
            "R/Renviron.site",
            "perl/Net/libnet.cfg",
            "perl/CPAN/Config.pm",
            "php/8.2/cli/conf.d/10-json.ini",
            "php/8.2/cli/php.ini",
            "php/8.2/mods-available/json.ini",
            "shadow",
            "ssl/openssl.cnf",
        ];
        for file in files.map(|file| etc.join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink("shadow", etc.join("java-8")).unwrap();
        std::os::unix::fs::symlink("../shadow", etc.join("maven/logging")).unwrap();
        let found = settings(etc);
        let found: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(etc).unwrap())
            .collect();
        let expect = [
            "ssl",
            "ImageMagick-6",
            "R/Renviron",
            "java-21-openjdk/net.properties",
            "java-17-openjdk/security",
            "maven/m2.conf",
            "perl/Net",
            "php/8.2/cli/conf.d",
            "php/8.2/mods-available",
        ];
        assert_eq!(found, expect.map(std::path::Path::new));
    }
}
