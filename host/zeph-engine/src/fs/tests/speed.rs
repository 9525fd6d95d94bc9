//! What the guard costs against the same work without it. Printed always; judged only in an optimised build, where the
//! figures mean something.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use wasmtime::component::Resource;

use super::{Guest, Tree, walk};

const FILES: usize = 10_000;

fn tree() -> Tree {
    let tree = Tree::new();
    for n in 0..FILES {
        tree.file(
            &format!("ws/d{}/e{}/file-{n}.rs", n % 10, n / 10 % 10),
            "fn main() {}\n",
        );
    }
    tree
}

fn best(mut work: impl FnMut()) -> Duration {
    let once = |work: &mut dyn FnMut()| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..5).map(|_| once(&mut work)).min().expect("five rounds")
}

fn paths() -> Vec<String> {
    (0..FILES)
        .map(|n| format!("d{}/e{}/file-{n}.rs", n % 10, n / 10 % 10))
        .collect()
}

fn read_all(guest: &mut Guest, paths: &[String]) {
    for path in paths {
        assert!(guest.run_read(path) > 0);
    }
}

fn native_walk(dir: &Path) -> usize {
    let mut seen = 0;
    for entry in fs::read_dir(dir).expect("list") {
        let entry = entry.expect("entry");
        seen += 1;
        if entry.file_type().expect("kind").is_dir() {
            seen += native_walk(&entry.path());
        }
    }
    seen
}

impl Guest {
    fn run_read(&mut self, path: &str) -> usize {
        use wasmtime_wasi::p2::bindings::sync::filesystem::types::HostDescriptor;
        let fd = self
            .open(path, super::OpenFlags::empty(), super::READ)
            .expect("open")
            .rep();
        let mut view = self.view();
        let (bytes, _) = view.read(Resource::new_own(fd), 4096, 0).expect("read");
        HostDescriptor::drop(&mut view, Resource::new_own(fd)).expect("drop");
        bytes.len()
    }
}

#[test]
fn reading_and_walking_ten_thousand_files() {
    let tree = tree();
    let paths = paths();
    let absolute: Vec<_> = paths.iter().map(|path| tree.at("ws").join(path)).collect();
    let native = best(|| {
        for path in &absolute {
            assert!(!fs::read(path).expect("read").is_empty());
        }
    });
    let mut open = tree.guest();
    let guarded = best(|| read_all(&mut open, &paths));
    let all = zeph_core::capability::FsRights::ALL;
    let deny = [".env", "*.pem", "**/.ssh/**", "/etc/shadow", "secrets/*"];
    let mut watched = tree.guest_with(&[("ws", all)], &deny, &[]);
    let patterned = best(|| read_all(&mut watched, &paths));
    println!("read 10,000 files: std {native:?}, guard {guarded:?}, with patterns {patterned:?}");

    let native_walked = best(|| assert_eq!(native_walk(&tree.at("ws")), FILES + 110));
    let walked = best(|| assert_eq!(walk::walk_large(&mut open), FILES + 110));
    let filtered = best(|| assert_eq!(walk::walk_filtered(&mut open), FILES + 110));
    let watched_walk = best(|| assert_eq!(walk::walk_large(&mut watched), FILES + 110));
    println!(
        "walk 10,000 files: std {native_walked:?}, guard {walked:?}, standard filters {filtered:?}, with patterns {watched_walk:?}"
    );
    if !cfg!(debug_assertions) {
        assert!(guarded < native * 3, "{guarded:?} against {native:?}");
        assert!(
            walked < native_walked * 3,
            "{walked:?} against {native_walked:?}"
        );
    }
}
