//! Omits lines that begin with one of the given words.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Kind, Selection, Strategy};

pub const KIND: Kind = Kind {
    name: "leave_out",
    description: "Leaves out lines that begin with one of the given words, and says how many there were.",
    schema: || schemars::schema_for!(Options).to_value().to_string(),
    create,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The words.
    begins: Vec<String>,
}

fn create(options: &str) -> Result<Strategy, String> {
    let Options { begins } = serde_json::from_str(options).map_err(|error| error.to_string())?;
    if begins.is_empty() || begins.iter().any(String::is_empty) {
        return Err("`begins` is a list of words".to_owned());
    }
    Ok(Box::new(move |text| apply(&begins, text)))
}

fn apply(begins: &[String], text: &str) -> Selection {
    let mut selection = Selection {
        kept: Vec::new(),
        notes: Vec::new(),
        is_known: false,
    };
    let mut n_left_out = 0;
    for (line_idx, line) in text.lines().enumerate() {
        if begins.iter().any(|word| line.starts_with(word)) {
            n_left_out += 1;
            continue;
        }
        match selection.kept.last_mut() {
            Some(last) if last.end == line_idx => last.end += 1,
            _ => selection.kept.push(line_idx..line_idx + 1),
        }
    }
    // The strategy is not meant for an output without such lines: the host shows it unchanged.
    selection.is_known = n_left_out > 0;
    let noun = if n_left_out == 1 { "line" } else { "lines" };
    selection.notes.push(format!("{n_left_out} {noun} omitted"));
    selection
}
