//! File operations of a hostile guest, from inside wasm, against every wall of the guard.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_core::limit::CallLimits;

use crate::guest::{Guest, PATIENT};

/// A granted tree with traps in it, and an ungranted one beside it.
struct Trees {
    _dir: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Trees {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(root.join("hidden")).unwrap();
        fs::create_dir_all(outside.join("dir")).unwrap();
        fs::write(root.join("a.txt"), "a").unwrap();
        fs::write(root.join("sub/b.txt"), "b").unwrap();
        fs::write(root.join(".env"), "KEY=1").unwrap();
        fs::write(root.join("hidden/key"), "k").unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(outside.join("dir/deep"), "d").unwrap();
        symlink("../outside/secret", root.join("out")).unwrap();
        symlink("../outside/dir", root.join("out_dir")).unwrap();
        symlink(outside.join("secret"), root.join("out_absolute")).unwrap();
        symlink("../outside/new", root.join("out_dangling")).unwrap();
        symlink("sub", root.join("in_dir")).unwrap();
        symlink(root.join("a.txt"), root.join("in_absolute")).unwrap();
        symlink(".env", root.join("to_hidden")).unwrap();
        fs::hard_link(outside.join("secret"), root.join("hard")).unwrap();
        fs::hard_link(root.join(".env"), root.join("hard_hidden")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        Self {
            _dir: dir,
            root,
            outside,
        }
    }

    fn grant(&self, rights: FsRights) -> FsGrant {
        FsGrant {
            roots: vec![FsRoot {
                path: self.root.clone(),
                rights,
            }],
            deny_read: vec![".env".to_owned(), "hidden".to_owned()],
            allow_read: Vec::new(),
            spelled: Vec::new(),
        }
    }
}

/// Every file below `dir` with its content.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    files
}

