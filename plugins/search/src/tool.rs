//! The tool: brings the index up to date, and searches it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::{Context, Kind as ToolKind, Output, Tool, ToolError, settings};

use crate::answer::{Answer, Bounds, Places, SearchState, answer};
use crate::glob::Glob;
use crate::index::{self, Index, IndexedFile};
use crate::language::{LANGUAGES, Reading, of_path};
use crate::lsp::{Lsp, Spot};
use crate::outline;
use crate::passages;
use crate::pattern::Pattern;
use crate::rank::{self, Hit, Layer, Layers, Other, Query};
use crate::refresh::{Freshness, refresh};
use crate::sys;

/// Part of the call's time for reading files that changed; the rest is for the search and for writing the index.
const REFRESH_PART: f64 = 0.6;
/// Part of the call's time after which no more vectors are asked for.
const EMBEDDING_PART: f64 = 0.8;
/// Places of definitions and of uses from which a language server is asked.
const KNOWN_MAX: usize = 8;
/// Longest query, in bytes.
const QUERY_MAX: usize = 2_000;

/// The arguments of `search_code`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// A name, words, or for `pattern` code with holes: `$NAME` for any one node, `$$$ARGS` for any number. Empty: only bring the index
    /// up to date. Required unless `symbol` is given.
    #[serde(default)]
    pub query: Option<String>,
    /// The name of a function, type or the like. Without `query`, only its definitions are looked for.
    #[serde(default)]
    pub symbol: Option<String>,
    /// What to look for. `any`: definitions, references and words together.
    #[serde(default)]
    pub kind: Kind,
    /// The directory to search, absolute or relative to the working directory.
    #[serde(default = "here")]
    pub path: String,
    /// Search only files that match this glob: `*.py` matches names at any depth, `src/**/*.{ts,tsx}` paths relative to `path`.
    #[serde(default)]
    pub file_pattern: Option<String>,
    /// Whether the places that use a name are results of `any` and `definition` too. Without it, they are of `any` with a `query`.
    #[serde(default)]
    pub include_references: Option<bool>,
    /// Most results.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    pub max_results: u32,
    /// Most tokens of the answer, roughly; results are shown whole or not at all.
    #[serde(default = "four_thousand")]
    #[schemars(range(min = 100, max = 50_000))]
    pub max_tokens: u32,
    /// Whether files that changed are read first. If not, they are not searched, and the answer says how many they are.
    #[serde(default = "yes")]
    pub refresh: bool,
}

/// What to look for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Definitions, references and words together.
    #[default]
    Any,
    /// Where something is defined.
    Definition,
    /// Where a name is used.
    Reference,
    /// Words of identifiers, comments and texts.
    Text,
    /// Code of that form.
    Pattern,
}

fn here() -> String {
    ".".to_owned()
}

fn ten() -> u32 {
    10
}

fn four_thousand() -> u32 {
    4_000
}

fn yes() -> bool {
    true
}

/// What the host says: the folder for the index, and `tools.search`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    cache: Option<PathBuf>,
    /// What the operator set of language servers.
    lsp: Lsp,
}

/// The plugin's tools.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("search_code", |args: Args, context| run(&args, context))
            .title("Search code")
            .describe(
                "Finds code by name, by words or by form: definitions (functions, types, …), the places where a name is used, parts of \
                 files whose identifiers and comments have the words of the query or, where the operator allows it, its meaning, and with `pattern` code of one form, such as \
                 `foo($A, $$$REST)`. Knows Rust, Python, TypeScript, JavaScript, Go, C, C++ and Java; other text is searched by its \
                 words. Use it before grep when you do not know where something is.",
            )
            .kind(ToolKind::Search)
            .read_only()
            .returns::<Answer>(),
    ]
}

impl Args {
    /// What is looked for, in one text.
    ///
    /// Errors: it is missing or too long.
    fn text(&self) -> Result<String, ToolError> {
        let given = [&self.query, &self.symbol];
        let given: Vec<&str> = given.into_iter().flatten().map(String::as_str).collect();
        if given.is_empty() {
            return Err(ToolError::invalid_parameters(
                "missing required argument `query`: give `query`, `symbol` or both",
            ));
        }
        let text = given.join(" ");
        match text.len() > QUERY_MAX {
            true => Err(ToolError::invalid_parameters(format!(
                "`query` is longer than {QUERY_MAX} bytes"
            ))),
            false => Ok(text),
        }
    }

    /// Whether nothing is looked for but a name.
    fn is_symbol_alone(&self) -> bool {
        let query = self.query.as_deref().unwrap_or_default();
        self.symbol.is_some() && query.trim().is_empty()
    }

    fn layers(&self) -> Layers {
        let is_any = self.kind == Kind::Any;
        let has_all = is_any && !self.is_symbol_alone();
        let references = match self.kind {
            Kind::Any | Kind::Definition => self.include_references.unwrap_or(has_all),
            kind => kind == Kind::Reference,
        };
        Layers {
            definitions: is_any || self.kind == Kind::Definition,
            references,
            text: has_all || self.kind == Kind::Text,
        }
    }

