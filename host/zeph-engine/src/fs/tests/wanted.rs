//! What a plugin wants and does not hold: every operation is refused alike, tells nothing, and is noted with the rights that
//! were missing and the tree they were missing on.

use std::path::Path;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sync::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::HostDescriptor;
use zeph_core::capability::{FsGrant, FsRights, FsRoot};

use super::{FsPolicy, Guest, Tree, code, rights, walk};
use crate::fs::FsPolicyError;
use crate::missing_grant::{MissingGrant, REFUSED_MAX};

const NO: &str = "not-permitted";

type Roots<'a> = &'a [(&'a str, &'a str)];

impl Tree {
    fn roots(&self, roots: Roots<'_>) -> Vec<FsRoot> {
        let root = |(path, letters): &(&str, &str)| FsRoot {
            path: self.at(path),
            rights: rights(letters),
        };
        roots.iter().map(root).collect()
    }

    /// A plugin's grant where the operator allows everything in `ws` and `other`.
    fn plugin(&self, granted: Roots<'_>, wanted: Roots<'_>, deny: &[&str]) -> FsPolicy {
        let policy = self.grant(
            &[("ws", FsRights::ALL), ("other", FsRights::ALL)],
            deny,
            &[],
        );
        self.plugin_within(&policy, granted, wanted)
    }

    fn plugin_within(&self, policy: &FsGrant, granted: Roots<'_>, wanted: Roots<'_>) -> FsPolicy {
        let operator = FsPolicy::new(policy).expect("policy");
        let (granted, wanted) = (self.roots(granted), self.roots(wanted));
        operator.for_plugin(&granted, &wanted).expect("policy")
    }

    /// What was refused since the last time, as `path rights`, in the order of the first try.
    fn refused(&self, guest: &mut Guest) -> String {
        let told = guest.ctx.take_refused().into_iter().map(|refused| {
            let MissingGrant::Directory { path, rights } = refused else {
                panic!("no file: {refused:?}")
            };
            let below = Path::new(&path).strip_prefix(&self.top).expect("below");
            format!("{} {rights}", below.display())
        });
        told.collect::<Vec<_>>().join(", ")
    }

    /// Runs each probe; it must answer so, and note exactly that.
    #[track_caller]
    fn check(&self, guest: &mut Guest, probes: &[(&str, &str, &str)]) {
        for (line, answer, refused) in probes {
            assert_eq!(guest.run(line), *answer, "`{line}`");
            assert_eq!(self.refused(guest), *refused, "`{line}`");
        }
    }
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/f", "text")
        .file("ws/.env", "SECRET")
        .file("ws/sub/g", "more")
        .dir("ws/empty")
        .dir("other")
        .link("ws/l", "f")
        .link("ws/lost", "nothing");
    tree
}

#[test]
fn a_tree_without_rights_refuses_everything_and_tells_nothing() {
    let tree = tree();
    let policy = tree.plugin(&[], &[("ws", "rwcd")], &[".env"]);
    let mut guest = Guest::new(policy);
    let probes = [
        ("read f", "read"),
        ("list .", "read"),
        ("list sub", "read"),
        ("opendir sub", "read"),
        ("stat f", "read"),
        ("stat .", "read"),
        ("lstat l", "read"),
        ("hash f", "read"),
        ("hash .", "read"),
        ("readlink l", "read"),
        ("patch f x", "write"),
        ("cut f", "write"),
        ("touch f", "write"),
        ("touch .", "write"),
        ("write f x", "write+create"),
        ("create f x", "create"),
        ("mkdir f", "create"),
        ("symlink f f", "create"),
        ("unlink f", "delete"),
        ("rmdir empty", "delete"),
        ("rename f g", "delete"),
        ("link f g", "read+write"),
    ];
    for (line, needed) in probes {
        // What is there, what is not, what is hidden, what is not a directory, and what leads somewhere else: no difference.
        for name in [
            "f",
            "nothing",
            ".env",
            "f/x",
            "sub/../f",
            "lost",
            "nothing/x",
        ] {
            let line = line.replacen(" f", &format!(" {name}"), 1);
            tree.check(&mut guest, &[(&line, NO, &format!("ws {needed}"))]);
        }
    }
    assert!(!guest.ctx.is_used());
    assert_eq!(tree.text("ws/f"), "text");
}

