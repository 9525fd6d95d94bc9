//! What a failed command is called, and what its call says.

use super::CommandExit;
use crate::category::ErrorCategory;

#[test]
fn every_end_but_success_is_a_failure_that_says_how_it_ended() {
    assert_eq!(CommandExit::Code(0).failure(), None);
    let table = [
        (CommandExit::Code(1), Some(1), 1, "exit code 1"),
        (CommandExit::Code(126), Some(126), 126, "cannot be executed"),
        (CommandExit::Code(127), Some(127), 127, "was not found"),
        (CommandExit::Signal(9), None, 137, "signal SIGKILL"),
        (CommandExit::Signal(40), None, 168, "signal 40"),
        (CommandExit::Unknown, None, 1, "not known"),
    ];
    for (exit, code, shell_code, words) in table {
        let failure = exit.failure().expect("it failed");
        assert_eq!(failure.category, ErrorCategory::PermanentFailure);
        assert_eq!(failure.exit, Some(exit));
        assert!(failure.message.contains(words), "{failure:?}");
        assert_eq!(exit.code(), code);
        assert_eq!(exit.shell_code(), shell_code);
        assert_eq!(failure.feedback().lines().count(), 5);
        assert!(!failure.feedback().contains("not available"), "{failure:?}");
    }
}
