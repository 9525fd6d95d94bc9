//! The known keys, with type, range and what a project file may do with each.
//!
//! They are read off `config/schema.json` when the program is built (`build.rs`), with the defaults of `config/default.toml`: a start
//! of the program has neither a schema to make nor a file of defaults to parse. A key that is not in the schema does not exist.

use zeph_core::failure::one_line;
use zeph_core::id::{BadServerName, BadToolName, ServerName, ToolName};
use zeph_core::nearest::nearest;

use super::known;
use super::project::Rule;
use super::record::ConfigRecord;

/// Characters of an unknown key that a message shows: longer than any real key, short enough for one line.
const KEY_CHARS_MAX: usize = 100;

/// The table of MCP servers.
const SERVERS: &str = "mcp.servers";

/// Names of tables and keys that agents with a vector database have, and what is there in their place.
const ELSEWHERE: [(&str, &str); 3] = [
    (
        "index",
        "`search_code` needs no setting and reads a project when it is called; `zeph-host index` reads it ahead",
    ),
    (
        "memory",
        "conversations and outputs are kept in the store (`store`), and no database of vectors is needed",
    ),
    (
        "vector_backend",
        "vectors are kept in the store (`store`), and made by the model that `agent.embedding` names",
    ),
];

/// Tables whose limits no rule lifts, and none can be tried out.
const HARD_LIMITS: [&str; 6] = [
    "limits",
    "plugins",
    "tools.egress",
    "tools.file",
    "tools.sandbox",
    "tools.scope",
];

/// What a value may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number, both bounds included.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A number, both bounds included.
    Number {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A string.
    Text,
    /// A list of strings.
    TextList {
        /// The only ones allowed; empty when any is.
        one_of: &'static [&'static str],
        /// The most items.
        items_max: usize,
    },
    /// A list of whole numbers, both bounds of each included.
    IntegerList {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
        /// The most items.
        items_max: usize,
    },
    /// One of some strings.
    Choice(&'static [&'static str]),
    /// A table with any keys.
    Table,
    /// A table with these keys.
    Record(ConfigRecord),
    /// A table whose keys are names.
    Map {
        /// What each takes.
        of: &'static Self,
        /// The most names.
        names_max: usize,
    },
    /// A string, or a table with these keys.
    TextOr(ConfigRecord),
    /// A list of anything, which what it is for reads.
    List {
        /// The most items.
        items_max: usize,
    },
    /// Any value.
    Any,
    /// A list of tables.
    Records {
        /// What each may have.
        record: ConfigRecord,
        /// The most items.
        items_max: usize,
    },
}

/// A key that takes a value, or a table whose keys are names and take one each.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted.
    pub(crate) name: &'static str,
    /// What it takes, or what each key of the table does.
    pub(crate) kind: KeyKind,
    /// What a project file may do with it, as declared (`x-project`).
    pub(crate) project: &'static str,
}

/// The known keys, sorted by name.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Every key that takes a value.
    pub(crate) leaves: &'static [Key],
    /// Every table, dotted; the file itself is the empty string.
    pub(crate) sections: &'static [&'static str],
    /// Every table whose keys are names of tools or plugins. They are among `sections` too.
    pub(crate) maps: &'static [Key],
}

impl Keys {
    /// The keys of this version.
    pub(crate) fn known() -> Self {
        Self {
            leaves: known::LEAVES,
            sections: known::SECTIONS,
            maps: known::MAPS,
        }
    }

    /// The keys of a file of rules.
    pub(crate) fn of_policy_file() -> Self {
        Self {
            leaves: known::OF_POLICY_FILE,
            sections: &[""],
            maps: &[],
        }
    }

    /// What a key takes; `None` for a table and for what nobody knows.
    pub(crate) fn kind(&self, key: &str) -> Option<&KeyKind> {
        self.found(key).map(|found| &found.kind)
    }

    /// What a project file may do with a key.
    pub(crate) fn rule(&self, key: &str) -> Rule {
        let of_map = || find(self.maps, key.rsplit_once('.')?.0);
        let found = find(self.leaves, key).or_else(of_map);
        Rule::declared(found.map_or("", |found| found.project))
    }

    /// Whether `key` is a table.
    pub(crate) fn has_section(&self, key: &str) -> bool {
        self.sections.binary_search(&key).is_ok()
    }

