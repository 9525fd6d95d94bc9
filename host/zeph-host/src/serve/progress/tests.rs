use tokio::time::Instant;

use super::{BURST, Budget, PERIOD, next, of_command};

#[test]
fn progress_only_grows() {
    assert_eq!(next(0.0, Some(0.0)), Some(0.0));
    assert_eq!(next(0.0, Some(50.0)), Some(50.0));
    assert_eq!(next(50.0, Some(50.0)), None);
    assert_eq!(next(50.0, Some(10.0)), None);
    assert_eq!(next(50.0, None), Some(51.0));
}

#[test]
fn a_command_is_told_of_by_its_last_line() {
    let message = of_command("one\ntwo\u{1b}[2J\n\n", 9).unwrap();
    assert_eq!(message.text, "two [2J");
    assert_eq!(message.completed, Some(9.0));
    assert_eq!(of_command("\n \n", 3), None);
}

#[test]
fn a_flood_is_thinned_out() {
    let start = Instant::now();
    let mut budget = Budget::new(start);
    let mut n_at = |now| {
        let at_once = std::iter::repeat_with(|| budget.take(now)).take_while(|has_some| *has_some);
        u32::try_from(at_once.count()).unwrap()
    };
    assert_eq!(n_at(start), BURST);
    assert_eq!(n_at(start + PERIOD / 2), 0);
    assert_eq!(n_at(start + PERIOD), 1);
    assert_eq!(n_at(start + PERIOD * 4), 3);
    assert_eq!(n_at(start + PERIOD * 1_000), BURST);
}