    /// `text` as the layers look for it.
    fn query(&self, text: &str) -> Query {
        let query = Query::of(text);
        match &self.symbol {
            Some(symbol) => query.named(symbol),
            None => query,
        }
    }
}

fn run(args: &Args, context: &Context) -> Result<Output, ToolError> {
    let text = args.text()?;
    let working = sys::working_directory();
    let (top, below) = place(&working, &args.path)?;
    let searched = top.join(&below).to_string_lossy().into_owned();
    let files_of = args.file_pattern.as_deref();
    let files_of = files_of.map(|pattern| Glob::parse(pattern, &searched));
    let files_of = files_of.transpose()?;
    let Settings { cache, lsp } = settings::<Settings>()?;
    let file = cache.map(|folder| index::file_of(&folder, &top));
    let time = Duration::from_millis(context.remaining_ms);
    let until = Instant::now() + time.mul_f64(EMBEDDING_PART);
    let ground = Ground {
        top,
        below,
        file,
        time: args.refresh.then(|| time.mul_f64(REFRESH_PART)),
    };
    let (mut index, files) = ground.index(&args.path)?;
    let mut notes = Vec::new();
    if let Some(glob) = files_of {
        let is_meant = |file: &IndexedFile| glob.matches(&file.path, &ground.below);
        index.files.retain(is_meant);
        let fits_none = index.files.is_empty();
        notes.extend(fits_none.then(|| "No file fits `file_pattern`.".to_owned()));
    }
    let mut state = SearchState {
        files,
        notes,
        ..SearchState::default()
    };
    let until = args.refresh.then_some(until);
    let asked = (args, text.as_str());
    let hits = hits(asked, (&index, &ground), (&lsp, until), &mut state)?;
    let bounds = Bounds {
        results: args.max_results as usize,
        tokens: args.max_tokens as usize,
    };
    let places = Places {
        top: &ground.top,
        working: &working,
    };
    Ok(answer(&hits, places, bounds, state))
}

/// The granted directory that holds `path`, and where `path` lies in it.
///
/// Errors: it lies in none.
fn place(working: &Path, path: &str) -> Result<(PathBuf, String), ToolError> {
    let mut full = PathBuf::new();
    for part in working.join(path).components() {
        match part {
            std::path::Component::ParentDir => {
                full.pop();
            }
            std::path::Component::CurDir => {}
            other => full.push(other),
        }
    }
    let mut roots = sys::roots();
    roots.sort_by_key(|root| std::cmp::Reverse(root.as_os_str().len()));
    let top = roots.into_iter().find(|root| full.starts_with(root));
    let Some(top) = top else {
        return Err(ToolError::denied(format!(
            "`{path}` is outside the directories this tool may read"
        )));
    };
    let below = full.strip_prefix(&top).unwrap_or(&full);
    let below = below.to_string_lossy().into_owned();
    Ok((top, below))
}

/// What a call searches.
#[derive(Debug)]
pub struct Ground {
    /// A granted directory.
    pub top: PathBuf,
    /// What of it is searched.
    pub below: String,
    /// Where the index is kept; without one it is made for this call.
    pub file: Option<PathBuf>,
    /// How long files may be read; none: not at all.
    pub time: Option<Duration>,
}

impl Ground {
    /// The index, up to date as far as there was time, and kept when it changed.
    ///
    /// Errors: there is no such directory.
    pub fn index(&self, shown: &str) -> Result<(Index, Freshness), ToolError> {
        let mut index = self.file.as_deref().map(Index::load).unwrap_or_default();
        let state = refresh(&mut index, &self.top, &self.below, self.time).map_err(|error| {
            let message = match error.kind() {
                std::io::ErrorKind::NotFound => format!("`{shown}` does not exist"),
                std::io::ErrorKind::NotADirectory => {
                    format!("`{shown}` is not a directory; `path` names the directory to search")
                }
                _ => format!("`{shown}` cannot be listed: {error}"),
            };
            ToolError::io(error.kind(), message)
        })?;
        if let Some(file) = self
            .file
            .as_deref()
            .filter(|_| state.has_changed && self.time.is_some())
            && let Err(error) = index.save(file)
        {
            zeph_plugin::log::warn(&format!("the index cannot be kept: {error}"));
        }
        Ok((index, state))
    }
}

