//! Open files: reads, writes, streams, sizes, listings, and how much a call may hold open.

use std::os::unix::ffi::OsStrExt as _;

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    Advice, DescriptorType, Host as _, HostDescriptor, HostDirectoryEntryStream,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamError};

use zeph_core::capability::FsRights;

use super::{Guest, OpenFlags, READ, Tree, WRITE, code};

fn open(guest: &mut Guest, path: &str, flags: super::DescriptorFlags) -> u32 {
    guest
        .open(path, OpenFlags::empty(), flags)
        .expect("open")
        .rep()
}

fn input<'a>(guest: &'a mut Guest, stream: &Resource<DynInputStream>) -> &'a mut DynInputStream {
    guest.table.get_mut(stream).expect("stream")
}

fn output<'a>(guest: &'a mut Guest, stream: &Resource<DynOutputStream>) -> &'a mut DynOutputStream {
    guest.table.get_mut(stream).expect("stream")
}

#[test]
fn one_read_returns_megabytes_and_knows_the_end() {
    let tree = Tree::new();
    tree.file("ws/big", &"x".repeat(10 << 20))
        .file("ws/small", "tiny");
    let mut guest = tree.guest();
    let fd = open(&mut guest, "big", READ);
    let mut read = |len, offset| {
        let (bytes, end) = guest
            .view()
            .read(Resource::new_own(fd), len, offset)
            .expect("read");
        (bytes.len(), end)
    };
    assert_eq!(read(u64::MAX, 0), (8 << 20, false));
    assert_eq!(read(8 << 20, 8 << 20), (2 << 20, false));
    assert_eq!(read(1, 10 << 20), (0, true));
    assert_eq!(read(0, 0), (0, false));
    assert_eq!(read(7, 3), (7, false));
    let fd = open(&mut guest, "small", READ);
    let (bytes, _) = guest
        .view()
        .read(Resource::new_own(fd), 8 << 20, 0)
        .expect("read");
    assert_eq!(bytes, b"tiny");
    assert!(
        bytes.capacity() < 1 << 20,
        "a small file costs no megabytes"
    );
    let past = guest
        .view()
        .read(Resource::new_own(fd), 1, u64::MAX)
        .expect_err("no such offset");
    assert_eq!(code(past), "invalid");
}

#[test]
fn streams_read_write_and_append_in_place() {
    let tree = Tree::new();
    tree.file("ws/f", "0123456789");
    let mut guest = tree.guest();
    let fd = open(&mut guest, "f", READ | WRITE);
    let reader = guest
        .view()
        .read_via_stream(Resource::new_own(fd), 4)
        .expect("stream");
    assert_eq!(input(&mut guest, &reader).read(3).expect("read"), "456");
    assert_eq!(input(&mut guest, &reader).read(0).expect("read"), "");
    let writer = guest
        .view()
        .write_via_stream(Resource::new_own(fd), 8)
        .expect("stream");
    assert!(output(&mut guest, &writer).check_write().expect("ready") >= 1 << 20);
    output(&mut guest, &writer)
        .write(Bytes::from("AB"))
        .expect("write");
    output(&mut guest, &writer)
        .write(Bytes::from("CD"))
        .expect("write");
    output(&mut guest, &writer).flush().expect("flush");
    let appender = guest
        .view()
        .append_via_stream(Resource::new_own(fd))
        .expect("stream");
    output(&mut guest, &appender)
        .write(Bytes::from("end"))
        .expect("append");
    assert_eq!(tree.text("ws/f"), "01234567ABCDend");
    assert_eq!(
        input(&mut guest, &reader).read(100).expect("read"),
        "7ABCDend"
    );
    assert!(matches!(
        input(&mut guest, &reader).read(1),
        Err(StreamError::Closed)
    ));
}

#[test]
fn a_failed_write_is_reported_once_and_closes_the_stream() {
    let tree = Tree::new();
    tree.file("ws/f", "");
    let mut guest = tree.guest();
    let fd = open(&mut guest, "f", WRITE);
    let writer = guest
        .view()
        .write_via_stream(Resource::new_own(fd), u64::MAX - 1)
        .expect("stream");
    let failed = output(&mut guest, &writer).write(Bytes::from("abc"));
    let Err(StreamError::LastOperationFailed(error)) = failed else {
        panic!("{failed:?}")
    };
    let error = guest.table.push(error).expect("push");
    let told = guest
        .view()
        .filesystem_error_code(error)
        .expect("an error of ours");
    assert_eq!(told.expect("a code").name(), "invalid");
    assert!(matches!(
        output(&mut guest, &writer).check_write(),
        Err(StreamError::Closed)
    ));
    assert!(matches!(
        output(&mut guest, &writer).flush(),
        Err(StreamError::Closed)
    ));
}