#[test]
fn its_descriptor_tells_nothing_either() {
    let tree = tree();
    let policy = tree.plugin(&[], &[("ws", "r"), ("other", "r")], &[]);
    let mut guest = Guest::new(policy);
    let (first, second) = (guest.roots[0], guest.roots[1]);
    let fd = Resource::new_own;
    let mut view = guest.view();
    assert_eq!(code(view.stat(fd(first)).expect_err("refused")), NO);
    assert_eq!(
        code(view.metadata_hash(fd(first)).expect_err("refused")),
        NO
    );
    assert_eq!(
        code(view.read_directory(fd(first)).expect_err("refused")),
        NO
    );
    assert_eq!(code(view.sync(fd(first)).expect_err("refused")), NO);
    let same =
        |view: &mut super::FsCtxView<'_>, a, b| view.is_same_object(fd(a), fd(b)).expect("no trap");
    assert!(same(&mut view, first, first));
    assert!(!same(&mut view, first, second));
    assert_eq!(tree.refused(&mut guest), "ws read+write");
    for root in ["", ".", "f", "sub", "nothing"] {
        walk::walk(&mut guest, root, |_| {}).expect_err("denied");
        assert_eq!(tree.refused(&mut guest), "ws read", "{root}");
    }
    let absolute = tree.at("other/x").display().to_string();
    walk::walk(&mut guest, &absolute, |_| {}).expect_err("denied");
    assert_eq!(tree.refused(&mut guest), "other read");
    assert!(!guest.ctx.is_used());
}

#[test]
fn a_missing_right_on_a_granted_tree_is_noted() {
    let tree = tree();
    for deny in [&[".env"][..], &[]] {
        let policy = tree.plugin(&[("ws", "r")], &[("ws", "rwcd")], deny);
        let mut guest = Guest::new(policy);
        assert!(!guest.ctx.is_used());
        tree.check(
            &mut guest,
            &[
                ("read f", "text", ""),
                ("read nothing", "no-entry", ""),
                ("patch f x", NO, "ws write"),
                ("cut f", NO, "ws write"),
                ("touch f", NO, "ws write"),
                ("write f x", NO, "ws write"),
                ("write new x", NO, "ws create"),
                ("mkdir new", NO, "ws create"),
                ("symlink f new", NO, "ws create"),
                ("unlink f", NO, "ws delete"),
                ("rename f new", NO, "ws create"),
                ("link f new", NO, "ws create"),
            ],
        );
        assert!(guest.ctx.is_used());
    }
    let mut guest = Guest::new(tree.plugin(&[("ws", "wcd")], &[("ws", "rwcd")], &[]));
    tree.check(
        &mut guest,
        &[
            ("read f", NO, "ws read"),
            ("list .", NO, "ws read"),
            ("stat f", NO, "ws read"),
            ("link f new", NO, "ws read"),
            ("readlink l", NO, "ws read"),
            ("patch f text", "ok", ""),
        ],
    );
    let mut guest = Guest::new(tree.plugin(&[("ws", "rcd")], &[("ws", "rwcd")], &[]));
    tree.check(&mut guest, &[("rename f sub/g", NO, "ws write")]);
    assert_eq!(tree.text("ws/sub/g"), "more");
}

#[test]
fn what_no_grant_would_allow_is_not_noted() {
    let tree = tree();
    tree.hard_link("ws/f", "ws/second")
        .link("ws/out", tree.at("out/secret"));
    let policy = tree.plugin(&[("ws", "rwcd")], &[("ws", "rwcd")], &[".env"]);
    let mut guest = Guest::new(policy);
    tree.check(
        &mut guest,
        &[
            ("read .env", "no-entry", ""),
            ("write .env x", NO, ""),
            ("mkdir .env", NO, ""),
            ("rename sub .env", NO, ""),
            ("patch f x", NO, ""),
            ("touch f", NO, ""),
            ("read out", NO, ""),
            ("read /etc/passwd", NO, ""),
            ("read ../out/secret", NO, ""),
        ],
    );
    let policy = tree.plugin(&[("ws", "r")], &[("ws", "rwcd")], &[".env"]);
    let mut guest = Guest::new(policy);
    tree.check(
        &mut guest,
        &[
            ("patch .env x", "no-entry", ""),
            ("create .env x", NO, ""),
            ("unlink .env", "no-entry", ""),
        ],
    );
}

