//! What a jail is made from: plain values of the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_core::git_config::GitUser;
use zeph_core::policy::PrivatePaths;
use zeph_core::user::ToolUser;

use super::mount::within_any;

/// What commands may see, change, reach and use up.
#[derive(Debug, Clone)]
pub struct JailPolicy {
    /// Directories commands work in. Absolute and existing; symbolic links in them are resolved by the jail.
    pub roots: Vec<PathBuf>,
    /// Other names of directories, with symbolic links in them, and where they lead: commands may use these names too.
    pub spellings: Vec<(PathBuf, PathBuf)>,
    /// The files and directories commands may read, besides those they may change; `None` means the roots.
    pub allow_read: Option<Vec<PathBuf>>,
    /// The files and directories commands may change, and no others; `None` means the roots.
    pub allow_write: Option<Vec<PathBuf>>,
    /// Directories of the host itself that are given although they lie in what is hidden, each at its own path.
    pub own: OwnDirectories,
    /// Whether commands reach the network.
    pub network: Network,
    /// Paths commands cannot see wherever they lie: the host's own database, configuration, keys; `tools.sandbox.hide`.
    pub hidden: Vec<PathBuf>,
    /// Paths commands can read and not change wherever they lie; `tools.sandbox.protect`.
    pub protected: Vec<PathBuf>,
    /// What one run may use up.
    pub limits: JailLimits,
    /// The variables commands see.
    pub environment: EnvironmentPolicy,
    /// The user's home directory. Commands get an empty one of their own at the same place, with the toolchains of this one.
    pub home: Option<PathBuf>,
    /// The user whose configuration of git counts.
    pub git_user: GitUser,
    /// A directory of the host that may keep caches of package managers between runs; made when missing. Without it the caches
    /// live as long as the run.
    pub cache: Option<PathBuf>,
    /// A directory in which the host keeps what it found out about this machine, such as whether it can make namespaces, and that a command
    /// runs; made when missing. Without it the first jail of every process tries, and nobody is told what a killed host left.
    pub records: Option<PathBuf>,
    /// Whether there is a jail at all.
    pub mode: Mode,
    /// Files whose content is private: a run says which of them was opened while it ran.
    pub private: Arc<PrivatePaths>,
    /// The user that commands run as; `None` is the host's own. Its files are found, and looked at, with its rights alone.
    pub user: Option<ToolUser>,
}

/// Directories of the host itself that its programs of one kind get, such as what was installed for them. Absolute, existing and private
/// to the host; nothing in them is looked at after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnDirectories {
    /// To be read.
    pub read: Vec<PathBuf>,
    /// To be read and changed.
    pub write: Vec<PathBuf>,
}

impl OwnDirectories {
    /// Whether `path`, spelled without links, lies in one of them.
    pub(super) fn holds(&self, path: &Path) -> bool {
        within_any(path, self.read.iter().chain(&self.write))
    }
}

/// Whether commands are jailed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Yes, or they do not run.
    Enforced,
    /// No, because the operator set `tools.sandbox.disabled`.
    Disabled,
}

/// What of the network commands reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A loopback of their own and nothing else.
    Loopback,
    /// The loopback, and some hosts by a way out that the host serves (`Outlets`).
    Hosts,
    /// Everything the host reaches.
    Open,
}

/// What one run may use up. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JailLimits {
    /// Processes and threads at one time.
    pub processes: u64,
    /// Bytes of memory, with what lies in /tmp and /dev/shm. Holds where a cgroup can be made.
    pub memory_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of the private /tmp, and again of the private home.
    pub tmp_bytes: u64,
    /// Bytes of the private /dev/shm.
    pub shm_bytes: u64,
}

impl JailLimits {
    /// No limit at all.
    pub const NONE: Self = Self {
        processes: 0,
        memory_bytes: 0,
        file_bytes: 0,
        open_files: 0,
        tmp_bytes: 0,
        shm_bytes: 0,
    };
}

/// Which variables of the host commands see.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentPolicy {
    /// The host's environment, read by its configuration. Names and values that are no UTF-8 are omitted there.
    pub host: BTreeMap<String, String>,
    /// Prefixes of names that are dropped; `tools.shell.env_blocklist`.
    pub blocked: Vec<String>,
    /// Variables that name a folder in the private cache, with the folder: where tools put what they make besides their output.
    pub caches: Vec<(String, String)>,
    /// Names that pass although the rules would drop them; `tools.shell.env_allow`. Injectors never pass.
    pub allowed: Vec<String>,
}
