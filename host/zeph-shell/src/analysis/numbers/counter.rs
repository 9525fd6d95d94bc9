//! Commands that print nothing but numbers, whatever they read.

use super::super::brace;
use super::super::reader;
use super::super::syntax::{CommandShape, Dialect, List};
use super::super::value::Value;
use super::NumberOrigin;

/// Whether a substitution prints nothing but numbers.
pub(super) fn prints_number(lists: &[List]) -> bool {
    let [list] = lists else { return false };
    let [pipeline] = list.pipelines.as_slice() else {
        return false;
    };
    let Some(CommandShape::Simple { words, assignments }) =
        pipeline.commands.last().map(|c| &c.shape)
    else {
        return false;
    };
    let words = words.iter().flat_map(brace::expand);
    let values: Vec<Value> = words.map(|word| Value::of(&word)).collect();
    let texts: Option<Vec<&str>> = values.iter().map(Value::as_literal).collect();
    assignments.is_empty() && texts.is_some_and(|texts| is_counter(&texts))
}

/// Whether a command prints nothing but numbers, whatever it reads.
fn is_counter(words: &[&str]) -> bool {
    let is_count = |option: &&str| {
        option
            .strip_prefix('-')
            .is_some_and(|o| !o.is_empty() && "clmwLi".contains(o))
    };
    match words {
        ["nproc", ..] | ["true" | ":"] => true,
        ["wc", options @ ..] => !options.is_empty() && options.iter().all(is_count),
        ["seq", numbers @ ..] => numbers.iter().all(|number| is_decimal(number)),
        ["date", options @ ..] => {
            let formats = options.iter().filter_map(|option| option.strip_prefix('+'));
            let mut formats = formats.peekable();
            let numeric = |format: &str| {
                let mut letters = format.split('%').skip(1);
                format.starts_with('%')
                    && letters.all(|l| {
                        [
                            "s", "N", "Y", "m", "d", "H", "M", "S", "j", "u", "w", "V", "y", "3N",
                        ]
                        .contains(&l)
                    })
            };
            formats.peek().is_some() && formats.all(numeric)
        }
        ["id", "-u" | "-g"] => true,
        [
            "stat",
            "-c",
            "%s" | "%Y" | "%X" | "%Z" | "%a" | "%h" | "%i",
            ..,
        ] => true,
        ["echo", numbers @ ..] => numbers.iter().all(|number| is_decimal(number)),
        ["grep", options @ ..] => {
            // With several files their names are printed too.
            let operands = options
                .iter()
                .filter(|option| !option.starts_with('-'))
                .count();
            options
                .first()
                .is_some_and(|o| is_count(o) && o.contains('c'))
                && operands <= 2
                && options
                    .iter()
                    .skip(1)
                    .all(|option| !option.starts_with('-'))
        }
        _ => false,
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Where what a substitution prints comes from, given its text without `$(` and `)`.
pub(super) fn of_substitution(text: &str) -> NumberOrigin {
    match reader::read(text, Dialect::Bash, reader::DEPTH_MAX / 2) {
        Ok(script) if prints_number(std::slice::from_ref(&script.list)) => NumberOrigin::default(),
        _ => NumberOrigin::outside(),
    }
}
