//! Probes of the guard through its border: what a guest could call, and what it gets.
//!
//! A probe is a line of text (`"rename a b"`), so that a table of probes reads like a session. `Guest::run` makes the calls
//! and answers `ok`, what was read, or the name of the error code.

mod atomic;
mod drafts;
mod escape;
mod files;
mod guard_model;
mod hardlinks;
mod hostile;
#[path = "../../../../tests/left_out.rs"]
mod left_out;
mod obeyed;
mod patterns;
mod race;
mod rename;
mod rights;
mod roots;
mod ruled;
mod seen;
mod special;
mod touched;
mod uses;
mod walk;
mod wanted;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    Descriptor, DescriptorFlags, HostDescriptor, HostDirectoryEntryStream, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use zeph_core::capability::{FsGrant, FsRights, FsRoot};

use super::{FsCtx, FsCtxView, FsPolicy, FsPolicyError};
use crate::bindings::zeph::plugin::files::Host as _;

/// A temporary tree with `ws`, which is usually granted, and `out`, which is not and holds the canary `out/secret`.
struct Tree {
    _dir: TempDir,
    top: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let top = dir
            .path()
            .canonicalize()
            .expect("canonical temporary directory");
        let tree = Self { _dir: dir, top };
        tree.dir("ws").dir("out").file("out/secret", "OUTSIDE");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    fn dir(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).expect("make directory");
        self
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("make parent");
        fs::write(path, text).expect("write file");
        self
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.at(path)).expect("make link");
        self
    }

    fn hard_link(&self, old: &str, new: &str) -> &Self {
        fs::hard_link(self.at(old), self.at(new)).expect("make hard link");
        self
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).expect("read file")
    }

    fn has(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// A grant of `roots` with `rights`, and patterns in which `$` stands for the top of the tree.
    fn grant(&self, roots: &[(&str, FsRights)], deny: &[&str], allow: &[&str]) -> FsGrant {
        let spell = |list: &[&str]| {
            list.iter()
                .map(|p| p.replace('$', &self.top.to_string_lossy()))
                .collect()
        };
        FsGrant {
            roots: roots
                .iter()
                .map(|(path, rights)| FsRoot {
                    path: self.at(path),
                    rights: *rights,
                })
                .collect(),
            deny_read: spell(deny),
            allow_read: spell(allow),
            spelled: Vec::new(),
        }
    }

    /// A guest with all rights on `ws`.
    fn guest(&self) -> Guest {
        self.guest_with(&[("ws", FsRights::ALL)], &[], &[])
    }

    fn guest_with(&self, roots: &[(&str, FsRights)], deny: &[&str], allow: &[&str]) -> Guest {
        Guest::new(FsPolicy::new(&self.grant(roots, deny, allow)).expect("policy"))
    }

    /// The same twice: with the kernel's resolver, and with ours for kernels that have none.
    fn guests_with(&self, roots: &[(&str, FsRights)], deny: &[&str], allow: &[&str]) -> [Guest; 2] {
        let ours = FsPolicy::new(&self.grant(roots, deny, allow))
            .expect("policy")
            .stepwise();
        [self.guest_with(roots, deny, allow), Guest::new(ours)]
    }
}

/// Parses `rwcd`, any of them.
fn rights(letters: &str) -> FsRights {
    FsRights {
        read: letters.contains('r'),
        write: letters.contains('w'),
        create: letters.contains('c'),
        delete: letters.contains('d'),
    }
}

/// One call of a guest: its file state and its resources.
struct Guest {
    ctx: FsCtx,
    table: ResourceTable,
    roots: Vec<u32>,
}

const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

impl Guest {
    fn new(policy: FsPolicy) -> Self {
        Self::of(Arc::new(policy))
    }

    fn of(policy: Arc<FsPolicy>) -> Self {
        let mut guest = Self {
            ctx: FsCtx::new(policy),
            table: ResourceTable::new(),
            roots: Vec::new(),
        };
        let mut roots = guest.view().get_directories().expect("preopens");
        // Numbered as the policy has them.
        let policy = &guest.ctx.policy;
        let number = |path: &str| policy.roots().position(|(_, root)| root.path == path);
        roots.sort_by_key(|(_, path)| number(path).unwrap_or(usize::MAX));
        guest.roots = roots.iter().map(|(root, _)| root.rep()).collect();
        guest
    }

    /// The next call under the same grant.
    fn again(&self) -> Self {
        Self::of(Arc::clone(&self.ctx.policy))
    }

