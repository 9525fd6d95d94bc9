//! `[tools.shell]` and `[tools.sandbox]`: durations, directories, and the paths a jail is built from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use zeph_core::failure::one_line;
use zeph_core::path::normal;

use super::super::environment::COMMAND_DIRECTORIES;
use super::super::origin::path_text;
use super::super::own::OwnFiles;
use super::super::places::{self, RootPlace};
use super::super::raw::{RawSandbox, RawShell};
use super::super::{SandboxLimits, SandboxSettings, ShellSettings, TransactionSettings};
use super::{Compiling, or_unlimited, size};

const TIMEOUT: &str = "tools.shell.timeout";
const TIMEOUT_MAX: &str = "tools.shell.timeout_max";

/// Where programs put temporary files.
const TMP: &str = "/tmp";

impl Compiling<'_> {
    /// How commands run. A directory that they share with the file tools has the names of `file_paths` for them, too.
    pub(super) fn shell(&mut self, raw: &RawShell, file_paths: &[String]) -> ShellSettings {
        if raw.timeout > raw.timeout_max {
            let (usual, longest) = ((TIMEOUT, raw.timeout), (TIMEOUT_MAX, raw.timeout_max));
            let ((key, found), bound, (other, value)) =
                match self.merged.is_later(longest.0, usual.0) {
                    true => (longest, "least", usual),
                    false => (usual, "most", longest),
                };
            let said = self.merged.said(other);
            let message =
                format!("found {found}, wanted at {bound} `{other}`, which is {value} ({said})");
            self.merged.problem(key, &message);
        }
        self.scope_globs(&raw.transaction_scope);
        self.names("tools.shell.env_blocklist", &raw.env_blocklist);
        self.names("tools.shell.env_allow", &raw.env_allow);
        let allowed_paths = self.directories(COMMAND_DIRECTORIES, &raw.allowed_paths);
        let named = [raw.allowed_paths.as_slice(), file_paths].concat();
        ShellSettings {
            timeout: Duration::from_secs(raw.timeout.into()),
            timeout_max: Duration::from_secs(raw.timeout_max.into()),
            spellings: self.spellings(&named, &allowed_paths),
            allowed_paths,
            background_runs_max: size(raw.max_background_runs),
            background_timeout: Duration::from_secs(raw.background_timeout_secs.into()),
            execution_context: raw.enable_execution_context,
            transaction: TransactionSettings {
                enabled: raw.transactional,
                scope: raw.transaction_scope.clone(),
                auto_rollback: raw.auto_rollback,
                rollback_exit_codes: raw.auto_rollback_exit_codes.clone(),
                snapshot_required: raw.snapshot_required,
                snapshot_bytes_max: or_unlimited(raw.max_snapshot_bytes),
                undo_max: size(raw.max_undo),
            },
            env_blocklist: raw.env_blocklist.clone(),
            env_allow: raw.env_allow.clone(),
        }
    }

    /// The jail; `allowed` are the directories commands may run in.
    pub(super) fn sandbox(
        &mut self,
        raw: &RawSandbox,
        allowed: &[PathBuf],
        own: &OwnFiles,
        protected: &[PathBuf],
    ) -> SandboxSettings {
        let mut hide = self.absolute("tools.sandbox.hide", &raw.hide);
        hide.extend(own.paths());
        let mut protect = self.absolute("tools.sandbox.protect", &raw.protect);
        protect.extend_from_slice(protected);
        let read = self.places("tools.sandbox.allow_read", &raw.allow_read, allowed);
        let write = self.places("tools.sandbox.allow_write", &raw.allow_write, allowed);
        self.warn_of_tmp(&read, &write);
        if raw.allow_write.is_empty() {
            self.warn_of_idle_reads(&read, &write);
        }
        SandboxSettings {
            disabled: raw.disabled,
            read,
            write,
            network: raw.allow_network,
            hosts: self.exit_hosts(raw),
            hide: each_once(hide),
            protect: each_once(protect),
            limits: SandboxLimits {
                processes: raw.max_processes,
                memory_bytes: raw.max_memory_bytes,
                file_bytes: raw.max_file_bytes,
                open_files: raw.max_open_files,
                tmp_bytes: raw.tmp_bytes,
                shm_bytes: raw.shm_bytes,
            },
        }
    }

    /// A list of what may be read narrows nothing while all that it lies in may be changed.
    fn warn_of_idle_reads(&mut self, read: &[PathBuf], write: &[PathBuf]) {
        let lies_in_one = |path: &PathBuf| {
            let mut roots = write.iter();
            roots.any(|root| path != root && path.starts_with(root))
        };
        if !read.is_empty() && read.iter().all(lies_in_one) {
            let said = self.merged.said("tools.sandbox.allow_read");
            self.merged.warnings.push(format!(
                "`tools.sandbox.allow_read` ({said}) has no effect, because commands may change, and so read, all that it lies in: set `tools.sandbox.allow_write`, too"
            ));
        }
    }

    /// What is read in place of the private `/tmp` takes away what programs expect to write to.
    fn warn_of_tmp(&mut self, read: &[PathBuf], write: &[PathBuf]) {
        let tmp = std::fs::canonicalize(TMP).unwrap_or_else(|_| TMP.into());
        let holds_tmp = |places: &[PathBuf]| places.iter().any(|place| tmp.starts_with(place));
        if holds_tmp(read) && !holds_tmp(write) {
            self.merged.warnings.push(format!(
                "`tools.sandbox.allow_read` gives commands the `{TMP}` of the machine, to read: their temporary files go to `$TMPDIR`, a private directory elsewhere. Without that they have a `{TMP}` of their own"
            ));
        }
    }

    /// The existing paths of a list that is a bound of the jail; `fallback` when it is empty.
    ///
    /// What does not exist is omitted with a warning: it can be made later, by a build, and a start must not depend on it.
    pub(super) fn places(
        &mut self,
        key: &str,
        texts: &[String],
        fallback: &[PathBuf],
    ) -> Vec<PathBuf> {
        if texts.is_empty() {
            return fallback.to_vec();
        }
        let of_project = self.said_by_project(key);
        let mut paths = Vec::new();
        for text in texts {
            // A project's paths were resolved when they were compared with the granted ones.
            let place = match of_project {
                true => places::literal(Path::new(text)),
                false => self.base().places(text),
            };
            let place = place.map(|place| self.within(key, text, place, fallback));
            match place {
                Ok(RootPlace::Existing(found)) if of_project && !is_only(&found, text) => {
                    let message = "a path changed while the configuration was read";
                    self.merged.problem(key, message);
                }
                Ok(RootPlace::Existing(found)) => paths.extend(found),
                Ok(RootPlace::Missing) => {
                    let shown = one_line(text, 200);
                    self.merged
                        .warnings
                        .push(format!("`{key}`: `{shown}` does not exist and is skipped"));
                }
                Err(message) => self.merged.problem(key, &message),
            }
        }
        each_once(paths)
    }

    /// What of `place` is meant for sure. A command can make a symbolic link where it works, and a later session would follow it: what is
    /// named there and leads out of there is omitted with a warning.
    fn within(
        &mut self,
        key: &str,
        text: &str,
        place: RootPlace,
        allowed: &[PathBuf],
    ) -> RootPlace {
        let RootPlace::Existing(found) = place else {
            return place;
        };
        let named = self.base().absolute(text).map(|path| normal(&path));
        let in_allowed = |path: &Path| allowed.iter().any(|root| path.starts_with(root));
        let (kept, left_out): (Vec<PathBuf>, Vec<PathBuf>) = found.into_iter().partition(|path| {
            let is_inner = named.as_deref().is_ok_and(in_allowed);
            let is_led_out = |named: &PathBuf| self.is_led_out(named, path);
            (in_allowed(path) || !is_inner) && !named.as_ref().is_ok_and(is_led_out)
        });
        for path in left_out {
            self.merged.warnings.push(format!(
                "`{key}`: `{}` leads through a symbolic link to {}, out of the directories of commands, and is omitted; name the real path if it is meant",
                one_line(text, 200),
                path_text(&path)
            ));
        }
        RootPlace::Existing(kept)
    }

    /// Other names of `places`: as the list spells them, and the working directory as the terminal does.
    pub(super) fn spellings(
        &self,
        texts: &[String],
        places: &[PathBuf],
    ) -> Vec<(PathBuf, PathBuf)> {
        let typed = self.surroundings.typed_directory.clone();
        let typed = typed.map(|typed| (typed, self.surroundings.working_directory.clone()));
        let named = texts.iter().filter_map(|text| {
            let named = self.base().absolute(text).ok()?;
            let place = std::fs::canonicalize(&named).ok()?;
            Some((normal(&named), place))
        });
        let differ = typed.into_iter().chain(named);
        let differ = differ.filter(|(name, path)| {
            name != path && places.iter().any(|root| path.starts_with(root))
        });
        each_once(differ.collect())
    }

    /// Paths that need not exist, as written and as they resolve now.
    fn absolute(&mut self, key: &str, texts: &[String]) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for text in texts {
            match self.base().named(text) {
                Ok(some) => paths.extend(some),
                Err(message) => self.merged.problem(key, &message),
            }
        }
        paths
    }

    fn scope_globs(&mut self, texts: &[String]) {
        const KEY: &str = "tools.shell.transaction_scope";
        for text in texts {
            if let Err(error) = Glob::new(text) {
                let message = format!(
                    "`{}` is not a pattern: {}",
                    one_line(text, 200),
                    error.kind()
                );
                self.merged.problem(KEY, &message);
            } else if text.starts_with(['/', '~']) {
                let message = format!(
                    "`{}` is not relative; patterns are matched against paths below the working directory",
                    one_line(text, 200)
                );
                self.merged.problem(KEY, &message);
            } else if leaves_names(text) {
                let message = format!(
                    "`{}` contains `.` or `..`; patterns are matched against paths below the working directory, which have neither",
                    one_line(text, 200)
                );
                self.merged.problem(KEY, &message);
            }
        }
    }

    /// Names of variables, or their beginnings.
    fn names(&mut self, key: &str, texts: &[String]) {
        for text in texts {
            let is_name = text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !text.starts_with(|first: char| first.is_ascii_digit());
            if text.is_empty() || !is_name {
                let message = format!("`{}` is not a valid variable name", one_line(text, 200));
                self.merged.problem(key, &message);
            }
        }
    }
}

/// Whether a relative pattern has a part that no path below its directory has; `./` at its beginning is dissolved.
fn leaves_names(pattern: &str) -> bool {
    let below = pattern.trim_start_matches("./");
    let mut parts = below.split('/');
    parts.any(|part| part == ".." || part == "." && below != ".")
}

fn is_only(found: &[PathBuf], text: &str) -> bool {
    matches!(found, [path] if path == Path::new(text))
}

fn each_once<T: Clone + Ord>(mut paths: Vec<T>) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}
