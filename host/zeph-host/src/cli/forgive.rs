//! `zeph-host forgive`: lets a learned sequence of calls happen again, or lists them.

use serde_json::{Value, json};
use zeph_core::failure::one_line;
use zeph_store::{SequenceState, Store, StoredSequence};

use super::args::Forgive;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use super::{out, time};
use crate::governance;
use crate::run::page::Page;
use crate::run::table;

/// Characters of a sequence in the list.
const WORDS_CHARS_MAX: usize = 120;

/// Runs the command.
pub(super) fn run(context: &Context, options: &Forgive) -> Result<Exit, CliError> {
    let store = context.store(&context.config()?)?;
    context::block_on(async {
        match options.sequence {
            Some(id) => forgive(&store, id, options.json.json).await,
            None => list(&store, options.json.json).await,
        }
    })
}

async fn forgive(store: &Store, id: i64, json: bool) -> Result<Exit, CliError> {
    if !governance::forget(store, id).await? {
        return Err(CliError::user(format!("no learned sequence `{id}` counts"))
            .hint("`zeph-host forgive` lists them"));
    }
    match json {
        true => print_json(&json!({ "forgiven": id })),
        false => Page::new()
            .line(
                0,
                &format!("forgiven: sequence {id} no longer blocks anything"),
            )
            .print(),
    }?;
    Ok(Exit::Success)
}

async fn list(store: &Store, json: bool) -> Result<Exit, CliError> {
    let sequences = store.list_sequences().await?;
    match json {
        true => out::json(&sequences.iter().map(as_json).collect::<Vec<Value>>()),
        false if sequences.is_empty() => Page::new().line(0, "nothing was learned").print(),
        false => out::styled(&as_table(&sequences)),
    }?;
    Ok(Exit::Success)
}

fn as_json(sequence: &StoredSequence) -> Value {
    let mut value = json!(sequence);
    value["at"] = json!(time::shown(sequence.at_ms));
    if let Value::Object(members) = &mut value {
        members.remove("at_ms");
    }
    value
}

fn as_table(sequences: &[StoredSequence]) -> String {
    let rows: Vec<[String; 5]> = sequences
        .iter()
        .map(|sequence| {
            let state = match sequence.state {
                SequenceState::Candidate => "candidate",
                SequenceState::Learned => "learned",
                SequenceState::Forgiven => "forgiven",
            };
            [
                sequence.id.to_string(),
                state.to_owned(),
                sequence.cause.label().to_owned(),
                time::shown(sequence.at_ms),
                one_line(&sequence.words.join(" "), WORDS_CHARS_MAX),
            ]
        })
        .collect();
    table::render(["ID", "STATE", "BECAUSE", "SINCE", "WORDS"], &rows, None)
}
