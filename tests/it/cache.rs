//! The cache of compiled components survives whatever happens to its files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{CWD, FileType, Mode};
use zeph_core::id::{Digest, PluginId};
use zeph_engine::{
    CompileEvent, CompileListener, Engine, EngineOptions, Plugin, SHARED_KEY_BYTES, SharedArtifacts,
};

use crate::guest::{HOSTILE, PATIENT};
use crate::plugin_cli::with_section;

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

/// Whether an engine with this cache says that the component need not be compiled.
fn is_compiled(cache: &Path) -> bool {
    let options = EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: Some(cache.to_owned()),
        on_compile: None,
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, HOSTILE);
    let digest = Digest::new(digest.as_ref().try_into().unwrap());
    Engine::new(&options).unwrap().has_compiled(digest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_artifact_does_not_count_as_compiled() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    load(dir.path()).await;
    assert!(is_compiled(dir.path()));
    for file in fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    assert!(!is_compiled(copy.path()));
    load(copy.path()).await;
    assert!(is_compiled(copy.path()));
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

/// A key of an operator.
const KEY: [u8; SHARED_KEY_BYTES] = [7; SHARED_KEY_BYTES];

/// Loads `component` as a host with a new cache of its own; how often it was compiled.
async fn n_compiled(shared: &Path, keys: &[[u8; SHARED_KEY_BYTES]], component: &[u8]) -> usize {
    let own = tempfile::tempdir().unwrap();
    let n_compiled = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_compiled);
    let options = EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: Some(own.path().to_owned()),
        on_compile: Some(CompileListener::new(move |event| {
            let is_started = matches!(event, CompileEvent::Started { .. });
            counted.fetch_add(usize::from(is_started), Ordering::Relaxed);
        })),
    };
    let shared = SharedArtifacts::new(shared, keys.to_vec());
    let engine = Engine::sharing(&options, Some(shared)).unwrap();
    let id = PluginId("shared".to_owned());
    let component = component.to_vec();
    Plugin::load(&engine, id, component, PATIENT).await.unwrap();
    assert_eq!(files(own.path(), "cwasm").len(), 1, "kept in its own cache");
    n_compiled.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_host_compiled_another_does_not() {
    let shared = tempfile::tempdir().unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 0);
    // While keys are exchanged: the new one seals, the old one still opens.
    assert_eq!(n_compiled(shared.path(), &[[8; 32], KEY], HOSTILE).await, 0);
    assert_eq!(files(shared.path(), "sealed").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_artifact_that_no_key_sealed_is_compiled_and_replaced() {
    let shared = tempfile::tempdir().unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    let file = files(shared.path(), "sealed").remove(0);
    let whole = fs::read(&file).unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for forged in [
        changed(0),
        changed(whole.len() / 2),
        changed(whole.len() - 1),
        whole[..whole.len() / 2].to_vec(),
        [&whole[..], b"\0"].concat(),
        whole[32..].to_vec(),
        Vec::new(),
    ] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, forged).unwrap();
        assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
        assert_eq!(fs::read(&file).unwrap(), whole, "sealed anew");
    }
    // Sealed, and by a key that is none of this host's.
    assert_eq!(n_compiled(shared.path(), &[[9; 32]], HOSTILE).await, 1);
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_artifact_of_one_component_is_none_of_another() {
    let shared = tempfile::tempdir().unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    let first = files(shared.path(), "sealed").remove(0);
    let other = with_section(HOSTILE, "version", b"2");
    assert_eq!(n_compiled(shared.path(), &[KEY], &other).await, 1);
    let second = files(shared.path(), "sealed");
    let second = second.iter().find(|file| **file != first).unwrap();
    // Its seal is good, and it is not what the name says.
    fs::remove_file(second).unwrap();
    fs::copy(&first, second).unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], &other).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_directory_that_cannot_be_used_costs_time_only() {
    let nowhere = Path::new("/nonexistent/compiled");
    assert_eq!(n_compiled(nowhere, &[KEY], HOSTILE).await, 1);
    // A link or a pipe in place of a file is neither followed nor waited on.
    let shared = tempfile::tempdir().unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    let file = files(shared.path(), "sealed").remove(0);
    let moved = file.with_extension("moved");
    fs::rename(&file, &moved).unwrap();
    symlink(&moved, &file).unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    fs::remove_file(&file).unwrap();
    let made = rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0);
    made.unwrap();
    assert_eq!(n_compiled(shared.path(), &[KEY], HOSTILE).await, 1);
    // Without a key nothing is used and nothing is written.
    assert_eq!(n_compiled(shared.path(), &[], HOSTILE).await, 1);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(n_compiled(empty.path(), &[], HOSTILE).await, 1);
    assert!(files(empty.path(), "sealed").is_empty());
}
