//! Configuration through its border: files, variables and flags in, a [`Config`] or messages out.

mod defaults;
mod environment;
mod filters;
mod grants;
mod hostile;
mod layers;
mod made;
mod plugins;
mod presets;
mod project;
mod rules;
mod samples;
mod servers;
mod shaping;
mod shell;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Config, ConfigErrors, Flags, LoadedConfig, Surroundings};

/// A machine of its own: a home, a repository in it that is the working directory, and nothing of this process.
struct World {
    folder: TempDir,
    surroundings: Surroundings,
    flags: Flags,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let home = root.join("home");
        fs::create_dir_all(home.join("repo/.git")).unwrap();
        fs::create_dir_all(home.join("repo/src")).unwrap();
        let surroundings = Surroundings {
            env: BTreeMap::new(),
            working_directory: home.join("repo"),
            typed_directory: None,
            config_home: Some(home.join(".config")),
            data_home: Some(home.join(".local/share")),
            state_home: Some(home.join(".local/state")),
            cache_home: Some(home.join(".cache")),
            cores: NonZeroUsize::new(4).unwrap(),
            home: Some(home),
        };
        Self {
            folder,
            surroundings,
            flags: Flags::default(),
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    fn repo(&self) -> PathBuf {
        self.home().join("repo")
    }

    fn user_file(&self) -> PathBuf {
        self.home().join(".config/zeph-host/config.toml")
    }

    fn project_file(&self) -> PathBuf {
        self.repo().join(".zeph/config.toml")
    }

    fn user(self, text: impl AsRef<[u8]>) -> Self {
        write(&self.user_file(), text.as_ref());
        self
    }

    fn project(self, text: impl AsRef<[u8]>) -> Self {
        write(&self.project_file(), text.as_ref());
        self
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.surroundings.env.insert(name.to_owned(), value.into());
        self
    }

    fn set(mut self, text: &str) -> Self {
        self.flags.set.push(text.to_owned());
        self
    }

    fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.root().join(path)).unwrap();
        self
    }

    fn working_in(mut self, path: &str) -> Self {
        self.surroundings.working_directory = self.root().join(path);
        self
    }

    fn symlink(self, at: &str, to: &str) -> Self {
        std::os::unix::fs::symlink(self.root().join(to), self.root().join(at)).unwrap();
        self
    }

    fn load(&self) -> Result<LoadedConfig, ConfigErrors> {
        Config::load(&self.surroundings, &self.flags)
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.load()
            .unwrap_or_else(|errors| panic!("{errors}"))
            .config
    }

    /// The messages, with the places of this world replaced by fixed names.
    #[track_caller]
    fn errors(&self) -> String {
        let errors = self
            .load()
            .expect_err("this configuration has to be refused");
        assert!(!errors.problems.is_empty());
        self.portable(&errors.to_string())
    }

    fn portable(&self, text: &str) -> String {
        text.replace(&self.user_file().display().to_string(), "USER")
            .replace(&self.project_file().display().to_string(), "PROJECT")
            .replace(&self.root().display().to_string(), "")
    }

    /// Where the effective value of `key` was said.
    #[track_caller]
    fn said(&self, key: &str) -> String {
        let loaded = self.load().unwrap_or_else(|errors| panic!("{errors}"));
        let setting = loaded
            .origins
            .iter()
            .find(|setting| setting.key == key)
            .unwrap();
        let places: Vec<String> = setting.origins.iter().map(ToString::to_string).collect();
        format!("{} ({})", setting.value, self.portable(&places.join(", ")))
    }
}

fn write(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
