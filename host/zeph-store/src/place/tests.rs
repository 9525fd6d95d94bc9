//! Names of the file of a store.

use std::fs;
use std::os::unix::fs::symlink;

use super::by_any_name;

#[test]
fn a_file_has_one_name_whichever_leads_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    fs::create_dir(top.join("real")).unwrap();
    symlink("real", top.join("alias")).unwrap();
    symlink("real/zeph.db", top.join("link.db")).unwrap();
    let expect = top.join("real/zeph.db");
    let names = ["real/zeph.db", "alias/zeph.db", "link.db"];
    let check = |names: &[&str]| {
        for name in names {
            assert_eq!(by_any_name(&top.join(name)), expect, "{name}");
        }
    };
    // A link to it leads nowhere before it is there.
    check(&names[..2]);
    fs::write(&expect, "").unwrap();
    check(&names);
    let deep = top.join("alias/a/b/zeph.db");
    assert_eq!(by_any_name(&deep), top.join("real/a/b/zeph.db"));
}
