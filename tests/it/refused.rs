//! What a guest tried in vain comes back with the end of its call; what it was granted besides files reaches it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_engine::fs::FsPolicy;
use zeph_engine::{CallEnd, CallGrant, Cancel, MissingGrant};

use crate::guest::{Guest, PATIENT};

/// A tree the operator allows, with a file in it.
struct Tree {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.txt"), "a").unwrap();
        Self { _dir: dir, root }
    }

    fn with(&self, rights: FsRights) -> Vec<FsRoot> {
        let path = self.root.clone();
        vec![FsRoot { path, rights }]
    }

    /// The hostile plugin, holding `granted` of all it wants.
    async fn guest(&self, granted: FsRights) -> Guest {
        let guest = Guest::load(PATIENT, &FsGrant::default()).await;
        let policy = FsGrant {
            roots: self.with(FsRights::ALL),
            ..FsGrant::default()
        };
        let operator = FsPolicy::new(&policy).unwrap();
        let wanted = self.with(FsRights::ALL);
        let fs = operator.for_plugin(&self.with(granted), &wanted).unwrap();
        guest.granted(CallGrant {
            fs: Arc::new(fs),
            ..guest.grant().clone()
        })
    }

    async fn end_of(&self, guest: &Guest, op: &str, name: &str) -> CallEnd {
        let path = self.root.join(name);
        let arguments = json!({"op": op, "path": path.to_str().unwrap()});
        end_of(guest, "files", arguments).await
    }

    /// The tree's only refusal, spelled.
    fn spell(&self, end: &CallEnd) -> String {
        match &end.refused[..] {
            [] => String::new(),
            [MissingGrant::Directory { path, rights }] if self.root == Path::new(path) => {
                rights.to_string()
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn end_of(guest: &Guest, tool: &str, arguments: Value) -> CallEnd {
    guest.end_of(tool, arguments, Cancel::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wanted_tree_that_was_not_granted_is_named_with_the_rights_it_takes() {
    let tree = Tree::new();
    let guest = tree.guest(FsRights::default()).await;
    let tries = [
        ("read", "read"),
        ("write", "write+create"),
        ("append", "write"),
        ("create_new", "create"),
        ("list", "read"),
        ("stat", "read"),
        ("mkdir", "create"),
        ("unlink", "delete"),
        ("readlink", "read"),
    ];
    for (op, rights) in tries {
        for name in ["a.txt", "nothing", "sub/nothing"] {
            let end = tree.end_of(&guest, op, name).await;
            let failure = end.result.as_ref().expect_err(op);
            assert_eq!(failure.message, "PermissionDenied", "{op} {name}");
            assert_eq!(tree.spell(&end), rights, "{op} {name}");
            assert!(!end.used_files, "{op} {name}");
        }
    }
    assert_eq!(fs::read_to_string(tree.root.join("a.txt")).unwrap(), "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_is_named_and_what_works_is_not() {
    let tree = Tree::new();
    let guest = tree.guest(FsRights::READ).await;
    let read = tree.end_of(&guest, "read", "a.txt").await;
    assert_eq!(read.result.as_ref().unwrap().to_text(), "a");
    assert!(read.refused.is_empty() && read.used_files);
    let absent = tree.end_of(&guest, "read", "nothing").await;
    assert!(absent.result.is_err() && absent.refused.is_empty() && absent.used_files);
    let write = tree.end_of(&guest, "write", "a.txt").await;
    assert_eq!(tree.spell(&write), "write");
    let create = tree.end_of(&guest, "write", "new").await;
    assert_eq!(tree.spell(&create), "create");

    let all = tree.guest(FsRights::ALL).await;
    let bound = all.granted(all.grant().read_only());
    let write = tree.end_of(&bound, "write", "a.txt").await;
    assert!(write.result.is_err(), "{write:?}");
    assert_eq!(tree.spell(&write), "write");
    assert_eq!(fs::read_to_string(tree.root.join("a.txt")).unwrap(), "a");
    let write = tree.end_of(&all, "write", "a.txt").await;
    assert!(write.result.is_ok() && write.refused.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_refused_and_variables_are_those_granted() {
    let guest = Guest::load(PATIENT, &FsGrant::default()).await;
    let end = end_of(&guest, "looks_around", json!({})).await;
    assert_eq!(end.refused, [MissingGrant::Network]);
    assert!(!end.used_files);
    assert_eq!(
        end.result.unwrap().to_text(),
        "variables [], arguments [], connected false"
    );
    let variables = [("TOKEN".to_owned(), "secret".to_owned())];
    let guest = guest.granted(CallGrant {
        variables: variables.into(),
        ..guest.grant().clone()
    });
    let end = end_of(&guest, "looks_around", json!({})).await;
    let text = end.result.unwrap().to_text();
    assert!(text.starts_with("variables [\"TOKEN\"],"), "{text}");
    let end = end_of(&guest, "echo", json!({"text": "x"})).await;
    assert!(end.refused.is_empty(), "{end:?}");
}
