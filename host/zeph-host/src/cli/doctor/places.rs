//! The files and folders of the host, the jail's layers, and the programs beside it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use zeph_config::{Config, StoreLocation, StoreServer};
use zeph_core::failure::chain;
use zeph_core::text::counted;
use zeph_shell::doctor::{self, Layer};
use zeph_shell::jail::Jail;
use zeph_store::{AuditFile, Location, Store, StoreError};

use super::disk::{self, is_full};
use super::{CheckState, DoctorCheck};
use crate::cli::context::{self, Context};
use crate::host;

/// Characters of the longest reason: a path and what the system says of it fit.
const REASON_CHARS_MAX: usize = 1000;

/// Editors that can have agents beside them, by the name of their program.
const EDITORS: [&str; 7] = ["zed", "zeditor", "nvim", "emacs", "code", "idea", "helix"];

/// The database: opened when it is there, since only that tells whether it is whole.
pub(super) fn store(context: &Context, config: &Config) -> Vec<DoctorCheck> {
    const GROUP: &str = "store";
    let path = match &config.store {
        StoreLocation::File(path) => path,
        StoreLocation::Memory => {
            let detail = "in memory: conversations, approvals and the record end with the process";
            return vec![
                DoctorCheck::new(GROUP, "database", CheckState::Degraded, detail)
                    .how_to_get("set `store.path` to a file"),
            ];
        }
        StoreLocation::Server(server) => return vec![server_of(context, config, server)],
    };
    if !path.exists() && !path.is_symlink() {
        return vec![writable(GROUP, "database", path, "store.path").required()];
    }
    let opened = host::open_store(config).and_then(|opened| {
        // A start looks at a few pages only.
        host::check_store(config)?;
        Ok(opened)
    });
    match opened {
        Ok(opened) => {
            context.notes(&opened.notices);
            vec![writable(GROUP, "database", path, "store.path").required()]
        }
        Err(error) => {
            let disk = writable(GROUP, "database", path, "store.path");
            let broken = DoctorCheck::new(
                GROUP,
                "database",
                CheckState::Missing,
                chain(&error, REASON_CHARS_MAX),
            )
            .how_to_get(hint(
                &error,
                "set `store.path` to a file in a folder you may write",
            ));
            // A full disk is a reason that helps; what the database says of it is not.
            let worse = match disk.state {
                CheckState::Missing => disk,
                CheckState::Ok | CheckState::Degraded => broken,
            };
            vec![worse.required()]
        }
    }
}

