//! The parts of the host's system a command needs to run: programs, libraries, a short list from `/etc`, devices.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::mount::Mount;
use super::policy::Network;

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
/// made (`accounts`). Small files are copied, since a mount costs ten times as much.
const SETTINGS: [&str; 16] = [
    "alternatives",
    "debian_version",
    "dotnet",
    "fonts",
    "gai.conf",
    "host.conf",
    "java",
    "ld.so.cache",
    "localtime",
    "mime.types",
    "os-release",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
];

/// What distributions keep in `/etc` of a toolchain that does not start without it. Only these parts: what is beside them can hold
/// passwords, such as the settings of Maven.
const TOOLCHAIN_SETTINGS: [&str; 7] = [
    "java-*/logging.properties",
    "java-*/net.properties",
    "java-*/security",
    "maven/logging",
    "maven/m2.conf",
    "php/*/cli/conf.d",
    "php/*/mods-available",
];

/// Files up to so many bytes are copied.
const COPIED_BYTES_MAX: u64 = 128 * 1024;

/// Mounts of the system, in their order.
pub(super) fn mounts(network: Network) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = PROGRAMS
        .iter()
        .filter_map(|path| as_on_host(Path::new(path)))
        .collect();
    mounts.push(Mount::Directory("/etc".into()));
    mounts.extend(
        settings(Path::new("/etc"))
            .iter()
            .filter_map(|path| setting(path)),
    );
    mounts.push(made("/etc/passwd", &accounts()));
    mounts.push(made("/etc/group", &groups()));
    mounts.push(made("/etc/nsswitch.conf", NAMES));
    mounts.push(made("/etc/hosts", HOSTS));
    if network == Network::Open {
        // Often a link to a place that is not in the jail.
        if let Ok(servers) = std::fs::read("/etc/resolv.conf") {
            mounts.push(Mount::File {
                path: "/etc/resolv.conf".into(),
                bytes: servers,
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

const NAMES: &str =
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";
const HOSTS: &str = "127.0.0.1 localhost jail\n::1 localhost ip6-localhost\n";

fn made(path: &str, content: &str) -> Mount {
    Mount::File {
        path: path.into(),
        bytes: content.as_bytes().to_vec(),
    }
}

/// The path as it is on the host: nothing, a link, or a mount.
fn as_on_host(path: &Path) -> Option<Mount> {
    let kind = path.symlink_metadata().ok()?.file_type();
    match kind.is_symlink() {
        true => link(path),
        false => Some(Mount::Read(path.to_owned())),
    }
}

/// The settings that there are in `etc`.
pub(super) fn settings(etc: &Path) -> Vec<PathBuf> {
    let named = SETTINGS.iter().map(|name| etc.join(name));
    let named = named.filter(|path| path.symlink_metadata().is_ok());
    let of_toolchains = TOOLCHAIN_SETTINGS
        .iter()
        .flat_map(|pattern| matching(etc, pattern));
    named.chain(of_toolchains).collect()
}

/// What there is below `base` that fits `pattern`, in which a name can end in `*`. Symbolic links are not followed: they could lead to
/// anything.
fn matching(base: &Path, pattern: &str) -> Vec<PathBuf> {
    let is_link = |path: &PathBuf| path.is_symlink();
    let mut found = vec![base.to_owned()];
    for name in pattern.split('/') {
        let below = |directory: &PathBuf| match name.strip_suffix('*') {
            None => vec![directory.join(name)],
            Some(start) => {
                let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
                let entries = entries
                    .filter(|entry| entry.file_name().as_bytes().starts_with(start.as_bytes()));
                let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
                paths.sort();
                paths
            }
        };
        found = found.iter().flat_map(below).collect();
        found.retain(|path| path.exists() && !is_link(path));
    }
    found
}

/// The path as it is on the host, small files as a copy.
fn setting(path: &Path) -> Option<Mount> {
    let about = path.symlink_metadata().ok()?;
    if about.is_symlink() {
        return link(path);
    }
    let is_small = about.is_file() && about.len() <= COPIED_BYTES_MAX;
    let bytes = is_small.then(|| std::fs::read(path).ok()).flatten();
    let path = path.to_owned();
    Some(match bytes {
        Some(bytes) => Mount::File { path, bytes },
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
fn accounts() -> String {
    let me = rustix::process::geteuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    pick(&known, &[&me, "0", "65534"])
}

fn groups() -> String {
    let me = rustix::process::getegid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/group").unwrap_or_default();
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

    use super::settings;

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
            "java-21-openjdk/net.properties",
            "java-17-openjdk/security",
            "maven/m2.conf",
            "php/8.2/cli/conf.d",
            "php/8.2/mods-available",
        ];
        assert_eq!(found, expect.map(std::path::Path::new));
    }
}
