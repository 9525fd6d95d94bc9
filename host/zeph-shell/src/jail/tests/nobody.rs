//! The same walls for an ordinary user, where the tests are run by root.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// An account that owns nothing.
const NOBODY: u32 = 65534;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests run themselves once more"
)]
fn the_walls_hold_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: these tests are run by an ordinary user already");
        return;
    }
    let program = std::env::current_exe().unwrap();
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
        .output();
    match output {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && told.contains("walls::limits_hold ... ok"),
                "{told}"
            );
        }
        Err(error) => println!(
            "not run: {} cannot be started by others: {error}",
            program.display()
        ),
    }
}
