//! `zeph-host selftest`: which layers of isolation hold on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_selftest::{CheckResult, ProductParts, Wall};

use super::args::Selftest;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::known_secrets::KnownSecrets;
use crate::network;
use crate::run::render::{BOLD, DIM, RED, YELLOW, duration, escape, push_styled};
use crate::shell::exits;

/// What the self-test is handed: what joins the crates it cannot import.
const PARTS: ProductParts = ProductParts {
    exit: network::adapter,
    outlets: exits::outlets,
    secrets: |folder, name, value| Ok(Arc::new(KnownSecrets::of_one(folder, name, value)?)),
};

/// Runs the command.
pub(super) fn run(context: &Context, options: Selftest) -> Result<Exit, CliError> {
    let search_path = zeph_config::variable("PATH").unwrap_or_default();
    let search_path: Vec<PathBuf> = std::env::split_paths(&search_path).collect();
    let mut closed = None;
    let walls = context::block_on_threads(async {
        let tell = |wall: &Wall| {
            if !options.json.json && closed.is_none() {
                closed = out::styled(&line(wall)).err();
            }
        };
        zeph_selftest::run(&search_path, PARTS, tell)
            .await
            .map_err(|error| CliError::internal("the self-test cannot run").because(error))
    })?;
    if let Some(error) = closed {
        return Err(error);
    }
    match options.json.json {
        true => out::json(&walls)?,
        false => summary(context, &walls),
    }
    Ok(exit(&walls))
}

/// An unavailable layer is not a failure: without the sandbox of commands, no command runs.
fn exit(walls: &[Wall]) -> Exit {
    let is_broken = |wall: &Wall| matches!(wall.verdict, CheckResult::Broken { .. });
    match walls.iter().any(is_broken) {
        true => Exit::Failure,
        false => Exit::Success,
    }
}

/// Two lines: the verdict with the layer, and what was tried.
fn line(wall: &Wall) -> String {
    let mut shown = String::new();
    let (style, verdict, why) = match &wall.verdict {
        CheckResult::Holds => (BOLD, "holds", None),
        CheckResult::Broken { why } => (RED, "DOES NOT HOLD", Some(why)),
        CheckResult::Unavailable { why } => (YELLOW, "not available here", Some(why)),
    };
    push_styled(&mut shown, style, verdict);
    shown.push_str(&format!("  {}", wall.name));
    if let Some(why) = why {
        shown.push_str(&format!(": {}", escape(why)));
    }
    shown.push('\n');
    let tried = format!("    {} · {}", wall.tried, duration(wall.duration));
    push_styled(&mut shown, DIM, &escape(&tried));
    shown.push('\n');
    shown
}

fn summary(context: &Context, walls: &[Wall]) {
    if context.quiet {
        return;
    }
    let count =
        |is: fn(&CheckResult) -> bool| walls.iter().filter(|wall| is(&wall.verdict)).count();
    let n_broken = count(|verdict| matches!(verdict, CheckResult::Broken { .. }));
    let n_missing = count(|verdict| matches!(verdict, CheckResult::Unavailable { .. }));
    let n_hold = walls.len() - n_broken - n_missing;
    out::remark(&format!(
        "{n_hold} checks hold, {n_broken} are broken, {n_missing} are unavailable here"
    ));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zeph_selftest::{CheckResult, Wall};

    use super::{exit, line};
    use crate::cli::exit::Exit;

    fn wall(verdict: CheckResult) -> Wall {
        Wall {
            name: "time",
            tried: "loops",
            verdict,
            duration: Duration::from_millis(12),
        }
    }

    #[test]
    fn one_broken_wall_is_a_failure() {
        let broken = CheckResult::Broken {
            why: "it\u{1b}[2J got out".to_owned(),
        };
        let missing = CheckResult::Unavailable {
            why: "no kernel".to_owned(),
        };
        assert_eq!(
            exit(&[wall(CheckResult::Holds), wall(missing)]),
            Exit::Success
        );
        assert_eq!(
            exit(&[wall(CheckResult::Holds), wall(broken.clone())]),
            Exit::Failure
        );
        let shown = line(&wall(broken));
        assert!(shown.contains("DOES NOT HOLD") && shown.contains("got out"));
        assert!(!shown.contains("\u{1b}[2J"), "{shown}");
    }
}