#[test]
fn a_wish_inside_a_granted_tree_takes_nothing_away_and_is_blamed() {
    let tree = tree();
    tree.file("ws/build/o", "o").dir("ws/build/deep");
    let wanted = [("ws", "r"), ("ws/build", "rwc"), ("ws/build/deep", "d")];
    let mut guest = Guest::new(tree.plugin(&[("ws", "r")], &wanted, &[]));
    assert_eq!(guest.roots.len(), 1);
    tree.check(
        &mut guest,
        &[
            ("read build/o", "o", ""),
            ("patch build/o x", NO, "ws/build write"),
            ("create build/deep/x x", NO, "ws/build create"),
            ("rmdir build/deep", NO, "ws/build/deep delete"),
            // Nobody wants it here, so the tree that was granted is the one to speak of.
            ("patch f x", NO, "ws write"),
            ("unlink build/o", NO, "ws delete"),
        ],
    );
    let mut guest = Guest::new(tree.plugin(&[("ws", "rwcd")], &wanted, &[]));
    tree.check(
        &mut guest,
        &[
            ("patch build/o x", "ok", ""),
            ("rename build built", "ok", ""),
            ("read built/o", "x", ""),
        ],
    );
}

#[test]
fn a_granted_tree_inside_a_wanted_one_works_and_leads_nowhere() {
    let tree = tree();
    tree.file("ws/sub/inner/x", "x")
        .link("ws/sub/up", "../f")
        .link("ws/sub/lost", "../nothing")
        .link("ws/sub/absolute", tree.at("ws/f"));
    for deny in [&[".env"][..], &[]] {
        let policy = tree.plugin(&[("ws/sub", "rwcd")], &[("ws", "rwcd")], deny);
        assert_eq!(policy.working_directory(), tree.at("ws").to_str());
        let mut guest = Guest::new(policy);
        tree.check(
            &mut guest,
            &[
                ("read 1:g", "more", ""),
                ("read 1:inner/../g", "more", ""),
                ("read 0:f", NO, "ws read"),
                ("read 0:sub/g", NO, "ws read"),
                ("read 1:up", NO, "ws read"),
                ("read 1:lost", NO, "ws read"),
                ("write 1:lost x", NO, "ws write+create"),
                ("read 1:absolute", NO, "ws read"),
                ("rename 1:g 0:g", NO, "ws create"),
                ("rename 0:f 1:h", NO, "ws delete"),
                ("link 0:f 1:h", NO, "ws read+write"),
                ("link 1:g 0:h", NO, "ws create"),
            ],
        );
        assert!(!tree.has("ws/nothing") && tree.has("ws/sub/g"));
        let listed = walk::walk(&mut guest, "sub", |_| {}).expect("granted");
        assert!(listed.contains("inner"), "{listed}");
        walk::walk(&mut guest, "", |_| {}).expect_err("denied");
        assert_eq!(tree.refused(&mut guest), "ws read");
    }
}

#[test]
fn rights_add_up_and_the_operator_narrows_them() {
    let tree = tree();
    tree.file("ws/vendor/v", "v").file("ws/build/o", "o");
    let policy = tree.grant(
        &[
            ("ws", FsRights::ALL),
            ("ws/vendor", FsRights::READ),
            ("ws/closed", rights("w")),
        ],
        &[],
        &[],
    );
    let granted = [
        ("ws", "r"),
        ("ws/build", "w"),
        ("ws/vendor", "rwcd"),
        ("out", "rwcd"),
    ];
    tree.file("ws/closed/c", "c");
    let policy = tree.plugin_within(&policy, &granted, &[("ws", "rw"), ("out", "r")]);
    let mut guest = Guest::new(policy);
    tree.check(
        &mut guest,
        &[
            ("read build/o", "o", ""),
            ("patch build/o x", "ok", ""),
            ("patch f x", NO, "ws write"),
            ("read vendor/v", "v", ""),
            ("patch vendor/v x", NO, "ws write"),
            // The operator allows to write there, and the plugin was granted to read.
            ("read closed/c", NO, "ws read"),
            ("stat closed/nothing", NO, "ws read"),
            ("rename closed opened", NO, "ws/closed delete"),
        ],
    );
    // Outside of what the operator allows anybody a grant is worth nothing.
    let out = guest
        .ctx
        .policy
        .roots()
        .position(|(_, root)| root.path.ends_with("/out"));
    let line = format!("read {}:secret", out.expect("wanted"));
    tree.check(&mut guest, &[(&line, NO, "out read")]);
}

