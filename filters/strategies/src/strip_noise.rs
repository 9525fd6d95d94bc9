//! `strip_noise`: leaves out lines that match any of the given patterns.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::automaton::Search;
use crate::{
    Automaton, Confidence, Coverage, Definition, Input, LineSet, Lines, Selection, Strategy,
    options,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "strip_noise",
    description: "Removes lines matching any of the patterns, but never an error or a warning.",
    coverage: Coverage::Recognised,
    schema: options::schema::<StripNoiseOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StripNoiseOptions {
    /// Regular expressions of at most 512 characters; a line that matches one is noise.
    patterns: Vec<String>,
    /// Lists that are noise with what stands above them.
    #[serde(default)]
    lists: Vec<ListOptions>,
    /// Lines that are noise in some blocks only.
    #[serde(default)]
    blocks: Vec<BlockOptions>,
}

/// Lines that are noise between two others, which are none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlockOptions {
    /// A regular expression of the line above the block.
    first: String,
    /// A regular expression of the line below it.
    last: String,
    /// A regular expression of the noise in it.
    noise: String,
}

/// A list that is noise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListOptions {
    /// A regular expression of the line above the list, which is noise too.
    heading: String,
    /// A regular expression of each line of the list; elsewhere such lines stay.
    item: String,
}

struct StripNoise {
    noise: Automaton,
    lists: Vec<List>,
    blocks: Vec<Block>,
}

struct Block {
    first: Automaton,
    last: Automaton,
    noise: Automaton,
}

impl Block {
    fn of(options: &BlockOptions) -> Result<Self, String> {
        Ok(Self {
            first: options::matcher(&options.first)?,
            last: options::matcher(&options.last)?,
            noise: options::matcher(&options.noise)?,
        })
    }

    /// Adds the lines of each such block to `noise` that are.
    fn find(&self, lines: &Lines<'_>, noise: &mut LineSet) {
        let mut first = self.first.search();
        let (mut last, mut inside) = (self.last.search(), self.noise.search());
        let mut is_inside = false;
        for (line_idx, line) in lines.iter().enumerate() {
            if !is_inside {
                is_inside = first.is_match(line);
            } else if last.is_match(line) {
                is_inside = false;
            } else if is_noise(&mut inside, lines, line_idx, line) {
                noise.insert(line_idx);
            }
        }
    }
}

struct List {
    heading: Automaton,
    item: Automaton,
}

impl List {
    fn of(options: &ListOptions) -> Result<Self, String> {
        Ok(Self {
            heading: options::matcher(&options.heading)?,
            item: options::matcher(&options.item)?,
        })
    }

    /// Adds the lines of each such list to `noise`.
    fn find(&self, lines: &Lines<'_>, noise: &mut LineSet) {
        let (mut heading, mut item) = (self.heading.search(), self.item.search());
        let mut is_inside = false;
        for (line_idx, line) in lines.iter().enumerate() {
            let is_plain = |search: &mut Search<'_>| is_noise(search, lines, line_idx, line);
            is_inside = (is_inside && is_plain(&mut item)) || is_plain(&mut heading);
            if is_inside {
                noise.insert(line_idx);
            }
        }
    }
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let StripNoiseOptions {
        patterns,
        lists,
        blocks,
    } = options::read(options)?;
    if patterns.is_empty() {
        return Err("`patterns` is empty".to_owned());
    }
    Ok(Box::new(StripNoise {
        noise: options::any_of(&patterns)?,
        lists: lists.iter().map(List::of).collect::<Result<_, _>>()?,
        blocks: blocks.iter().map(Block::of).collect::<Result<_, _>>()?,
    }))
}

impl Strategy for StripNoise {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let mut listed = LineSet::default();
        self.lists
            .iter()
            .for_each(|list| list.find(input.lines, &mut listed));
        self.blocks
            .iter()
            .for_each(|block| block.find(input.lines, &mut listed));
        let lines = input.lines.iter().enumerate();
        let mut noise = self.noise.search();
        let (mut kept, mut has_noise) = (LineSet::default(), false);
        for (line_idx, line) in lines {
            let is_listed = listed.contains(line_idx);
            match is_listed || is_noise(&mut noise, input.lines, line_idx, line) {
                true => has_noise = true,
                false => kept.insert(line_idx),
            }
        }
        match has_noise {
            false => Selection::all(input, Confidence::Fallback),
            true => Selection::of(&kept, Confidence::Full),
        }
    }
}

/// Whether a line matches and says nothing of errors and warnings.
pub(crate) fn is_noise(
    noise: &mut Search<'_>,
    lines: &Lines<'_>,
    line_idx: usize,
    line: &str,
) -> bool {
    lines.severity(line_idx).is_none() && noise.is_match(line)
}
