//! A tool that was configured by its path, and lies apart from the system: what belongs to it has to be seen in the sandbox.

use std::path::{Path, PathBuf};

use zeph_config::Config;

/// Where the system's tools lie, which every program sees.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/nix/store"];

/// A tool apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolApart {
    /// Where its programs lie.
    pub(super) programs: PathBuf,
    /// All that belongs to it.
    pub(super) prefix: PathBuf,
}

impl ToolApart {
    /// The tool whose programs lie in `directory`; none of the system's, and none that would show the home directory.
    pub(super) fn of(directory: &Path, config: &Config) -> Option<Self> {
        let programs = directory.canonicalize().ok()?;
        let prefix = match programs.ends_with("bin") {
            true => programs.parent()?.to_owned(),
            false => programs.clone(),
        };
        let is_system = SYSTEM.iter().any(|system| prefix.starts_with(system));
        let home = config.plugins.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let is_above_home = home.is_some_and(|home| home.starts_with(&prefix));
        let is_wide = prefix.components().count() <= 2 || is_above_home;
        (!is_system && !is_wide).then_some(Self { programs, prefix })
    }

    /// The search path with its programs first.
    pub(super) fn search_path(&self) -> String {
        let usual = zeph_config::process_environment().remove("PATH");
        let own = self.programs.to_string_lossy();
        format!("{own}:{}", usual.unwrap_or_default())
    }
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
        for name in ["node/bin", "tools", "home/bin", "home/.tools/bin"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (directory, prefix) in [
            ("node/bin", Some("node")),
            ("tools", Some("tools")),
            ("home/.tools/bin", Some("home/.tools")),
            ("home/bin", None),
            ("gone/bin", None),
        ] {
            let found = ToolApart::of(&root.join(directory), &config);
            let found = found.map(|tool| tool.prefix);
            assert_eq!(found, prefix.map(|prefix| root.join(prefix)), "{directory}");
        }
        assert_eq!(ToolApart::of("/usr/bin".as_ref(), &config), None);
    }
}
