use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use zeph_core::user::{ToolUser, UserFacts, run_as};

use super::{facts, folder, may_become, private, system};

/// The user that every system has besides root; none where this process may not become it.
fn nobody() -> Option<UserFacts> {
    let nobody = facts("nobody").unwrap();
    match system::has_privilege() {
        true => Some(nobody),
        false => {
            eprintln!("skipped: this process may not change users");
            None
        }
    }
}

#[test]
fn an_unknown_user_and_root_are_refused() {
    let unknown = facts("zeph-host-no-such-user").unwrap_err();
    assert!(unknown.contains("no such user"), "{unknown}");
    let root = may_become(&facts("root").unwrap()).unwrap_err();
    assert!(root.contains("name another user"), "{root}");
    if !system::has_privilege() {
        let refused = may_become(&facts("nobody").unwrap()).unwrap_err();
        assert!(refused.contains("sudo -u nobody -H zeph-host"), "{refused}");
    }
}

#[test]
fn a_thread_that_became_the_user_has_that_users_rights_and_no_other_thread_does() {
    let Some(nobody) = nobody() else { return };
    let uid = nobody.uid;
    let user = ToolUser::new(nobody);
    let own = rustix::process::geteuid();
    let hidden = tempfile::NamedTempFile::new().unwrap();
    let path = hidden.path();
    let opened = user.run(|| {
        let ids = (rustix::process::getuid(), rustix::process::geteuid());
        (
            ids.0.as_raw(),
            ids.1.as_raw(),
            std::fs::File::open(path).is_ok(),
        )
    });
    assert_eq!(opened.unwrap(), (uid, uid, false));
    // A thread that the user's thread starts is the user's too, and cannot come back.
    let back = user.run(|| {
        let root = rustix::process::Uid::ROOT;
        let inner = std::thread::spawn(move || {
            rustix::thread::set_thread_res_uid(root, root, root).is_err()
        });
        inner.join().unwrap()
    });
    assert!(back.unwrap());
    assert_eq!(rustix::process::geteuid(), own);
    assert!(std::fs::File::open(path).is_ok());
}

#[test]
fn a_panic_of_the_work_is_the_callers() {
    let Some(nobody) = nobody() else { return };
    let user = ToolUser::new(nobody);
    let caught = std::panic::catch_unwind(|| user.run(|| panic!("as expected")));
    assert!(caught.is_err());
    assert_eq!(run_as(None, || 1).unwrap(), 1);
}

#[test]
fn the_folder_of_a_user_is_the_users_alone() {
    let Some(nobody) = nobody() else { return };
    let user = ToolUser::new(nobody.clone());
    let made = user.run(|| folder(&nobody)).unwrap().unwrap();
    let about = made.metadata().unwrap();
    assert_eq!((about.uid(), about.mode() & 0o777), (nobody.uid, 0o700));
    // One that others may write to, or that is another user's, is none.
    let open = tempfile::tempdir().unwrap();
    assert_eq!(private(open.path(), nobody.uid), None);
    let own = rustix::process::geteuid().as_raw();
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(private(open.path(), own), None);
    assert_eq!(private(Path::new("/proc/none"), own), None);
}