#[test]
fn patterns_start_from_the_operators_roots() {
    let tree = tree();
    tree.file("ws/src/keys/k", "K").file("ws/src/a", "a");
    let deny = ["src/keys/*"];
    let mut guest = Guest::new(tree.plugin(&[("ws/src", "rwcd")], &[("ws/src", "rwcd")], &deny));
    tree.check(
        &mut guest,
        &[
            ("read a", "a", ""),
            ("read keys/k", "no-entry", ""),
            ("list keys", "", ""),
        ],
    );
}

#[test]
fn a_promise_to_only_read_is_kept() {
    let tree = tree();
    let policy = tree.plugin(
        &[("ws", "rwcd"), ("other", "wc")],
        &[("ws", "rwcd"), ("other", "wc")],
        &[],
    );
    let mut guest = Guest::new(policy.read_only());
    tree.check(
        &mut guest,
        &[
            ("read f", "text", ""),
            ("patch f x", NO, "ws write"),
            ("create new x", NO, "ws create"),
            ("unlink f", NO, "ws delete"),
            ("create 1:new x", NO, "other create"),
            ("list 1:.", NO, "other read"),
        ],
    );
    let mut guest = Guest::new(policy);
    tree.check(
        &mut guest,
        &[("patch f x", "ok", ""), ("create 1:new x", "ok", "")],
    );
}

#[test]
fn wishes_are_never_opened_and_never_fail() {
    let tree = tree();
    tree.link("alias", "ws");
    let wanted = [("gone/deeper", "r"), ("alias", "r"), ("ws/f", "r")];
    let mut wanted = tree.roots(&wanted);
    wanted.push(FsRoot {
        path: "relative".into(),
        rights: FsRights::ALL,
    });
    wanted.push(FsRoot {
        path: "/proc".into(),
        rights: FsRights::READ,
    });
    let operator = FsPolicy::new(&tree.grant(&[], &[], &[])).expect("policy");
    let policy = operator.for_plugin(&[], &wanted).expect("policy");
    let mut guest = Guest::new(policy);
    assert_eq!(guest.roots.len(), 4);
    tree.check(
        &mut guest,
        &[
            ("read 0:x", NO, "gone/deeper read"),
            ("read 1:f", NO, "alias read"),
            ("read 2:.", NO, "ws/f read"),
        ],
    );
    assert_eq!(guest.run("read 3:version"), NO);
    // A tree that was granted and is gone is nowhere; it is not asked for again.
    let gone = tree.plugin(&[("ws/gone", "r")], &[("ws/gone", "r")], &[]);
    assert_eq!(Guest::new(gone).roots.len(), 0);
}

#[test]
fn the_working_directory_is_the_operators_first_when_it_is_held_or_wanted() {
    let tree = tree();
    let first = |granted: Roots<'_>, wanted: Roots<'_>| {
        let policy = tree.plugin(granted, wanted, &[]);
        let path = policy.working_directory().map(str::to_owned);
        path.map(|path| path.rsplit('/').next().expect("a name").to_owned())
    };
    assert_eq!(first(&[], &[]), None);
    assert_eq!(
        first(&[], &[("other", "r"), ("ws", "r")]).as_deref(),
        Some("ws")
    );
    let both: Roots<'_> = &[("other", "r"), ("ws", "r")];
    assert_eq!(first(both, both).as_deref(), Some("ws"));
    assert_eq!(
        first(&[("ws/sub", "r")], &[("other", "r"), ("ws/sub", "r")]).as_deref(),
        Some("other")
    );
}