    fn found(&self, key: &str) -> Option<&'static Key> {
        let in_map = || {
            let (map, name) = key.rsplit_once('.')?;
            find(self.maps, map).filter(|_| name_problem(map, name).is_none())
        };
        find(self.leaves, key).or_else(in_map)
    }

    /// The message for a key nobody knows: `section` is the known table it stands in, `name` its last part.
    pub(crate) fn unknown(&self, section: &str, name: &str) -> String {
        let name = one_line(name, KEY_CHARS_MAX);
        let key = join(section, &name);
        if find(self.maps, section).is_some() {
            let noun = named(section);
            let problem = name_problem(section, &name).unwrap_or_default();
            return format!("`{section}`: \"{name}\" is not a valid {noun} name: {problem}");
        }
        let is_mode = name == "mode" || name == "observe" || name.ends_with("_mode");
        if is_mode && HARD_LIMITS.contains(&section) {
            return format!(
                "`{section}` is a hard limit: it always applies and cannot be observed, so there is no key `{key}`; rules, constraints and grants have a mode"
            );
        }
        let is_it = |(known, _): &&(&str, &str)| *known == name && section.is_empty();
        if let Some((_, instead)) = ELSEWHERE.iter().find(is_it) {
            return format!("unknown key `{key}`: {instead}");
        }
        let siblings: Vec<&str> = self.siblings(section).collect();
        let everywhere = || self.names();
        let meant = nearest(&name, siblings.iter().copied())
            .map(|sibling| join(section, sibling))
            .or_else(|| self.called(&name).map(str::to_owned))
            .or_else(|| nearest(&name, everywhere()).map(str::to_owned))
            .filter(|meant| !meant.is_empty());
        match meant {
            Some(meant) => format!("unknown key `{key}`; did you mean `{meant}`?"),
            None if section.is_empty() => {
                format!(
                    "unknown key `{key}`; the tables are: {}",
                    siblings.join(", ")
                )
            }
            None => format!(
                "unknown key `{key}`; the keys of `{section}` are: {}",
                siblings.join(", ")
            ),
        }
    }

    /// The message for a dotted key that takes no value.
    pub(crate) fn unknown_path(&self, key: &str) -> String {
        if find(self.maps, key).is_some() {
            let noun = named(key);
            let example = match noun {
                "tool" => "bash",
                "server" => "files",
                _ => "weather",
            };
            return format!(
                "`{key}` is a table; its keys are names of {noun}s, such as `{key}.{example}`"
            );
        }
        if self.has_section(key) {
            let keys: Vec<&str> = self.siblings(key).collect();
            return format!("`{key}` is a table; its keys are: {}", keys.join(", "));
        }
        let mut section = key;
        while let Some((parent, _)) = section.rsplit_once('.') {
            if self.has_section(parent) {
                return self.unknown(parent, &key[parent.len() + 1..]);
            }
            section = parent;
        }
        self.unknown("", key)
    }

    /// The first key whose last part is `name`.
    fn called(&self, name: &str) -> Option<&'static str> {
        let is_called = |key: &&str| key.rsplit_once('.').is_some_and(|(_, last)| last == name);
        self.names().find(is_called)
    }

    /// Every key and table, dotted.
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let leaves = self.leaves.iter().map(|key| key.name);
        leaves.chain(self.sections.iter().copied())
    }

    /// The last parts of the keys and tables directly in `section`.
    fn siblings<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a str> {
        self.names()
            .filter_map(move |key| match section {
                "" => Some(key),
                _ => key.strip_prefix(section)?.strip_prefix('.'),
            })
            .filter(|name| !name.is_empty() && !name.contains('.'))
    }
}

fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    let at = keys.binary_search_by_key(&name, |key| key.name).ok()?;
    keys.get(at)
}

/// What the keys of a table name.
fn named(map: &str) -> &'static str {
    match map {
        SERVERS => "server",
        _ if map.starts_with("plugins.") => "plugin",
        _ => "tool",
    }
}

/// Why `name` cannot be a key of the table `map`; none when it can.
fn name_problem(map: &str, name: &str) -> Option<String> {
    match map {
        SERVERS => ServerName::new(name)
            .err()
            .map(|bad: BadServerName| bad.to_string()),
        _ => ToolName::new(name)
            .err()
            .map(|bad: BadToolName| bad.to_string()),
    }
}

/// `section.name`, or `name` at the top.
pub(crate) fn join(section: &str, name: &str) -> String {
    if section.is_empty() {
        name.to_owned()
    } else {
        format!("{section}.{name}")
    }
}
