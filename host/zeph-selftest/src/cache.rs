//! The cache of compiled components: an artifact that was touched is not used.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeph_core::id::PluginId;
use zeph_engine::{CompileEvent, CompileListener, Engine, EngineOptions, Plugin};

use crate::guests::guest;
use crate::lab::{Lab, PATIENT, reason};
use crate::{CheckResult, How, Probe};

pub(crate) const PROBES: &[Probe] = &[Probe {
    name: "cache of compiled components",
    tried: "an artifact with one bit changed, another put in its place",
    how: How::Own(|lab| Box::pin(cache(lab))),
}];

async fn cache(lab: &Lab) -> CheckResult {
    match tampered(lab.dir()).await {
        Ok(verdict) => verdict,
        Err(error) => {
            CheckResult::unavailable(format!("the cache to probe cannot be made: {error}"))
        }
    }
}

async fn tampered(dir: &Path) -> io::Result<CheckResult> {
    let dir = dir.join("tampered");
    let n_compiled = async || n_compiled(&dir).await.map_err(io::Error::other);
    if n_compiled().await? != 1 {
        return Ok(CheckResult::broken("nothing was compiled at first"));
    }
    if n_compiled().await? != 0 {
        return Ok(CheckResult::broken("an untouched artifact was not used"));
    }
    each_artifact(&dir, flip_a_bit)?;
    if n_compiled().await? != 1 {
        return Ok(CheckResult::broken(
            "an artifact with a changed bit was used",
        ));
    }
    each_artifact(&dir, replace)?;
    if n_compiled().await? != 1 {
        return Ok(CheckResult::broken(
            "an artifact put in place of another was used",
        ));
    }
    Ok(CheckResult::Holds)
}

/// Loads a good guest with a new engine on this cache and returns how often it was compiled.
async fn n_compiled(dir: &Path) -> Result<usize, String> {
    let n_compiled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_compiled);
    let engine = Engine::new(&EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: Some(dir.to_owned()),
        on_compile: Some(CompileListener::new(move |event| {
            if matches!(event, CompileEvent::Started { .. }) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })),
    });
    let engine = engine.map_err(|error| reason(&error))?;
    let bytes = guest("good").unwrap_or_default();
    let loaded = Plugin::load(&engine, PluginId("good".to_owned()), bytes, PATIENT).await;
    loaded.map_err(|error| reason(&error))?;
    Ok(n_compiled.load(Ordering::Relaxed))
}

fn each_artifact(dir: &Path, change: fn(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "cwasm")
        {
            change(&path)?;
        }
    }
    Ok(())
}

fn flip_a_bit(path: &Path) -> io::Result<()> {
    let mut bytes = fs::read(path)?;
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 1;
    }
    let times = fs::metadata(path)?.modified()?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o400))?;
    fs::File::open(path)?.set_modified(times)
}

fn replace(path: &Path) -> io::Result<()> {
    let other: PathBuf = path.with_extension("other");
    fs::copy(path, &other)?;
    fs::rename(other, path)
}
