//! The four rights are separate, in every combination.

use super::{Guest, READ, Tree, WRITE, code, rights};
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    DescriptorFlags, HostDescriptor, NewTimestamp, OpenFlags,
};

const NO: &str = "not-permitted";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/f", "text")
        .file("ws/g", "more")
        .dir("ws/d")
        .dir("ws/e")
        .link("ws/l", "f");
    tree
}

/// Probes, and the right (or rights) each of them needs.
const NEEDS: [(&str, &str); 22] = [
    ("read f", "r"),
    ("list .", "r"),
    ("stat f", "r"),
    ("lstat l", "r"),
    ("stat .", "r"),
    ("hash f", "r"),
    ("readlink l", "r"),
    ("patch f T", "w"),
    ("cut f", "w"),
    ("touch f", "w"),
    ("touch d", "w"),
    ("write f text", "w"),
    ("create new x", "c"),
    ("write new2 x", "c"),
    ("mkdir m", "c"),
    ("symlink f s", "c"),
    ("link f h", "rwc"),
    ("unlink g", "d"),
    ("rmdir e", "d"),
    ("rename g g2", "cd"),
    ("rename d d2", "cd"),
    ("rename g f", "wcd"),
];

#[test]
fn every_combination_of_rights_gives_exactly_its_operations() {
    for bits in 0..16 {
        let held: String = "rwcd"
            .chars()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .map(|(_, c)| c)
            .collect();
        for (probe, needed) in NEEDS {
            let tree = tree();
            let mut guest = tree.guest_with(&[("ws", rights(&held))], &[], &[]);
            let answer = guest.run(probe);
            let allowed = needed.chars().all(|right| held.contains(right));
            assert_eq!(
                answer != NO,
                allowed,
                "`{probe}` with `{held}` gave {answer}"
            );
            if !allowed {
                assert_eq!(tree.text("ws/f"), "text", "`{probe}` with `{held}`");
                assert!(
                    tree.has("ws/g") && tree.has("ws/e") && tree.has("ws/d"),
                    "`{probe}` with `{held}`"
                );
            }
        }
    }
}

#[test]
fn a_descriptor_never_does_more_than_it_was_opened_for() {
    let tree = tree();
    let mut guest = tree.guest();
    let none = OpenFlags::empty();
    let tries = |guest: &mut Guest, flags| {
        guest
            .with_open("f", none, flags, |view, fd| {
                let name = |answer: Result<(), _>| answer.map_or_else(code, |()| "ok".to_owned());
                Ok([
                    name(view.read(fd(), 4, 0).map(drop)),
                    name(view.read_via_stream(fd(), 0).map(drop)),
                    name(view.write(fd(), b"x".to_vec(), 0).map(drop)),
                    name(view.write_via_stream(fd(), 0).map(drop)),
                    name(view.append_via_stream(fd()).map(drop)),
                    name(view.set_size(fd(), 0)),
                ])
            })
            .expect("open")
    };
    let bad = "bad-descriptor";
    assert_eq!(tries(&mut guest, READ), ["ok", "ok", bad, bad, bad, bad]);
    assert_eq!(tree.text("ws/f"), "text");
    assert_eq!(
        tries(&mut guest, DescriptorFlags::empty()),
        ["ok", "ok", bad, bad, bad, bad]
    );
    assert_eq!(tries(&mut guest, WRITE), [bad, bad, "ok", "ok", "ok", "ok"]);
}

#[test]
fn nothing_is_cut_through_a_descriptor_that_only_reads() {
    let tree = tree();
    let mut guest = tree.guest();
    for flags in [READ, DescriptorFlags::empty()] {
        let opened = guest.open("f", OpenFlags::TRUNCATE, flags);
        assert_eq!(code(opened.expect_err("refused")), "invalid");
    }
    let mut reader = tree.guest_with(&[("ws", rights("r"))], &[], &[]);
    for flags in [READ, WRITE, READ | WRITE] {
        for oflags in [OpenFlags::TRUNCATE, OpenFlags::TRUNCATE | OpenFlags::CREATE] {
            reader.open("f", oflags, flags).expect_err("refused");
        }
    }
    assert_eq!(tree.text("ws/f"), "text");
}

#[test]
fn times_of_an_open_file_need_the_right_to_write() {
    let tree = tree();
    for (held, expected) in [("r", NO), ("rw", "ok")] {
        let mut guest = tree.guest_with(&[("ws", rights(held))], &[], &[]);
        let touched = guest.with_open("f", OpenFlags::empty(), READ, |view, fd| {
            view.set_times(fd(), NewTimestamp::NoChange, NewTimestamp::Now)
        });
        assert_eq!(touched.map_or_else(code, |()| "ok".to_owned()), expected);
        let root = guest.root(0);
        let touched = guest
            .view()
            .set_times(root, NewTimestamp::Now, NewTimestamp::Now);
        assert_eq!(touched.map_or_else(code, |()| "ok".to_owned()), expected);
    }
}

#[test]
fn an_open_file_tells_of_itself_only_what_may_be_read() {
    let tree = tree();
    for (held, expected) in [("w", NO), ("rw", "ok")] {
        let mut guest = tree.guest_with(&[("ws", rights(held))], &[], &[]);
        let told = guest.with_open("f", OpenFlags::empty(), WRITE, |view, fd| {
            view.metadata_hash(fd())?;
            view.stat(fd())
        });
        assert_eq!(told.map_or_else(code, |_| "ok".to_owned()), expected);
    }
}

#[test]
fn directories_opened_below_gain_no_rights() {
    let tree = tree();
    tree.file("ws/d/x", "text");
    let mut guest = tree.guest_with(&[("ws", rights("r"))], &[], &[]);
    let flags = READ | DescriptorFlags::MUTATE_DIRECTORY;
    let dir = guest
        .open("d", OpenFlags::DIRECTORY, flags)
        .expect("open")
        .rep();
    guest.roots.push(dir);
    let flags = guest
        .view()
        .get_flags(wasmtime::component::Resource::new_own(dir))
        .expect("flags");
    assert!(!flags.contains(DescriptorFlags::MUTATE_DIRECTORY));
    guest.check(&[
        ("read 1:x", "text"),
        ("write 1:x no", NO),
        ("create 1:y no", NO),
        ("unlink 1:x", NO),
        ("mkdir 1:m", NO),
        ("rename 1:x 1:y", NO),
        ("symlink x 1:s", NO),
        ("link 1:x 1:y", NO),
    ]);
}