fn hits(
    (args, given): (&Args, &str),
    (index, ground): (&Index, &Ground),
    (lsp, until): (&Lsp, Option<Instant>),
    state: &mut SearchState,
) -> Result<Vec<Hit>, ToolError> {
    let text = given.trim();
    if args.kind == Kind::Pattern && !text.is_empty() {
        return pattern_hits(given, index, ground);
    }
    let layers = args.layers();
    let mut others = Vec::new();
    if layers.text {
        let meaning = passages::search(index, ground, text, until);
        state.coverage = meaning.coverage;
        let problem = meaning.problem;
        state
            .notes
            .extend(problem.map(|why| format!("Not searched by meaning: {why}.")));
        others.push(Other {
            layer: Layer::Semantic,
            places: meaning.near,
        });
    }
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let query = args.query(given);
    let known = match lsp.server.is_empty() {
        true => Vec::new(),
        false => known(index, ground, &query),
    };
    let answers = lsp.ask(&query, (index, ground), layers, &known);
    let problem = answers.problem;
    state
        .notes
        .extend(problem.map(|why| format!("The language server was not of help: {why}.")));
    let spots = answers.spots.into_iter();
    others.push(Other {
        layer: Layer::Lsp,
        places: spots
            .map(|spot| (spot.file, spot.start, spot.end))
            .collect(),
    });
    Ok(rank::search(
        index,
        &ground.below,
        &query,
        (layers, &others),
    ))
}

/// Places that define the name in the query, and places that use it: what a language server is asked about.
fn known(index: &Index, ground: &Ground, query: &Query) -> Vec<Spot> {
    let layers = Layers {
        definitions: true,
        references: true,
        text: false,
    };
    let mut hits = rank::search(index, &ground.below, query, (layers, &[]));
    hits.sort_by_key(|hit| hit.layer);
    hits.truncate(KNOWN_MAX);
    let spot = |hit: Hit| Spot {
        file: hit.file,
        start: hit.start,
        end: hit.end,
    };
    hits.into_iter().map(spot).collect()
}

/// The places of a pattern, file by file.
///
/// Errors: the pattern is no code in any of the languages.
fn pattern_hits(text: &str, index: &Index, ground: &Ground) -> Result<Vec<Hit>, ToolError> {
    let patterns = LANGUAGES
        .iter()
        .filter_map(|language| Some((language.name, Pattern::of(text, language)?)));
    let patterns: Vec<(&str, Pattern)> = patterns.collect();
    if patterns.is_empty() {
        return Err(ToolError::invalid_parameters(
            "`query` is no pattern in any language: write code, with `$NAME` for any one node and `$$$NAME` for any number of them",
        ));
    }
    let mut hits = Vec::new();
    let files = index.files.iter();
    for file in files.filter(|file| rank::is_below(&file.path, &ground.below)) {
        let Some(Reading::Code(language)) = of_path(&file.path) else {
            continue;
        };
        let Some((_, pattern)) = patterns.iter().find(|(name, _)| *name == language.name) else {
            continue;
        };
        let Ok(Some((_, text))) = sys::read(&ground.top.join(&file.path)) else {
            continue;
        };
        let mut literals = pattern.literals.iter();
        if !literals.all(|literal| text.contains(literal.as_str())) {
            continue;
        }
        let Some(tree) = outline::tree(language, &text) else {
            continue;
        };
        let places = pattern.places(&tree, &text).into_iter();
        hits.extend(places.map(|(start, end)| Hit {
            layer: Layer::Pattern,
            file: file.path.clone(),
            start,
            end,
            score: 1.0,
        }));
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Args;

    fn args(given: Value) -> Args {
        serde_json::from_value(given).unwrap()
    }

    #[test]
    fn what_is_looked_for_is_a_query_a_symbol_or_both() {
        for (given, text) in [
            (json!({"query": "a b"}), "a b"),
            (json!({"query": ""}), ""),
            (json!({"symbol": "f"}), "f"),
            (json!({"query": "a b", "symbol": "f"}), "a b f"),
        ] {
            let found = args(given.clone()).text();
            assert_eq!(found.unwrap(), text, "{given}");
        }
        let missing = args(json!({"file_pattern": "*.py"})).text();
        assert!(missing.unwrap_err().message.contains("`query`"));
        assert!(args(json!({"query": "x".repeat(2_001)})).text().is_err());
        let both = args(json!({"query": "a b", "symbol": "m::f"}));
        assert_eq!(both.query("a b m::f").name(), Some("f"));
    }

    #[test]
    fn references_are_included_where_they_are_asked_for() {
        for (given, expected) in [
            (json!({"query": "a"}), [true, true, true]),
            (
                json!({"query": "a", "include_references": false}),
                [true, false, true],
            ),
            (json!({"symbol": "a"}), [true, false, false]),
            (
                json!({"query": " ", "symbol": "a", "include_references": true}),
                [true, true, false],
            ),
            (
                json!({"symbol": "a", "kind": "reference", "include_references": false}),
                [false, true, false],
            ),
            (json!({"query": "a", "kind": "text"}), [false, false, true]),
        ] {
            let layers = args(given.clone()).layers();
            let layers = [layers.definitions, layers.references, layers.text];
            assert_eq!(layers, expected, "{given}");
        }
    }
}