#[test]
fn what_is_open_can_be_described_sized_and_synced() {
    let tree = Tree::new();
    tree.file("ws/f", "0123456789")
        .file("ws/g", "x")
        .hard_link("ws/f", "ws/f2");
    let mut guest = tree.guest();
    let (f, g, f2) = (
        open(&mut guest, "f", READ),
        open(&mut guest, "g", READ | WRITE),
        open(&mut guest, "f2", READ),
    );
    let own = Resource::new_own;
    let root = guest.root(0).rep();
    let mut view = guest.view();
    assert_eq!(
        view.get_type(own(f)).expect("type"),
        DescriptorType::RegularFile
    );
    assert_eq!(
        view.get_type(own(root)).expect("type"),
        DescriptorType::Directory
    );
    assert_eq!(view.get_flags(own(g)).expect("flags"), READ | WRITE);
    assert_eq!(view.stat(own(f)).expect("stat").size, 10);
    assert_eq!(view.stat(own(f)).expect("stat").link_count, 2);
    assert!(view.is_same_object(own(f), own(f2)).expect("same"));
    assert!(!view.is_same_object(own(f), own(g)).expect("same"));
    assert_eq!(
        view.metadata_hash(own(f)).expect("hash").lower,
        view.metadata_hash(own(f2)).expect("hash").lower
    );
    let before = view.metadata_hash(own(g)).expect("hash");
    view.set_size(own(g), 100).expect("size");
    let after = view.metadata_hash(own(g)).expect("hash");
    assert_eq!(before.lower, after.lower);
    assert_ne!(before.upper, after.upper);
    for fd in [f, g, root] {
        view.sync(own(fd)).expect("sync");
        view.sync_data(own(fd)).expect("sync");
    }
    view.advise(own(f), 0, 0, Advice::Sequential)
        .expect("advise");
    assert_eq!(
        code(view.read(own(root), 1, 0).expect_err("a directory")),
        "is-directory"
    );
    assert_eq!(
        code(view.read_directory(own(f)).expect_err("a file")),
        "not-directory"
    );
}

#[test]
fn listings_come_whole_however_long() {
    let tree = Tree::new();
    for n in 0..3000 {
        tree.file(&format!("ws/d/a-rather-long-name-for-a-file-{n}"), "");
    }
    tree.dir("ws/d/sub").link("ws/d/link", "sub");
    let bad_name = std::ffi::OsStr::from_bytes(b"bad\xff");
    std::fs::write(tree.at("ws/d").join(bad_name), "").expect("write");
    let mut guest = tree.guest();
    let names = guest.run("list d");
    assert_eq!(names.split(' ').count(), 3003);
    assert!(names.split(' ').all(|name| name != "." && name != ".."));
    // Told, and not to be opened.
    assert!(names.split(' ').any(|name| name == "bad\\xFF"), "{names}");
    guest.check(&[("read d/bad\\xFF", "no-entry")]);
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &["bad*"], &[]);
    assert!(!guest.run("list d").contains("bad"));
}

#[test]
fn what_a_call_may_hold_open_is_bounded_and_comes_back() {
    let tree = Tree::new();
    tree.file("ws/f", "x");
    let mut guest = tree.guest();
    let mut held = Vec::new();
    let refused = loop {
        match guest.open("f", OpenFlags::empty(), READ) {
            Ok(opened) => held.push(opened),
            Err(refused) => break refused,
        }
    };
    assert_eq!(code(refused), "quota");
    assert_eq!(held.len(), 512);
    assert_eq!(guest.run("list ."), "quota");
    for fd in held.drain(..2) {
        HostDescriptor::drop(&mut guest.view(), fd).expect("drop");
    }
    assert_eq!(guest.run("list ."), "f");
    for fd in held {
        HostDescriptor::drop(&mut guest.view(), fd).expect("drop");
    }
    assert_eq!(guest.run("read f"), "x");
}

#[test]
fn a_dropped_listing_gives_its_handle_back() {
    let tree = Tree::new();
    let mut guest = tree.guest();
    for _ in 0..2000 {
        let root = guest.root(0);
        let stream = guest.view().read_directory(root).expect("list");
        HostDirectoryEntryStream::drop(&mut guest.view(), stream).expect("drop");
    }
}
