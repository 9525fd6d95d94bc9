//! What the configuration depends on outside its own text: variables, directories, the command line.
//!
//! A value, so that loading is a function of its arguments and tests need no process of their own.
//! [`Surroundings::of_process`] is the one place of the program that reads the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::locate::PROGRAM;
use super::origin::{ConfigErrors, Problem, ValueOrigin};
use super::paths::{PathBase, without_parents};

/// The environment of a run.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The `ZEPH_…` variables; no others, so that no secret of the environment travels with this value.
    pub env: BTreeMap<String, OsString>,
    /// Absolute.
    pub working_directory: PathBuf,
    /// The same as the shell spells it (`$PWD`), when that is another path to it.
    pub typed_directory: Option<PathBuf>,
    /// The user's home, when there is one. Absolute, and like the other homes without `..`.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config_home: Option<PathBuf>,
    /// `$XDG_DATA_HOME`, else `~/.local/share`.
    pub data_home: Option<PathBuf>,
    /// `$XDG_STATE_HOME`, else `~/.local/state`.
    pub state_home: Option<PathBuf>,
    /// `$XDG_CACHE_HOME`, else `~/.cache`.
    pub cache_home: Option<PathBuf>,
    /// Processors this process may use.
    pub cores: NonZeroUsize,
}

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--config FILE`: takes the place of the user's file.
    pub config: Option<PathBuf>,
    /// `--set key=value`, in the order typed.
    pub set: Vec<String>,
    /// `--root DIR`, in the order typed: takes the place of `tools.file.allowed_paths` and of
    /// `tools.shell.allowed_paths`, which `set` can still name.
    pub roots: Vec<PathBuf>,
    /// `--plugins DIR`, in the order typed: beside those of `plugins.folders`.
    pub plugins: Vec<PathBuf>,
    /// `--no-project`: do not look for `.zeph/config.toml`.
    pub no_project: bool,
}

impl Surroundings {
    /// The surroundings of this process.
    ///
    /// Errors: one problem when the working directory is gone or may not be read.
    pub fn of_process() -> Result<Self, ConfigErrors> {
        let working_directory = std::env::current_dir().map_err(|error| ConfigErrors {
            problems: vec![Problem::new(
                ValueOrigin::Environment {
                    variable: "working directory".to_owned(),
                },
                format!("cannot be found: {error}"),
            )],
        })?;
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.map(without_parents);
        let base = |variable: &str, below_home: &str| {
            base_directory(home.as_deref(), variable, below_home)
        };
        Ok(Self {
            env: zeph_variables(),
            typed_directory: typed(&working_directory),
            working_directory,
            config_home: base("XDG_CONFIG_HOME", ".config"),
            data_home: base("XDG_DATA_HOME", ".local/share"),
            state_home: base("XDG_STATE_HOME", ".local/state"),
            cache_home: base("XDG_CACHE_HOME", ".cache"),
            cores: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            home,
        })
    }
}

/// The name that the shell has for `directory`, where it is another one and still leads there.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one module that reads the environment"
)]
fn typed(directory: &Path) -> Option<PathBuf> {
    let typed = std::env::var_os("PWD").map(PathBuf::from)?;
    let is_same = typed.is_absolute() && typed.canonicalize().ok()? == directory;
    (is_same && typed != directory).then_some(typed)
}

impl Surroundings {
    /// The folder of what this program keeps for the user; it need not exist yet.
    pub fn data_folder(&self) -> Option<PathBuf> {
        self.data_home.as_ref().map(|home| home.join(PROGRAM))
    }

    /// What relative paths of the user's file, of variables and of flags stand for.
    pub fn base(&self) -> PathBase<'_> {
        PathBase {
            directory: &self.working_directory,
            home: self.home.as_deref(),
        }
    }
}

/// The value of any variable of the environment: for a plugin that was granted this one.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one module that reads the environment"
)]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where the message bus of the user's session listens, for the keyring of the desktop; empty where none is known.
pub fn session_bus() -> String {
    let named = variable("DBUS_SESSION_BUS_ADDRESS").filter(|address| !address.is_empty());
    let usual = || {
        let folder = PathBuf::from(variable("XDG_RUNTIME_DIR")?);
        let bus = folder.join("bus");
        bus.exists().then(|| format!("unix:path={}", bus.display()))
    };
    named.or_else(usual).unwrap_or_default()
}

/// The whole environment, for the jail, which passes on what commands may see. What is not Unicode is omitted.
pub fn process_environment() -> BTreeMap<String, String> {
    let unicode = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(unicode).collect()
}

/// The `ZEPH_…` variables. A value that is not Unicode is reported as a wrong one, not skipped.
fn zeph_variables() -> BTreeMap<String, OsString> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with("ZEPH_"))
        .collect()
}

/// An XDG base directory. A relative value is ignored, as the XDG Base Directory Specification says.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one module that reads the environment"
)]
fn base_directory(home: Option<&Path>, variable: &str, below_home: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .map(without_parents)
        .or_else(|| home.map(|home| home.join(below_home)))
}