#[test]
fn however_much_is_tried_little_is_kept() {
    let tree = tree();
    let names: Vec<String> = (0..REFUSED_MAX + 20).map(|n| format!("t{n}")).collect();
    let wanted: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "rwcd")).collect();
    let policy = tree.plugin(&[], &wanted, &[]);
    let mut guest = Guest::new(policy);
    let roots = guest.roots.clone();
    for _ in 0..3 {
        for root in &roots {
            let fd = || Resource::new_own(*root);
            code(guest.view().stat(fd()).expect_err("refused"));
            let made = guest.view().create_directory_at(fd(), "x".to_owned());
            code(made.expect_err("refused"));
        }
    }
    let refused = guest.ctx.take_refused();
    assert_eq!(refused.len(), REFUSED_MAX);
    let both = rights("rc");
    assert!(
        refused
            .iter()
            .all(|one| matches!(one, MissingGrant::Directory { rights, .. } if *rights == both))
    );
}

/// A tree that a plugin was given is the one it was given first, whatever stands at its path later.
#[test]
fn a_granted_tree_that_is_swapped_is_not_given() {
    type Swap = fn(&Tree);
    let swaps: [Swap; 4] = [
        |tree| tree.link_in_place("ws/in", "other"),
        |tree| {
            std::fs::rename(tree.at("ws/in"), tree.at("ws/away")).unwrap();
            std::fs::rename(tree.at("ws/beside"), tree.at("ws/in")).unwrap();
        },
        |tree| {
            std::fs::remove_dir_all(tree.at("ws/in")).unwrap();
            tree.dir("ws/in");
        },
        |tree| tree.link_in_place("ws", "other"),
    ];
    for swap in swaps {
        let tree = Tree::new();
        tree.file("ws/in/f", "mine")
            .file("ws/beside/f", "hush")
            .file("other/f", "hush")
            .file("other/in/f", "hush");
        let operator =
            FsPolicy::new(&tree.grant(&[("ws", FsRights::ALL)], &[], &[])).expect("policy");
        let granted = tree.roots(&[("ws/in", "rwcd")]);
        operator.for_plugin(&granted, &granted).expect("policy");
        swap(&tree);
        let then = operator.for_plugin(&granted, &granted);
        assert!(
            matches!(then, Err(FsPolicyError::RootReplaced { .. })),
            "{then:?}"
        );
    }
}

impl Tree {
    fn link_in_place(&self, path: &str, target: &str) {
        std::fs::rename(self.at(path), self.at("away")).unwrap();
        self.link(path, self.at(target));
    }
}

/// A guest that takes the first tree around a path finds what was granted in a part of what it asked for.
#[test]
fn granted_trees_are_listed_before_wanted_ones_around_them() {
    let tree = tree();
    let policy = tree.plugin(&[("ws/sub", "r")], &[("ws", "rw"), ("other", "r")], &[]);
    let mut guest = Guest::new(policy);
    let listed = guest.view().get_directories().expect("preopens");
    let listed = listed.iter().map(|(_, path)| Path::new(path));
    let below = listed.map(|path| path.strip_prefix(&tree.top).expect("below").to_owned());
    let expected = ["ws/sub", "ws", "other"].map(Path::new);
    assert_eq!(below.collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_withheld_of_a_granted_tree_leaves_the_rest() {
    let tree = tree();
    let whole = [("ws", "rwcd")];
    let plugin = |denied: Roots<'_>| {
        let policy = tree.plugin(&whole, &whole, &[]);
        Guest::new(policy.withholding(&tree.roots(denied)))
    };
    tree.check(
        &mut plugin(&[("ws/sub", "rwcd")]),
        &[
            ("read 0:f", "text", ""),
            ("read 0:sub/g", NO, "ws read"),
            ("rename 0:sub/g 0:g", NO, "ws delete"),
            ("create 0:new x", "ok", ""),
        ],
    );
    tree.check(
        &mut plugin(&[("ws/sub", "wcd"), ("ws/none", "w"), ("other", "r")]),
        &[
            ("read 0:sub/g", "more", ""),
            ("patch 0:sub/g x", NO, "ws write"),
            ("mkdir 0:none", NO, "ws create"),
        ],
    );
    tree.check(
        &mut plugin(&[("ws", "w")]),
        &[("read 0:f", "text", ""), ("patch 0:f x", NO, "ws write")],
    );
    assert_eq!(tree.text("ws/sub/g"), "more");
}