async fn run(guest: &Guest, root: &Path, op: &str, path: &str, to: &str) -> Result<String, String> {
    let absolute = |path: &str| {
        root.join(path).display().to_string() + if path.ends_with('/') { "/" } else { "" }
    };
    let arguments = json!({"op": op, "path": absolute(path), "to": absolute(to)});
    match guest.call("files", arguments).await {
        Ok(output) => Ok(output.to_text()),
        Err(failure) => Err(failure.message),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_outside_is_read_or_changed() {
    let trees = Trees::new();
    let before = snapshot(&trees.outside);
    let guest = Guest::load(PATIENT, &trees.grant(FsRights::ALL)).await;
    let forbidden = [
        ("read", "out", ""),
        ("read", "out_absolute", ""),
        ("read", "out_dir/deep", ""),
        ("read", "../outside/secret", ""),
        ("read", "sub/../../outside/secret", ""),
        ("read", "out_dir/../secret", ""),
        ("read", "out/", ""),
        ("stat", "out", ""),
        ("stat", "out_absolute", ""),
        ("list", "out_dir", ""),
        ("list", "out_dir/", ""),
        ("list", "..", ""),
        ("write", "out", ""),
        ("write", "out_absolute", ""),
        ("write", "out_dangling", ""),
        ("write", "out_dir/new", ""),
        ("write", "hard", ""),
        ("append", "hard", ""),
        ("truncate", "hard", ""),
        ("truncate", "out", ""),
        ("create_new", "out_dangling", ""),
        ("create_new", "out_dir/new", ""),
        ("mkdir", "out_dir/new", ""),
        ("mkdir", "out_dangling", ""),
        ("unlink", "out_dir/deep", ""),
        ("rmdir", "out_dir/", ""),
        ("rename", "out_dir/deep", "sub/deep"),
        ("rename", "a.txt", "out_dir/a.txt"),
        ("rename", "a.txt", "../outside/a.txt"),
        ("link", "out_dir/deep", "sub/deep"),
        ("link", "a.txt", "out_dir/a.txt"),
        ("readlink", "out_absolute", ""),
        ("read", "fifo", ""),
        ("write", "fifo", ""),
        ("read", "/proc/self/environ", ""),
        ("read", "/dev/null", ""),
    ];
    for (op, path, to) in forbidden {
        let result = run(&guest, &trees.root, op, path, to).await;
        assert!(result.is_err(), "{op} {path} {to}: {result:?}");
        assert_eq!(snapshot(&trees.outside), before, "after {op} {path} {to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_denied_is_as_if_absent() {
    let trees = Trees::new();
    let guest = Guest::load(PATIENT, &trees.grant(FsRights::ALL)).await;
    let forbidden = [
        ("read", ".env", ""),
        ("read", "to_hidden", ""),
        ("read", "hard_hidden", ""),
        ("read", "hidden/key", ""),
        ("read", "sub/../.env", ""),
        ("stat", ".env", ""),
        ("lstat", ".env", ""),
        ("list", "hidden", ""),
        ("write", ".env", ""),
        ("write_then_read", "hidden/new", ""),
        ("rename", ".env", "visible"),
        ("rename", "hidden", "visible"),
        ("link", ".env", "visible"),
        ("rename", "a.txt", ".env"),
        ("unlink", ".env", ""),
    ];
    for (op, path, to) in forbidden {
        let result = run(&guest, &trees.root, op, path, to).await;
        assert!(result.is_err(), "{op} {path} {to}: {result:?}");
    }
    let names = run(&guest, &trees.root, "list", ".", "").await.unwrap();
    assert!(
        !names
            .split(' ')
            .any(|name| name == ".env" || name == "hidden"),
        "{names}"
    );
    assert_eq!(
        fs::read_to_string(trees.root.join(".env")).unwrap(),
        "KEY=1"
    );
    assert_eq!(
        fs::read_to_string(trees.root.join("hidden/key")).unwrap(),
        "k"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_work_goes_through() {
    let trees = Trees::new();
    let guest = Guest::load(PATIENT, &trees.grant(FsRights::ALL)).await;
    let allowed = [
        ("read", "a.txt", "", "a"),
        ("read", "./sub/b.txt", "", "b"),
        ("read", "sub/../a.txt", "", "a"),
        ("read", "in_dir/b.txt", "", "b"),
        ("read", "in_absolute", "", "a"),
        ("read", "hard", "", "s"),
        ("list", "sub", "", "b.txt"),
        ("list", "in_dir/", "", "b.txt"),
        ("readlink", "in_dir", "", "sub"),
        ("write_then_read", "new.txt", "", "written by the guest"),
        ("write_then_read", "a.txt", "", "written by the guest"),
        ("truncate", "a.txt", "", ""),
        ("append", "a.txt", "", ""),
        ("mkdir", "made", "", ""),
        ("rename", "new.txt", "made/new.txt", ""),
        ("link", "made/new.txt", "made/second.txt", ""),
        ("unlink", "made/second.txt", "", ""),
        ("unlink", "made/new.txt", "", ""),
        ("rmdir", "made", "", ""),
        ("unlink", "out", "", ""),
    ];
    for (op, path, to, expect) in allowed {
        let result = run(&guest, &trees.root, op, path, to).await;
        assert_eq!(result.as_deref(), Ok(expect), "{op} {path} {to}");
    }
    assert!(
        trees.outside.join("secret").exists(),
        "removing a link leaves its target"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_is_separate() {
    let only = |read, write, create, delete| FsRights {
        read,
        write,
        create,
        delete,
    };
    let table = [
        (only(true, false, false, false), ["read"].as_slice()),
        (only(false, true, false, false), &["truncate"]),
        (only(false, false, true, false), &["create_new", "mkdir"]),
        (only(false, false, false, true), &["unlink"]),
        (only(false, false, false, false), &[]),
    ];
    let probes = [
        ("read", "a.txt"),
        ("truncate", "a.txt"),
        ("create_new", "new.txt"),
        ("mkdir", "new"),
        ("unlink", "sub/b.txt"),
    ];
    for (rights, expect) in table {
        let trees = Trees::new();
        let guest = Guest::load(PATIENT, &trees.grant(rights)).await;
        let mut allowed = Vec::new();
        for (op, path) in probes {
            if run(&guest, &trees.root, op, path, "").await.is_ok() {
                allowed.push(op);
            }
        }
        assert_eq!(allowed, expect, "{rights}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_of_links_never_leads_out() {
    let trees = Trees::new();
    let guest = Guest::load(
        CallLimits {
            handles: 1000,
            ..PATIENT
        },
        &trees.grant(FsRights::ALL),
    )
    .await;
    let swapped = trees.root.join("swapped");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (inside, outside) = (trees.root.join("sub"), trees.outside.join("dir"));
    fs::write(inside.join("deep"), "inside").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for target in [&inside, &outside] {
                    let fresh = trees.root.join("fresh");
                    symlink(target, &fresh).unwrap();
                    fs::rename(&fresh, &swapped).unwrap();
                }
            }
        });
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            runtime.block_on(async {
                for _ in 0..2_000 {
                    if let Ok(text) = run(&guest, &trees.root, "read", "swapped/deep", "").await {
                        assert_eq!(text, "inside");
                    }
                }
            });
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executable_keeps_its_mode_when_read() {
    let trees = Trees::new();
    let script = trees.root.join("run.sh");
    fs::write(&script, "x").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let guest = Guest::load(PATIENT, &trees.grant(FsRights::ALL)).await;
    run(&guest, &trees.root, "write_then_read", "run.sh", "")
        .await
        .unwrap();
    assert_eq!(
        fs::metadata(&script).unwrap().permissions().mode() & 0o777,
        0o755
    );
}
