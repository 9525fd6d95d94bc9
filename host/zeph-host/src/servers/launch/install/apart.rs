//! A tool that was configured by its path, and lies apart from the system: what belongs to it has to be seen in the sandbox.

use std::path::{Path, PathBuf};

use zeph_config::Config;

/// Where the system's tools lie, which every program sees.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/nix/store"];

/// Programs that install, and what runs them: each may be a link to somewhere else.
const PROGRAMS: [&str; 10] = [
    "bun", "bunx", "node", "npm", "npx", "pipx", "python", "python3", "uv", "uvx",
];

/// A prefix below the home directory that holds more than programs, key rings among it.
const SHARED_PREFIX: &str = ".local";

/// A tool apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolApart {
    /// Where its programs lie.
    pub(super) programs: PathBuf,
    /// All that belongs to it.
    pub(super) prefix: PathBuf,
    /// Where its programs really lie, if they are links out of that.
    pub(super) linked: Vec<PathBuf>,
}

impl ToolApart {
    /// The tool whose programs lie in `directory`; none of the system's, and none that would show the home directory.
    pub(super) fn of(directory: &Path, config: &Config) -> Option<Self> {
        let programs = directory.canonicalize().ok()?;
        let home = config.plugins.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let prefix = prefix(&programs, home.as_deref())?;
        let targets = PROGRAMS.iter().filter_map(|name| {
            let target = programs.join(name).canonicalize().ok()?;
            self::prefix(target.parent()?, home.as_deref())
        });
        let mut linked: Vec<PathBuf> = targets
            .filter(|target| !target.starts_with(&prefix))
            .collect();
        linked.sort();
        linked.dedup();
        Some(Self {
            programs,
            prefix,
            linked,
        })
    }

    /// All that has to be seen of it.
    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(&self.prefix).chain(&self.linked).cloned()
    }

    /// The search path with its programs first.
    pub(super) fn search_path(&self) -> String {
        let usual = zeph_config::process_environment().remove("PATH");
        let own = self.programs.to_string_lossy();
        format!("{own}:{}", usual.unwrap_or_default())
    }
}

/// What belongs to programs in this directory; nothing of the system's, and nothing that would show the home directory.
fn prefix(programs: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let above = programs.parent().filter(|_| programs.ends_with("bin"));
    let is_shared = |above: &&Path| home.is_some_and(|home| **above == home.join(SHARED_PREFIX));
    let prefix = above.filter(|above| !is_shared(above)).unwrap_or(programs);
    let is_system = SYSTEM.iter().any(|system| prefix.starts_with(system));
    let is_above_home = home.is_some_and(|home| home.starts_with(prefix));
    let is_wide = prefix.components().count() <= 2 || is_above_home;
    (!is_system && !is_wide).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::ToolApart;
    use crate::traceless;
    use zeph_config::Flags;

    #[test]
    fn what_belongs_to_a_tool_is_its_prefix_and_never_the_home() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = place.path().canonicalize().unwrap();
        let mut config = traceless::config(root.clone(), Flags::default());
        config.plugins.home = Some(root.join("home"));
        for name in [
            "node/bin",
            "tools",
            "home/bin",
            "home/.tools/bin",
            "home/.local/bin",
            "bun/bin",
        ] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (directory, prefix) in [
            ("node/bin", Some("node")),
            ("tools", Some("tools")),
            ("home/.tools/bin", Some("home/.tools")),
            ("home/.local/bin", Some("home/.local/bin")),
            ("home/bin", None),
            ("gone/bin", None),
        ] {
            let found = ToolApart::of(&root.join(directory), &config);
            let found = found.map(|tool| tool.prefix);
            assert_eq!(found, prefix.map(|prefix| root.join(prefix)), "{directory}");
        }
        assert_eq!(ToolApart::of("/usr/bin".as_ref(), &config), None);
        std::fs::write(root.join("bun/bin/bun.exe"), "").unwrap();
        std::os::unix::fs::symlink("../bun/bin/bun.exe", root.join("tools/bun")).unwrap();
        let linked = ToolApart::of(&root.join("tools"), &config).unwrap();
        let seen: Vec<_> = linked.directories().collect();
        assert_eq!(seen, [root.join("tools"), root.join("bun")]);
    }
}
