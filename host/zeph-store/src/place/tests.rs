//! Names of the file of a store.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{by_any_name, host_id};
use crate::error::StoreError;

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

#[test]
fn an_identity_that_is_there_is_only_read() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("data/zeph");
    let id = host_id(&own).unwrap();
    let entries = || fs::read_dir(&own).unwrap().count();
    assert_eq!((host_id(&own).unwrap(), entries()), (id, 1));
    // A folder in which nothing can be made, for root neither.
    let aside = Path::new("/proc/self/fd");
    let told = host_id(aside).unwrap_err();
    assert!(matches!(told, StoreError::HostId { .. }), "{told:?}");
    assert!(told.hint().unwrap().contains("XDG_DATA_HOME"));
    fs::write(own.join("host-id"), "none").unwrap();
    assert!(host_id(&own).is_err());
}
