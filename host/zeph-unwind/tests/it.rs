//! A program whose tables were packed unwinds: this one packs itself, and starts what it made.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use zeph_unwind::{PackError, pack, unpack_on_panic};

/// How hard to pack: the test has to be fast.
const LEVEL: i32 = 1;

/// What the tests below run in another process, unless that is this one.
const INSIDE: &str = "ZEPH_UNWIND_INSIDE";

#[expect(
    clippy::disallowed_methods,
    reason = "a test starts itself as a program"
)]
fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test starts itself as a program"
)]
fn run(program: &Path, test: &str) -> Output {
    Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

fn itself() -> Vec<u8> {
    fs::read(std::env::current_exe().unwrap()).unwrap()
}

/// Runs a test of this program in one whose tables are packed.
fn run_packed(test: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("packed");
    let (unpacked, packed) = (itself(), pack(&itself(), LEVEL).unwrap());
    assert!(packed.len() + (64 << 10) < unpacked.len());
    fs::write(&program, packed).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    run(&program, test)
}

/// Says so when it is dropped.
struct Dropped(&'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        let mut out = std::io::stdout();
        writeln!(out, "dropped {}", self.0).unwrap();
    }
}

#[test]
fn panics_of_threads_are_caught() {
    if !is_inside() {
        let output = run_packed("panics_of_threads_are_caught");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains("dropped first"), "{said}");
        assert!(said.contains("dropped second"), "{said}");
        return;
    }
    unpack_on_panic();
    let panics = |name| {
        thread::spawn(move || {
            let _dropped = Dropped(name);
            panic!("as expected");
        })
    };
    for thread in [panics("first"), panics("second")] {
        thread.join().unwrap_err();
    }
}

/// Without the hook nothing unwinds: the process ends at once, and does not read what is not there.
#[test]
fn packed_tables_are_no_tables() {
    if !is_inside() {
        let output = run_packed("packed_tables_are_no_tables");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(said.contains("failed to initiate panic"), "{said}");
        return;
    }
    // Backtraces find nothing.
    drop(std::backtrace::Backtrace::force_capture());
    drop(std::panic::catch_unwind(|| panic!("as expected")));
}

#[test]
fn a_program_that_is_not_packed_unwinds_as_ever() {
    if !is_inside() {
        let program = std::env::current_exe().unwrap();
        let output = run(&program, "a_program_that_is_not_packed_unwinds_as_ever");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    unpack_on_panic();
    std::panic::catch_unwind(|| panic!("as expected")).unwrap_err();
}

#[test]
fn the_same_program_packs_to_the_same_bytes() {
    let program = itself();
    assert!(pack(&program, LEVEL).unwrap() == pack(&program, LEVEL).unwrap());
}

#[test]
fn what_has_no_tables_is_refused() {
    assert!(matches!(
        pack(b"#!/bin/sh\n", LEVEL),
        Err(PackError::NotAProgram(_))
    ));
    assert!(matches!(
        pack(&itself()[..64], LEVEL),
        Err(PackError::NotAProgram(_))
    ));
    let packed = pack(&itself(), LEVEL).unwrap();
    assert!(matches!(pack(&packed, LEVEL), Err(PackError::NoTables)));
}
