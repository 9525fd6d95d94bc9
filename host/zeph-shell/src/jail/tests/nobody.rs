//! The same walls for an ordinary user, where the tests are run by root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::left_out::leave_out;

/// An account that owns nothing.
const NOBODY: u32 = 65534;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests run themselves once more"
)]
fn the_walls_hold_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return leave_out("these tests are run by an ordinary user already");
    }
    // A copy where others may start it.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new(&program)
        .args(["jail::tests::walls", "jail::tests::git", "--test-threads=1"])
        .env_clear()
        .envs([
            ("HOME", "/nonexistent"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("walls::limits_hold ... ok"),
        "{told}"
    );
}
