//! Pipes, sockets and devices are seen, never opened.

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use zeph_core::capability::FsRights;

use super::{OpenFlags, READ, Tree, WRITE, code, rights};

fn tree() -> (Tree, UnixListener) {
    let tree = Tree::new();
    rustix::fs::mkfifoat(CWD, tree.at("ws/pipe"), Mode::from_raw_mode(0o666)).expect("make pipe");
    let listener = UnixListener::bind(tree.at("ws/socket")).expect("make socket");
    tree.link("ws/to-pipe", "pipe")
        .link("ws/tty", "/dev/tty")
        .link("ws/zero", "/dev/zero");
    (tree, listener)
}

#[test]
fn they_are_refused_at_once_whatever_is_asked() {
    let (tree, _listener) = tree();
    let device = rustix::fs::makedev(1, 5);
    let made = rustix::fs::mknodat(
        CWD,
        tree.at("ws/device"),
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        device,
    );
    for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]) {
        for path in ["pipe", "socket", "to-pipe", "tty", "zero", "device"] {
            if path == "device" && made.is_err() {
                continue;
            }
            for flags in [READ, WRITE, READ | WRITE] {
                for oflags in [
                    OpenFlags::empty(),
                    OpenFlags::CREATE,
                    OpenFlags::CREATE | OpenFlags::TRUNCATE,
                ] {
                    if oflags.contains(OpenFlags::TRUNCATE) && !flags.contains(WRITE) {
                        continue;
                    }
                    let refused = guest.open(path, oflags, flags).expect_err("refused");
                    assert_eq!(code(refused), "not-permitted", "{path}");
                }
            }
        }
        guest.check(&[
            ("stat pipe", "Fifo 0"),
            ("stat socket", "Socket 0"),
            ("touch pipe", "unsupported"),
            ("link pipe p2", "not-permitted"),
            ("opendir pipe", "not-directory"),
        ]);
    }
    let mut guest = tree.guest();
    guest.check(&[
        ("rename pipe moved", "ok"),
        ("unlink moved", "ok"),
        ("unlink socket", "ok"),
    ]);
}

#[test]
fn a_writer_that_waits_at_a_pipe_is_not_woken() {
    let (tree, _listener) = tree();
    let mut guest = tree.guest();
    let pipe = tree.at("ws/pipe");
    let (done, woken, tried) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Succeeds only while another process holds the other side open.
                let opened = rustix::fs::openat(
                    CWD,
                    &pipe,
                    OFlags::WRONLY | OFlags::NONBLOCK,
                    Mode::empty(),
                );
                woken.fetch_add(usize::from(opened.is_ok()), Ordering::Relaxed);
                tried.fetch_add(1, Ordering::Relaxed);
            }
        });
        while tried.load(Ordering::Relaxed) < 20_000 {
            for line in [
                "read pipe",
                "read to-pipe",
                "stat pipe",
                "list .",
                "write pipe x",
            ] {
                guest.run(line);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(woken.into_inner(), 0);
}

#[test]
fn a_walk_passes_them_by() {
    let (tree, _listener) = tree();
    tree.file("ws/f", "x");
    let mut guest = tree.guest_with(&[("ws", rights("r"))], &[], &[]);
    let seen = super::walk::walk(&mut guest, "", |options| options.sizes = true).expect("walk");
    assert_eq!(seen, "f pipe? socket? to-pipe@ tty@ zero@");
}