/// What to do about a store that does not open.
fn hint(error: &host::StartError, otherwise: &'static str) -> &'static str {
    match error {
        host::StartError::Store(error) => error.hint().unwrap_or(otherwise),
        _ => otherwise,
    }
}

fn takes_changes(store: &Store) -> Result<(), StoreError> {
    // Without a runtime nothing can be asked, and no other command works.
    let checked = context::block_on(async { Ok(store.check_changes().await) });
    checked.unwrap_or(Ok(()))
}

/// The server of the database: whether it answers, and takes changes.
fn server_of(context: &Context, config: &Config, server: &StoreServer) -> DoctorCheck {
    let name = "database";
    let check = match host::open_store(config) {
        Ok(opened) => {
            context.notes(&opened.notices);
            match takes_changes(&opened.store) {
                Ok(()) => {
                    let detail = format!("{}: it answers", server.url);
                    DoctorCheck::new("store", name, CheckState::Ok, detail)
                }
                Err(error) => {
                    let reason = chain(&error, REASON_CHARS_MAX);
                    let otherwise = "grant the user in `store.url` the right to change the tables";
                    DoctorCheck::new("store", name, CheckState::Missing, reason)
                        .how_to_get(error.hint().unwrap_or(otherwise))
                }
            }
        }
        Err(error) => {
            let reason = chain(&error, REASON_CHARS_MAX);
            DoctorCheck::new("store", name, CheckState::Missing, reason).how_to_get(hint(
                &error,
                "see whether the server runs and `store.url` is right",
            ))
        }
    };
    check.required()
}

/// The compiled components: without a place for them every start compiles.
pub(super) fn cache(config: &Config) -> DoctorCheck {
    match &config.engine.cache_dir {
        Some(path) => {
            let check = writable("store", "compiled components", path, "engine.cache_dir");
            if path.exists() && !path.is_dir() {
                let detail = format!(
                    "{} is not a directory: every start compiles",
                    path.display()
                );
                return DoctorCheck {
                    state: CheckState::Degraded,
                    detail,
                    ..check
                }
                .how_to_get("set `engine.cache_dir` to a directory");
            }
            match check.state {
                CheckState::Missing => DoctorCheck {
                    state: CheckState::Degraded,
                    ..check
                },
                _ => check,
            }
        }
        None => DoctorCheck::new(
            "store",
            "compiled components",
            CheckState::Degraded,
            "not kept: every start compiles",
        )
        .how_to_get("set `engine.cache_dir` to a folder of your own"),
    }
}

/// The certificates that are trusted besides those of the machine; none where none are configured.
pub(super) fn trust(config: &Config) -> Option<DoctorCheck> {
    let path = config.egress.ca_file.as_ref()?;
    let check = |state, detail| DoctorCheck::new("network", "trust", state, detail);
    let shown = path.display();
    Some(match zeph_egress::check_ca_file(path) {
        Ok(()) => check(CheckState::Ok, shown.to_string()),
        Err(reason) => {
            let detail = format!(
                "`tools.egress.ca_file` cannot be used, and without it no HTTPS connection is made: {shown}: {reason}"
            );
            check(CheckState::Missing, detail)
                .how_to_get("name a file of certificates in PEM, or remove the setting")
        }
    })
}

/// What a host does without: places and files that cannot be used, although they are configured.
pub(in crate::cli) fn unusable(config: &Config) -> Vec<String> {
    let cache = config.engine.cache_dir.as_ref().map(|_| cache(config));
    let cache = cache.filter(|check| check.state != CheckState::Ok);
    let cache = cache.map(|check| format!("`engine.cache_dir`: {}", check.detail));
    // Of one that cannot be opened at all, reading the configuration says so.
    let is_there = |path: &PathBuf| fs::File::open(path).is_ok();
    let is_there = config.egress.ca_file.as_ref().is_some_and(is_there);
    let trust = trust(config).filter(|check| is_there && check.state != CheckState::Ok);
    cache
        .into_iter()
        .chain(trust.map(|check| check.detail))
        .collect()
}

/// The record of every call.
pub(super) fn audit(config: &Config) -> Vec<DoctorCheck> {
    const GROUP: &str = "store";
    if !config.audit.enabled {
        return vec![
            DoctorCheck::new(
                GROUP,
                "audit",
                CheckState::Degraded,
                "calls are not recorded",
            )
            .how_to_get("set `tools.audit.enabled = true`"),
        ];
    }
    let file = config.audit.file.as_ref();
    let check = file.map(|path| {
        let check = writable(GROUP, "audit", path, "tools.audit.file");
        looked_at(check, AuditFile::check_place(path)).required()
    });
    check.into_iter().collect()
}

/// The place of the database or of the record of calls that cannot be written, and what helps.
pub(in crate::cli) fn unwritable(config: &Config) -> Option<(String, String)> {
    let store = match &config.store {
        StoreLocation::File(path) => {
            let check = writable("store", "database", path, "store.path");
            let place = Location::File(path.clone());
            Some(looked_at(check, Store::check_place(&place)))
        }
        StoreLocation::Memory | StoreLocation::Server(_) => None,
    };
    let mut checks = store.into_iter().chain(audit(config));
    let missing = checks.find(|check| check.state == CheckState::Missing)?;
    Some((missing.detail, missing.how_to_get.unwrap_or_default()))
}

/// `check` of a file, with what the store finds in its place before it opens it.
fn looked_at(check: DoctorCheck, found: Result<(), StoreError>) -> DoctorCheck {
    let Err(error) = found else { return check };
    let hint = error.hint().unwrap_or_default();
    DoctorCheck {
        state: CheckState::Missing,
        detail: chain(&error, REASON_CHARS_MAX),
        ..check
    }
    .how_to_get(hint)
}

/// The folders of plugins.
pub(super) fn plugins(config: &Config) -> Vec<DoctorCheck> {
    const GROUP: &str = "plugins";
    if config.plugins.folders.is_empty() {
        return vec![
            DoctorCheck::new(GROUP, "folders", CheckState::Degraded, "plugins are off")
                .how_to_get("set `plugins.enabled = true`"),
        ];
    }
    let folder = |path: &PathBuf| {
        let detail = match fs::read_dir(path) {
            Ok(entries) => {
                let is_component = |entry: &fs::DirEntry| {
                    let path = entry.path();
                    path.extension().is_some_and(|end| end == "wasm")
                };
                let n_plugins = entries.flatten().filter(is_component).count();
                format!(
                    "{} holds {}; `zeph-host plugin` lists them",
                    path.display(),
                    counted(n_plugins, "component", "components")
                )
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                format!("{} does not exist yet", path.display())
            }
            Err(error) => {
                let detail = format!("{} cannot be read: {error}", path.display());
                return DoctorCheck::new(GROUP, "directory", CheckState::Missing, detail)
                    .how_to_get("give yourself the right to read it, or remove it");
            }
        };
        DoctorCheck::new(GROUP, "directory", CheckState::Ok, detail)
    };
    config.plugins.folders.iter().map(folder).collect()
}

/// Each layer around commands. Without any of them no command runs, or, where the operator said so, each runs unguarded.
pub(super) fn jail(jail: &Jail) -> Vec<DoctorCheck> {
    let check = |layer: Layer| DoctorCheck {
        group: "jail",
        name: layer.name.to_owned(),
        state: match layer.state {
            doctor::LayerState::Ok => CheckState::Ok,
            doctor::LayerState::Degraded => CheckState::Degraded,
            doctor::LayerState::Missing => CheckState::Missing,
        },
        // The first one stands for the whole: the others tell what it is made of.
        required: false,
        version: layer.version,
        detail: layer.detail,
        how_to_get: layer.how_to_get,
    };
    let mut checks: Vec<DoctorCheck> = doctor::layers(jail).into_iter().map(check).collect();
    if let Some(whole) = checks.first_mut() {
        whole.required = true;
    }
    checks
}

/// Which editors are there; none is needed.
pub(super) fn editors() -> DoctorCheck {
    let search_path = zeph_config::variable("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&search_path).collect();
    let is_there = |name: &&str| {
        let mut folders = folders.iter();
        folders.any(|folder| access(folder.join(name), Access::EXEC_OK).is_ok())
    };
    let found: Vec<&str> = EDITORS.into_iter().filter(|name| is_there(name)).collect();
    let detail = match found.as_slice() {
        [] => "no known editor; none is needed".to_owned(),
        found => found.join(", "),
    };
    DoctorCheck::new("editors", "found", CheckState::Ok, detail)
}

/// Whether `path`, or the nearest existing directory above it, is writable and has free space.
fn writable(group: &'static str, name: &str, path: &Path, key: &str) -> DoctorCheck {
    let there = nearest(path);
    let wanted = match there.is_dir() {
        true => Access::WRITE_OK | Access::EXEC_OK,
        false => Access::WRITE_OK,
    };
    let shown = path.display();
    let is_place = there == path || there.is_dir() && takes_files(there);
    if access(there, wanted).is_ok() && is_place {
        let detail = match there == path {
            true => shown.to_string(),
            false => format!("{shown} is made when it is needed"),
        };
        let check = DoctorCheck::new(group, name, CheckState::Ok, detail);
        return disk::with_room(check, folder(there), key);
    }
    let detail = format!("{shown} cannot be written");
    DoctorCheck::new(group, name, CheckState::Missing, detail)
        .how_to_get(format!("set `{key}` to a place you may write"))
}

/// Whether a file can be made in `folder`: some file systems let nobody, whatever the rights there. A full disk is another matter.
fn takes_files(folder: &Path) -> bool {
    let tried = tempfile::tempfile_in(folder);
    tried.map_or_else(|error| is_full(&error), |_| true)
}

/// The nearest thing that exists at or above `path`.
fn nearest(path: &Path) -> &Path {
    let there = path.ancestors().find(|above| above.exists());
    there.unwrap_or(Path::new("/"))
}

/// The folder of something that exists.
fn folder(there: &Path) -> &Path {
    match there.is_dir() {
        true => there,
        false => there.parent().unwrap_or(there),
    }
}
