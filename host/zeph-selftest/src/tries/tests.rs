use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;

use super::{Try, fails, in_time, says};
use crate::CheckResult;

/// `expect` is a part of why the wall does not hold; none is a wall that holds.
#[track_caller]
fn check(one: &Try, result: Result<RawOutput, ToolFailure>, expect: &str) {
    match one.judge("`guest` a", &result) {
        CheckResult::Holds => assert!(expect.is_empty(), "holds; expected `{expect}`"),
        CheckResult::Broken { why } => {
            assert!(!expect.is_empty() && why.contains(expect), "{why}");
        }
        CheckResult::Unavailable { why } => panic!("{why}"),
    }
}

fn failed(category: ErrorCategory, message: &str) -> Result<RawOutput, ToolFailure> {
    Err(ToolFailure::new(category, ErrorPhase::Execution, message))
}

#[test]
fn a_broken_wall_shows() {
    let time = in_time("spin", "a");
    check(
        &time,
        failed(ErrorCategory::Timeout, "(`limits.cpu_secs`)"),
        "",
    );
    check(
        &time,
        failed(ErrorCategory::Timeout, "some day"),
        "ended with `some day`",
    );
    check(
        &time,
        failed(ErrorCategory::PermanentFailure, "limits."),
        "ended as permanent_failure: limits.",
    );
    check(
        &time,
        Ok(RawOutput::text("escaped\nfurther")),
        "succeeded with `escaped further`",
    );

    let memory = fails("memory", "a", "limits.memory_bytes");
    check(
        &memory,
        failed(
            ErrorCategory::PermanentFailure,
            "more (`limits.memory_bytes`)",
        ),
        "",
    );
    check(
        &memory,
        failed(ErrorCategory::PermanentFailure, "the plugin crashed"),
        "crashed",
    );
    check(
        &memory,
        failed(ErrorCategory::Timeout, "limits.memory_bytes"),
        "ended as timeout",
    );

    let network = says("network", "a", "010101");
    check(&network, Ok(RawOutput::text("010101")), "");
    check(
        &network,
        Ok(RawOutput::text("990101")),
        "succeeded with `990101`",
    );
    check(
        &network,
        failed(ErrorCategory::PermanentFailure, "x"),
        "ended as permanent_failure",
    );
}