    fn view(&mut self) -> FsCtxView<'_> {
        FsCtxView {
            ctx: &mut self.ctx,
            table: &mut self.table,
        }
    }

    fn root(&self, index: usize) -> Resource<Descriptor> {
        Resource::new_own(self.roots[index])
    }

    /// Splits `1:path` into root and path; root 0 without a number.
    fn place(&self, text: &str) -> (Resource<Descriptor>, String) {
        let (index, path) = match text.split_once(':') {
            Some((index, path)) if index.len() == 1 => (index.parse().expect("root number"), path),
            _ => (0, text),
        };
        (self.root(index), path.to_owned())
    }

    fn open(
        &mut self,
        place: &str,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let (root, path) = self.place(place);
        self.view()
            .open_at(root, PathFlags::SYMLINK_FOLLOW, path, oflags, flags)
    }

    fn with_open<T>(
        &mut self,
        place: &str,
        oflags: OpenFlags,
        flags: DescriptorFlags,
        use_it: impl FnOnce(&mut FsCtxView<'_>, &dyn Fn() -> Resource<Descriptor>) -> FsResult<T>,
    ) -> FsResult<T> {
        let opened = self.open(place, oflags, flags)?;
        let rep = opened.rep();
        let again = || Resource::new_own(rep);
        let mut view = self.view();
        let used = use_it(&mut view, &again);
        HostDescriptor::drop(&mut view, again()).expect("drop");
        used
    }

    fn read(&mut self, place: &str) -> FsResult<String> {
        let (bytes, _) = self.with_open(place, OpenFlags::empty(), READ, |view, fd| {
            view.read(fd(), 1 << 20, 0)
        })?;
        Ok(String::from_utf8(bytes).expect("text"))
    }

    fn put(&mut self, place: &str, text: &str, oflags: OpenFlags) -> FsResult<String> {
        let bytes = text.as_bytes().to_vec();
        self.with_open(place, oflags, WRITE, |view, fd| view.write(fd(), bytes, 0))?;
        Ok("ok".to_owned())
    }

    fn list(&mut self, place: &str) -> FsResult<String> {
        let mut names = Vec::new();
        self.with_open(place, OpenFlags::DIRECTORY, READ, |view, fd| {
            let stream = view.read_directory(fd())?.rep();
            while let Some(entry) = view.read_directory_entry(Resource::new_own(stream))? {
                names.push(entry.name);
            }
            HostDirectoryEntryStream::drop(view, Resource::new_own(stream)).expect("drop");
            Ok(())
        })?;
        names.sort();
        Ok(names.join(" "))
    }

    fn stat(&mut self, place: &str, flags: PathFlags) -> FsResult<String> {
        let (root, path) = self.place(place);
        let stat = self.view().stat_at(root, flags, path)?;
        Ok(format!("{:?} {}", stat.type_, stat.size).replace("DescriptorType::", ""))
    }

    /// Makes a directory that only the host's user can open.
    fn make_private(&mut self, path: String) -> String {
        let made = self.view().make_private(path, true).expect("no trap");
        made.map_or_else(|error| error.name().to_owned(), |()| "ok".to_owned())
    }

    /// Makes the call written in `line` and tells what came of it.
    fn run(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').expect("verb and path");
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let done = |result: FsResult<()>| result.map(|()| "ok".to_owned());
        let (root, path) = self.place(first);
        let (follow, nofollow) = (PathFlags::SYMLINK_FOLLOW, PathFlags::empty());
        let result = match verb {
            "read" => self.read(first),
            "write" => self.put(first, second, OpenFlags::CREATE | OpenFlags::TRUNCATE),
            "create" => self.put(first, second, OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
            "patch" => self.put(first, second, OpenFlags::empty()),
            "cut" => self.put(first, "", OpenFlags::TRUNCATE),
            "list" => self.list(first),
            "stat" => self.stat(first, follow),
            "lstat" => self.stat(first, nofollow),
            "mkdir" => done(self.view().create_directory_at(root, path)),
            "private" => Ok(self.make_private(path)),
            "rmdir" => done(self.view().remove_directory_at(root, path)),
            "unlink" => done(self.view().unlink_file_at(root, path)),
            "readlink" => self.view().readlink_at(root, path),
            "touch" => done(self.view().set_times_at(
                root,
                follow,
                path,
                NewTimestamp::Now,
                NewTimestamp::Now,
            )),
            "hash" => self
                .view()
                .metadata_hash_at(root, nofollow, path)
                .map(|_| "ok".to_owned()),
            "rename" => {
                let (to, new) = self.place(second);
                done(self.view().rename_at(root, path, to, new))
            }
            "link" => {
                let (to, new) = self.place(second);
                done(self.view().link_at(root, nofollow, path, to, new))
            }
            "symlink" => {
                let (to, new) = self.place(second);
                done(self.view().symlink_at(to, first.to_owned(), new))
            }
            "opendir" => self
                .open(first, OpenFlags::DIRECTORY, READ)
                .map(|_| "ok".to_owned()),
            _ => panic!("no such probe: {line}"),
        };
        result.unwrap_or_else(code)
    }

    /// Runs probes in order; each must answer as written.
    #[track_caller]
    fn check(&mut self, probes: &[(&str, &str)]) {
        for (line, expected) in probes {
            assert_eq!(self.run(line), *expected, "`{line}`");
        }
    }
}

/// The name of the code a guest would see; a trap fails the test.
fn code(error: FsError) -> String {
    error
        .downcast()
        .expect("an error code, no trap")
        .name()
        .to_owned()
}
