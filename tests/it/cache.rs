//! The cache of compiled components survives whatever happens to its files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zeph_core::id::PluginId;
use zeph_engine::{Engine, EngineOptions, Plugin};

use crate::guest::{HOSTILE, PATIENT};

async fn load(cache: &Path) {
    let options = EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: Some(cache.to_owned()),
        on_compile: None,
    };
    let engine = Engine::new(&options).unwrap();
    let plugin = Plugin::load(&engine, PluginId("hostile".to_owned()), HOSTILE, PATIENT)
        .await
        .unwrap();
    assert!(plugin.tools().len() > 5);
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_artifact_is_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path()).await;
    let artifact = files(dir.path(), "cwasm").remove(0);
    let whole = fs::read(&artifact).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 4096].fill(0xcc);
    // Half written, foreign, flipped in the middle of the code, empty.
    for damaged in [
        &whole[..whole.len() / 2],
        b"not an artifact".as_slice(),
        &flipped,
        b"",
    ] {
        fs::set_permissions(&artifact, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&artifact, damaged).unwrap();
        load(dir.path()).await;
        assert_eq!(fs::read(&artifact).unwrap(), whole, "compiled again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_artifact_of_one_engine_serves_pooled_and_one_shot_alike() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path()).await;
    let options = EngineOptions {
        guest_threads: 2,
        pooled: true,
        cache_dir: Some(dir.path().to_owned()),
        on_compile: None,
    };
    let engine = Engine::new(&options).unwrap();
    Plugin::load(&engine, PluginId("hostile".to_owned()), HOSTILE, PATIENT)
        .await
        .unwrap();
    assert_eq!(files(dir.path(), "cwasm").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_others_can_write_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    load(dir.path()).await;
    assert!(files(dir.path(), "cwasm").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_starting_at_once_share_it() {
    let dir = tempfile::tempdir().unwrap();
    tokio::join!(load(dir.path()), load(dir.path()), load(dir.path()));
    assert_eq!(files(dir.path(), "cwasm").len(), 1);
}
