//! Several roots: links between them, one inside the other, and roots that cannot be used.

use super::{FsPolicy, FsPolicyError, Tree, rights};

const NO: &str = "not-permitted";

#[test]
fn links_between_roots_work_under_the_rights_of_where_they_lead() {
    let tree = Tree::new();
    tree.file("a/f", "in a")
        .file("b/f", "in b")
        .dir("b/d")
        .link("a/to-b", tree.at("b"))
        .link("a/to-f", tree.at("b/f"));
    tree.link("a/rel", "../b/f")
        .link("b/back", tree.at("a/f"))
        .link("a/new", tree.at("b/d/new"))
        .link("a/lost", tree.at("b/lost"));
    tree.link("a/round", tree.at("b/back"))
        .link("a/out", tree.at("out/secret"));
    for mut guest in tree.guests_with(&[("a", rights("rwcd")), ("b", rights("r"))], &[], &[]) {
        guest.check(&[
            ("read to-f", "in b"),
            ("read rel", "in b"),
            ("read to-b/f", "in b"),
            ("read to-b/../a/f", "in a"),
            ("read round", "in a"),
            ("read lost", "no-entry"),
            ("read to-b/lost", "no-entry"),
            ("read out", NO),
            ("patch to-f X", NO),
            ("patch to-b/f X", NO),
            ("create to-b/new x", NO),
            ("unlink to-b/f", NO),
            ("rename f to-b/g", NO),
            ("list to-b", "back d f"),
            ("readlink to-b", tree.at("b").to_str().expect("text")),
        ]);
    }
    assert_eq!(tree.text("b/f"), "in b");
}

#[test]
fn the_innermost_root_governs_by_whatever_path() {
    let tree = Tree::new();
    tree.file("ws/f", "f")
        .file("ws/vendor/v", "v")
        .file("ws/out/o", "o")
        .link("ws/to-v", "vendor/v");
    let grant = [
        ("ws", rights("rwcd")),
        ("ws/vendor", rights("r")),
        ("ws/out", rights("c")),
    ];
    for mut guest in tree.guests_with(&grant, &[], &[]) {
        guest.check(&[
            ("read vendor/v", "v"),
            ("patch vendor/v X", NO),
            ("patch to-v X", NO),
            ("patch f/../vendor/v X", "not-directory"),
            ("unlink vendor/v", NO),
            ("create vendor/n x", NO),
            ("mkdir vendor/m", NO),
            ("rename vendor/v v", NO),
            ("rename f vendor/f", NO),
            ("rename vendor moved", NO),
            ("rmdir vendor", NO),
            ("read out/o", NO),
            ("list out", NO),
            ("link vendor/v v2", NO),
            ("patch f F", "ok"),
            ("create out/p x", "ok"),
            ("rename f out/f", "ok"),
            ("rename out/p back", "ok"),
        ]);
        tree.file("ws/f", "f");
        std::fs::remove_file(tree.at("ws/out/f")).expect("remove");
        std::fs::remove_file(tree.at("ws/back")).expect("remove");
    }
    assert_eq!(tree.text("ws/vendor/v"), "v");
}

#[test]
fn a_wider_root_inside_a_narrow_one_works_too() {
    let tree = Tree::new();
    tree.file("ws/f", "f").file("ws/build/o", "o");
    let mut guest = tree.guest_with(
        &[("ws", rights("r")), ("ws/build", rights("rwcd"))],
        &[],
        &[],
    );
    guest.check(&[
        ("patch f X", NO),
        ("patch build/o X", "ok"),
        ("create build/n x", "ok"),
        ("rename f build/f", NO),
        ("link f build/f", NO),
        ("rename 1:o 0:o", NO),
        ("patch 1:../f X", NO),
    ]);
}

#[test]
fn a_root_inside_another_is_not_moved_or_removed() {
    let tree = Tree::new();
    tree.file("ws/sub/inner/f", "f").dir("ws/empty").dir("ws/d");
    let all = rights("rwcd");
    let grant = [("ws", all), ("ws/sub/inner", all), ("ws/empty", all)];
    let mut guest = tree.guest_with(&grant, &[], &[]);
    guest.check(&[
        ("rename sub/inner x", NO),
        ("rename sub x", NO),
        ("rmdir empty", NO),
        ("rename d empty", NO),
        ("rename d sub/d", "ok"),
    ]);
    assert!(tree.has("ws/sub/inner/f") && tree.has("ws/empty"));
}

#[test]
fn the_same_root_twice_holds_what_both_grant() {
    let tree = Tree::new();
    tree.file("ws/f", "f");
    let mut guest = tree.guest_with(&[("ws", rights("rw")), ("ws", rights("rd"))], &[], &[]);
    assert_eq!(guest.roots.len(), 1);
    guest.check(&[("read f", "f"), ("patch f X", NO), ("unlink f", NO)]);
}

#[test]
fn a_root_that_moves_is_still_the_tree_that_was_granted() {
    let tree = Tree::new();
    tree.file("ws/f", "text").file("ws/.env", "SECRET");
    let mut open = tree.guest();
    let mut guarded = tree.guest_with(&[("ws", rights("rwcd"))], &["ws/.env", "./.env"], &[]);
    std::fs::rename(tree.at("ws"), tree.at("moved")).expect("rename");
    tree.file("ws/f", "IMPOSTOR");
    assert_eq!(open.run("read f"), "text");
    // Patterns name places: where names no longer fit the grant, nothing is given out.
    assert_eq!(guarded.run("read f"), NO);
    assert_eq!(guarded.run("read .env"), NO);
}

#[test]
fn unusable_roots_are_errors_and_no_roots_mean_no_files() {
    let tree = Tree::new();
    tree.file("ws/f", "x").link("alias", "ws");
    let compile = |path| FsPolicy::new(&tree.grant(&[(path, rights("r"))], &[], &[]));
    assert!(matches!(
        compile("alias"),
        Err(FsPolicyError::RootNotCanonical { .. })
    ));
    assert!(matches!(
        compile("ws/../ws"),
        Err(FsPolicyError::RootNotCanonical { .. })
    ));
    assert!(matches!(
        compile("nothing"),
        Err(FsPolicyError::OpenRoot { .. })
    ));
    assert!(matches!(
        compile("ws/f"),
        Err(FsPolicyError::OpenRoot { .. })
    ));
    let mut relative = tree.grant(&[("ws", rights("r"))], &[], &[]);
    relative.roots[0].path = "ws".into();
    assert!(matches!(
        FsPolicy::new(&relative),
        Err(FsPolicyError::RootName { .. })
    ));
    let policy = FsPolicy::new(&tree.grant(&[], &[".env"], &[])).expect("policy");
    assert_eq!(policy.working_directory(), None);
    let mut nobody = super::Guest::new(policy);
    assert!(nobody.roots.is_empty());
    assert!(super::walk::walk(&mut nobody, "", |_| {}).is_err());
    assert_eq!(
        compile("ws").expect("policy").working_directory(),
        tree.at("ws").to_str()
    );
}
