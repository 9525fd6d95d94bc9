//! What counts against a tool, and when it is too much.

use proptest::prelude::*;

use super::{AnomalySettings, ToolOutcome, Window, WindowItem};
use crate::category::{ErrorCategory, ErrorPhase};
use crate::exit::CommandExit;
use crate::failure::{Blame, ToolFailure};

use ToolOutcome::{Arguable, Broken, Done};

const SETTINGS: AnomalySettings = AnomalySettings {
    window_size: 20,
    failure_threshold: 0.7,
    auto_block: true,
};

const PHASES: [ErrorPhase; 4] = [
    ErrorPhase::Setup,
    ErrorPhase::ParamHandling,
    ErrorPhase::Execution,
    ErrorPhase::ResultInterpretation,
];

fn item(outcome: ToolOutcome, tool: &str) -> WindowItem {
    WindowItem {
        outcome,
        tool: tool.to_owned(),
    }
}

fn window(outcomes: &[(usize, ToolOutcome)]) -> Window {
    let mut window = Window::default();
    for (n, outcome) in outcomes {
        for _ in 0..*n {
            window.push(item(*outcome, ""), SETTINGS.window_size);
        }
    }
    window
}

/// The number of failures of a critical window.
fn critical(outcomes: &[(usize, ToolOutcome)]) -> Option<usize> {
    let rate = window(outcomes).critical(&SETTINGS)?;
    Some(rate.n_failed)
}

#[test]
fn category_and_phase_say_whose_failure_it_is() {
    for category in ErrorCategory::ALL {
        for phase in PHASES {
            let failure = ToolFailure::new(category, phase, "x");
            let ran = matches!(
                phase,
                ErrorPhase::Execution | ErrorPhase::ResultInterpretation
            );
            let is_own = category == ErrorCategory::PermanentFailure && ran;
            let expect = match is_own {
                true => (Blame::Tool, Blame::ToolOrArguments),
                false => (Blame::Elsewhere, Blame::Elsewhere),
            };
            let found = (failure.blame(), failure.arguable().blame());
            assert_eq!(found, expect, "{category} {phase:?}");
        }
    }
}

#[test]
fn exit_codes_count_for_nothing() {
    for exit in [CommandExit::Code(1), CommandExit::Code(127)] {
        let failure = exit.failure().unwrap();
        assert_eq!(failure.blame(), Blame::Elsewhere);
        assert_eq!(ToolOutcome::of(Err(&failure), false), None);
    }
}

#[test]
fn what_tools_of_the_program_answer_is_no_failure_of_theirs() {
    let said = ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        "`a` does not exist",
    );
    let said = said.arguable();
    assert_eq!(ToolOutcome::of(Err(&said), true), Some(Done));
    assert_eq!(ToolOutcome::of(Err(&said), false), Some(Arguable));
    let crashed = ToolFailure {
        is_arguable: false,
        ..said
    };
    assert_eq!(ToolOutcome::of(Err(&crashed), true), Some(Broken));
    assert_eq!(ToolOutcome::of(Ok(()), false), Some(Done));
}

#[test]
fn more_than_the_threshold_is_critical() {
    assert_eq!(critical(&[(14, Broken)]), None, "exactly 70 %");
    assert_eq!(critical(&[(15, Broken)]), Some(15));
    assert_eq!(critical(&[(5, Done), (14, Broken), (1, Done)]), None);
    assert_eq!(critical(&[(1_000, Done), (15, Broken)]), Some(15));
    assert_eq!(critical(&[(10, Broken), (6, Done), (5, Broken)]), None);
    assert_eq!(critical(&[(20, Broken), (6, Done)]), None);
}

#[test]
fn arguments_alone_block_nothing_that_works() {
    assert_eq!(critical(&[(19, Arguable)]), None);
    assert_eq!(critical(&[(20, Arguable)]), Some(20));
    assert_eq!(critical(&[(19, Arguable), (1, Broken)]), Some(20));
    assert_eq!(critical(&[(10, Arguable), (1, Done), (18, Arguable)]), None);
    assert_eq!(
        critical(&[(10, Arguable), (1, Done), (20, Arguable)]),
        Some(20)
    );
    assert_eq!(critical(&[(1, Done), (14, Broken), (5, Arguable)]), None);
}

#[test]
fn a_threshold_of_one_is_never_exceeded() {
    let never = AnomalySettings {
        failure_threshold: 1.0,
        ..SETTINGS
    };
    assert!(window(&[(20, Broken)]).critical(&never).is_none());
}

#[test]
fn an_owner_is_not_told_from_its_one_tool() {
    let mut window = Window::default();
    (0..3).for_each(|_| window.push(item(Broken, "a"), 20));
    window.push(item(Done, "b"), 20);
    assert!(!window.has_several());
    window.push(item(Arguable, "b"), 20);
    assert!(window.has_several());
}

proptest! {
    #[test]
    fn a_window_is_bounded_and_forgets(outcomes in prop::collection::vec(0..3_u8, 0..200), size in 1..30_usize) {
        let mut window = Window::default();
        for outcome in &outcomes {
            let outcome = [Done, Arguable, Broken][usize::from(*outcome)];
            window.push(item(outcome, ""), size);
            prop_assert!(window.0.len() <= size);
        }
        (0..size).for_each(|_| window.push(item(Done, ""), size));
        prop_assert!(window.is_empty());
    }

    #[test]
    fn successes_block_nothing(outcomes in prop::collection::vec(0..2_u8, 0..60)) {
        let mut window = Window::default();
        for outcome in &outcomes {
            window.push(item([Done, Broken][usize::from(*outcome)], ""), 20);
        }
        let n_broken = outcomes.iter().rev().take(20).filter(|outcome| **outcome == 1).count();
        prop_assert_eq!(window.critical(&SETTINGS).is_some(), n_broken > 14);
    }
}
