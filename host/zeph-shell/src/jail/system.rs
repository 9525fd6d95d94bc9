//! The parts of the host's system a command needs to run: programs, libraries, a short list from `/etc`, devices.

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
pub(super) const SETTINGS: [&str; 15] = [
    "alternatives",
    "debian_version",
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

/// Files up to so many bytes are copied.
const COPIED_BYTES_MAX: u64 = 128 * 1024;

/// Mounts of the system, in their order.
pub(super) fn mounts(network: Network) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = PROGRAMS
        .iter()
        .filter_map(|path| as_on_host(path))
        .collect();
    mounts.push(Mount::Directory("/etc".into()));
    for name in SETTINGS {
        mounts.extend(as_on_host(&format!("/etc/{name}")).map(copied_if_small));
    }
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
fn as_on_host(path: &str) -> Option<Mount> {
    let path = PathBuf::from(path);
    let kind = path.symlink_metadata().ok()?.file_type();
    match kind.is_symlink() {
        true => link(&path),
        false => Some(Mount::Read(path)),
    }
}

fn copied_if_small(mount: Mount) -> Mount {
    let Mount::Read(path) = mount else {
        return mount;
    };
    let about = path.symlink_metadata();
    if !about.is_ok_and(|about| about.is_file() && about.len() <= COPIED_BYTES_MAX) {
        return Mount::Read(path);
    }
    match std::fs::read(&path) {
        Ok(bytes) => Mount::File { path, bytes },
        Err(_) => Mount::Read(path),
    }
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
