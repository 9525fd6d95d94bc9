//! What a language server says, through the tools of an MCP server that the operator named (`tools.search.lsp`).
//!
//! It is believed nothing but places: each is taken only when it lies in a file that this call found itself, and what is shown of it is
//! read from that file. A server that fails, hangs or lies costs its layer, never the search.

mod places;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use zeph_plugin::server_tools::{self, CallErrorKind};

use crate::index::Index;
use crate::rank::{Layers, Query};
use crate::sys;
use crate::tool::Ground;
pub use places::{Told, told};

/// Lines behind the begin of a definition in which its name is looked for: attributes may stand before it.
const NAME_LINES: usize = 12;

/// What the operator set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Lsp {
    /// The MCP server; empty for none.
    pub server: String,
    /// Seconds for one question.
    pub timeout: u64,
    /// What it calls the first line and column.
    pub first_line: u32,
    /// What it is asked.
    pub requests: Vec<Request>,
}

/// One question.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    /// What is asked.
    pub kind: Kind,
    /// The server's name for its tool.
    pub tool: String,
    /// Each `ARGUMENT=VALUE`, with holes for the place.
    pub arguments: Vec<String>,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Places that define a name.
    Symbols,
    /// The definition of what stands at a place.
    Definition,
    /// The uses of what stands at a place.
    References,
}

/// A place in a file of the index; lines from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Below the tree's top.
    pub file: String,
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

/// What it said.
#[derive(Debug, Default)]
pub struct Answers {
    /// Definitions and uses, in the order in which they were told.
    pub spots: Vec<Spot>,
    /// Why something is missing, in a sentence.
    pub problem: Option<String>,
}

/// The place that is asked about.
struct Position {
    file: String,
    line: u32,
    column: u32,
}

impl Lsp {
    /// Asks what the layers of a search want to know about the name in the query. `known` are places that define it and places that use
    /// it, best first. A server that fails is asked nothing more; one that names no place at all for a name that stands in the code is
    /// reported, because bridges answer what went wrong as any other text.
    pub fn ask(
        &self,
        query: &Query,
        (index, ground): (&Index, &Ground),
        layers: Layers,
        known: &[Spot],
    ) -> Answers {
        let mut answers = Answers::default();
        let Some(name) = query.name().filter(|_| !self.server.is_empty()) else {
            return answers;
        };
        let (mut is_silent, mut standing) = (true, None);
        for kind in [Kind::Symbols, Kind::Definition, Kind::References] {
            let is_wanted = match kind {
                Kind::Symbols | Kind::Definition => layers.definitions,
                Kind::References => layers.references,
            };
            let mut requests = self.requests.iter();
            let request = requests.find(|request| request.kind == kind && is_wanted);
            let Some(request) = request else { continue };
            let spots = known.iter().chain(&answers.spots);
            let position = spots
                .into_iter()
                .find_map(|spot| position(spot, name, ground));
            let Some(arguments) = request.arguments(name, position.as_ref(), (self, ground)) else {
                continue;
            };
            match self.asked(request, &arguments) {
                Ok(told) => {
                    is_silent &= told.is_empty();
                    standing = standing.or(position);
                    answers.take(told, (index, ground), self.first_line);
                }
                Err(problem) => {
                    answers.problem = Some(problem);
                    return answers;
                }
            }
        }
        if let Some(Position { file, line, .. }) = standing.filter(|_| is_silent) {
            let line = line + 1;
            answers.problem = Some(format!(
                "the tools of `{}` named no place for `{name}`, which stands in {file}:{line}",
                self.server
            ));
        }
        answers
    }

    fn asked(&self, request: &Request, arguments: &Value) -> Result<Vec<Told>, String> {
        let timeout = Duration::from_secs(self.timeout);
        let answer = server_tools::call(&self.server, &request.tool, arguments, Some(timeout));
        match answer {
            Ok(answer) => Ok(told(answer.structured.as_deref(), &answer.text)),
            // It is what a server says that finds nothing, too.
            Err(error) if error.kind == CallErrorKind::Failed => Err(format!(
                "`{}` of `{}` failed: {}",
                request.tool, self.server, error.message
            )),
            Err(error) => Err(error.message),
        }
    }
}

impl Answers {
    /// Takes the places that lie in files of the index below the searched directory.
    fn take(&mut self, told: Vec<Told>, (index, ground): (&Index, &Ground), first_line: u32) {
        for one in told {
            let spot = places::resolved(&one, (index, ground), first_line);
            if let Some(spot) = spot.filter(|spot| !self.spots.contains(spot)) {
                self.spots.push(spot);
            }
        }
    }
}

impl Request {
    /// The arguments with everything put into their holes; none when there is no place to put in.
    fn arguments(
        &self,
        name: &str,
        position: Option<&Position>,
        (lsp, ground): (&Lsp, &Ground),
    ) -> Option<Value> {
        let mut filled = Map::new();
        for argument in &self.arguments {
            let (argument, value) = argument.split_once('=')?;
            let value = match serde_json::from_str(value) {
                Ok(plain @ (Value::Bool(_) | Value::Number(_))) => plain,
                _ => fill(value, name, position, (lsp, ground))?,
            };
            filled.insert(argument.to_owned(), value);
        }
        Some(Value::Object(filled))
    }
}

fn fill(
    text: &str,
    name: &str,
    position: Option<&Position>,
    (lsp, ground): (&Lsp, &Ground),
) -> Option<Value> {
    let needs_place = ["{path}", "{uri}", "{line}", "{column}"]
        .iter()
        .any(|hole| text.contains(hole));
    let Some(position) = position else {
        return (!needs_place).then(|| text.replace("{name}", name).into());
    };
    let (line, column) = (
        position.line + lsp.first_line,
        position.column + lsp.first_line,
    );
    match text {
        "{line}" => return Some(line.into()),
        "{column}" => return Some(column.into()),
        _ => {}
    }
    let path = ground.top.join(&position.file);
    let filled = text
        .replace("{name}", name)
        .replace("{line}", &line.to_string())
        .replace("{column}", &column.to_string())
        .replace("{uri}", &places::uri_of(&path))
        .replace("{path}", &path.to_string_lossy());
    Some(filled.into())
}

/// Where exactly the name stands in the first lines of a place; columns are counted in UTF-16, as language servers do.
fn position(spot: &Spot, name: &str, ground: &Ground) -> Option<Position> {
    let (_, text) = sys::read(Path::new(&ground.top.join(&spot.file))).ok()??;
    let lines = text.lines().enumerate();
    let lines = lines.skip(spot.start as usize).take(NAME_LINES);
    for (number, line) in lines.take_while(|(number, _)| *number <= spot.end as usize) {
        if let Some(at) = word_at(line, name) {
            let column = line[..at].encode_utf16().count();
            return Some(Position {
                file: spot.file.clone(),
                line: u32::try_from(number).ok()?,
                column: u32::try_from(column).ok()?,
            });
        }
    }
    None
}

/// Where a word begins in a line, and not inside of another.
fn word_at(line: &str, word: &str) -> Option<usize> {
    let is_inside = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
    })
}
