//! The one way for a test to leave something out: with a reason that is seen. What a machine only lacks is no reason, there the test fails.

/// Prints why a test, or a part of it, does not concern this machine or this user.
pub(crate) fn leave_out(why: &str) {
    use std::io::Write as _;
    // Past the runner, which would keep it to itself.
    let line = format!("left out: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).ok();
}
