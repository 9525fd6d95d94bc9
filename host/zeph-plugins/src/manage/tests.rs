//! What the tests of this folder share: a machine with directories, a configuration, and grants.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use zeph_config::{Config, Flags, PathBase, Surroundings};
use zeph_core::capability::Capability;
use zeph_core::id::{Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::manifest::Manifest;
use zeph_store::GrantRecord;

/// A manifest that wants one thing of each kind.
pub(super) const WANTS: &str = r#"
[[directory]]
path = "~/notes"
rights = ["read", "write"]
reason = "r"

[[host]]
name = "api.example.com"
reason = "r"

[[program]]
name = "cargo"
reason = "r"

[[variable]]
name = "LANG"
reason = "r"

[[limit]]
name = "memory_bytes"
value = 1073741824
reason = "r"
"#;

/// `home/notes/deep` and `home/work`, where the host is started; `work` is granted to tools.
pub(super) struct World {
    _dir: tempfile::TempDir,
    pub(super) home: PathBuf,
    surroundings: Surroundings,
    pub(super) config: Config,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        fs::create_dir_all(home.join("notes/deep")).unwrap();
        fs::create_dir_all(home.join("work/src")).unwrap();
        let surroundings = Surroundings {
            env: BTreeMap::new(),
            working_directory: home.join("work"),
            typed_directory: None,
            config_home: None,
            data_home: Some(home.join("data")),
            state_home: None,
            cache_home: None,
            cores: NonZeroUsize::MIN,
            home: Some(home.clone()),
        };
        let config = Config::load(&surroundings, &Flags::default())
            .unwrap()
            .config;
        Self {
            _dir: dir,
            home,
            surroundings,
            config,
        }
    }

    pub(super) fn base(&self) -> PathBase<'_> {
        self.surroundings.base()
    }

    /// `text` with `HOME` for the home directory.
    pub(super) fn here(&self, text: &str) -> String {
        text.replace("HOME", &self.home.to_string_lossy())
    }

    /// `directory HOME/notes:read` and the like, as [`Capability`] displays it.
    pub(super) fn capability(&self, text: &str) -> Capability {
        let text = self.here(text);
        let (kind, rest) = text.split_once(' ').unwrap();
        let name = rest.to_owned();
        match kind {
            "directory" => {
                let (path, rights) = rest.rsplit_once(':').unwrap();
                Capability::Directory {
                    path: path.to_owned(),
                    rights: rights.parse().unwrap(),
                }
            }
            "host" => Capability::Host(name.parse().unwrap()),
            "program" => Capability::Program { name },
            "variable" => Capability::Variable { name },
            "embedder" => Capability::Embedder { name },
            "tool" => Capability::Tool { name },
            _ => {
                let (name, value) = rest.split_once('=').unwrap();
                Capability::Limit {
                    name: name.parse().unwrap(),
                    value: value.parse().unwrap(),
                }
            }
        }
    }

    /// A grant of [`pin`] with the number `id`.
    pub(super) fn grant(&self, id: i64, text: &str) -> GrantRecord {
        GrantRecord {
            id,
            plugin: plugin(),
            pin: pin("one"),
            capability: self.capability(text),
            lifetime: GrantLifetime::Always,
            granted_at_ms: 0,
            mode: None,
        }
    }
}

pub(super) fn plugin() -> PluginId {
    PluginId("x".to_owned())
}

pub(super) fn manifest(text: &str) -> Manifest {
    Manifest::parse(text).unwrap()
}

/// The pin of a version.
pub(super) fn pin(version: &str) -> Pin {
    let digest = zeph_engine::digest(version.as_bytes());
    Pin {
        wasm: digest,
        tools: digest,
    }
}
