//! The known keys, with type and range, read off the JSON Schema; and the schema itself.
//!
//! One source for editors, for the loader and for the suggestions: a key that is not in the schema does not exist.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use zeph_core::failure::one_line;
use zeph_core::id::{BadToolName, ToolName};
use zeph_core::nearest::nearest;

use super::file::{self, LayerSource};
use super::key_docs;
use super::project::Rule;
use super::raw::{RawConfig, RawPolicyFile};
use super::record::{ConfigRecord, Field};

/// Characters of an unknown key that a message shows: longer than any real key, short enough for one line.
const KEY_CHARS_MAX: usize = 100;

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// A string.
    Text,
    /// A list of strings.
    TextList {
        /// The only ones allowed; empty when any is.
        one_of: Vec<String>,
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
    Choice(Vec<String>),
    /// A table with any keys.
    Table,
    /// A list of tables.
    Records {
        /// What each may have.
        record: ConfigRecord,
        /// The most items.
        items_max: usize,
    },
}

/// The known keys.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Every key that takes a value, dotted.
    pub(crate) leaves: BTreeMap<String, KeyKind>,
    /// Every table, dotted; the file itself is the empty string.
    pub(crate) sections: BTreeSet<String>,
    /// Every table whose keys are names of tools or plugins, dotted, with what each takes. They are among `sections` too.
    pub(crate) maps: BTreeMap<String, KeyKind>,
    /// What a project file may do with each of the leaves and maps.
    pub(crate) rules: BTreeMap<String, Rule>,
}

impl Keys {
    /// The keys of this version.
    pub(crate) fn known() -> Self {
        Self::of(&shape::<RawConfig>())
    }

    /// The keys of a file of rules.
    pub(crate) fn of_policy_file() -> Self {
        Self::of(&shape::<RawPolicyFile>())
    }

    fn of(shape: &Json) -> Self {
        let mut keys = Self {
            leaves: BTreeMap::new(),
            sections: BTreeSet::new(),
            maps: BTreeMap::new(),
            rules: BTreeMap::new(),
        };
        keys.collect("", shape);
        keys
    }

    fn collect(&mut self, path: &str, node: &Json) {
        let rule = Rule::declared(node["x-project"].as_str());
        if let Some(kind) = kind_of(node) {
            self.leaves.insert(path.to_owned(), kind);
            self.rules.insert(path.to_owned(), rule);
            return;
        }
        self.sections.insert(path.to_owned());
        if let Some(kind) = kind_of(&node["additionalProperties"]) {
            self.maps.insert(path.to_owned(), kind);
            self.rules.insert(path.to_owned(), rule);
        }
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            self.collect(&join(path, name), child);
        }
    }

    /// What a key takes; `None` for a table and for what nobody knows.
    pub(crate) fn kind(&self, key: &str) -> Option<&KeyKind> {
        let in_map = || {
            let (map, name) = key.rsplit_once('.')?;
            self.maps.get(map).filter(|_| ToolName::new(name).is_ok())
        };
        self.leaves.get(key).or_else(in_map)
    }

    /// What a project file may do with a key.
    pub(crate) fn rule(&self, key: &str) -> Rule {
        let of_map = || self.rules.get(key.rsplit_once('.')?.0);
        let rule = self.rules.get(key).or_else(of_map);
        rule.copied().unwrap_or(Rule::declared(None))
    }

    /// The message for a key nobody knows: `section` is the known table it stands in, `name` its last part.
    pub(crate) fn unknown(&self, section: &str, name: &str) -> String {
        let name = one_line(name, KEY_CHARS_MAX);
        let key = join(section, &name);
        if self.maps.contains_key(section) {
            let noun = named(section);
            return format!("`{section}`: \"{name}\" is not a valid {noun} name: {BadToolName}");
        }
        let siblings: Vec<&str> = self.siblings(section).collect();
        let everywhere = || self.leaves.keys().chain(&self.sections).map(String::as_str);
        let meant = nearest(&name, siblings.iter().copied())
            .map(|sibling| join(section, sibling))
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
        if self.maps.contains_key(key) {
            let noun = named(key);
            let example = if noun == "tool" { "bash" } else { "weather" };
            return format!(
                "`{key}` is a table; its keys are names of {noun}s, such as `{key}.{example}`"
            );
        }
        if self.sections.contains(key) {
            let keys: Vec<&str> = self.siblings(key).collect();
            return format!("`{key}` is a table; its keys are: {}", keys.join(", "));
        }
        let mut section = key;
        while let Some((parent, _)) = section.rsplit_once('.') {
            if self.sections.contains(parent) {
                return self.unknown(parent, &key[parent.len() + 1..]);
            }
            section = parent;
        }
        self.unknown("", key)
    }

    /// The last parts of the keys and tables directly in `section`.
    fn siblings<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a str> {
        self.leaves
            .keys()
            .chain(&self.sections)
            .filter_map(move |key| match section {
                "" => Some(key.as_str()),
                _ => key.strip_prefix(section)?.strip_prefix('.'),
            })
            .filter(|name| !name.is_empty() && !name.contains('.'))
    }
}

/// The JSON Schema of a configuration file, with the built-in defaults and what `config/default.toml` says of each key, as `zeph-host config schema` prints it.
pub fn schema() -> Json {
    let mut schema = shape::<RawConfig>();
    let (defaults, _) = file::parse(file::DEFAULTS, &LayerSource::BuiltIn, &Keys::known());
    let meanings = key_docs::meanings(file::DEFAULTS);
    for assignment in defaults {
        let pointer = format!(
            "/properties/{}",
            assignment.key.replace('.', "/properties/")
        );
        if let Some(Json::Object(leaf)) = schema.pointer_mut(&pointer) {
            let value = serde_json::to_value(&assignment.value).unwrap_or_default();
            leaf.insert("default".to_owned(), value);
            let meaning = meanings.get(&assignment.key).cloned().unwrap_or_default();
            leaf.insert("description".to_owned(), meaning.into());
        }
    }
    schema
}

/// The schema without defaults. No key is required: what a file does not say, a lower layer does.
fn shape<T: JsonSchema>() -> Json {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut shape = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    drop_required(&mut shape);
    shape["title"] = "zeph-host configuration".into();
    shape
}

fn drop_required(node: &mut Json) {
    let Json::Object(fields) = node else { return };
    fields.remove("required");
    if let Some(Json::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(drop_required);
    }
}

/// What a leaf of the schema takes; `None` for a table.
fn kind_of(node: &Json) -> Option<KeyKind> {
    match node["type"].as_str()? {
        "boolean" => Some(KeyKind::Boolean),
        "integer" => Some(KeyKind::Integer {
            min: node["minimum"].as_i64().unwrap_or(i64::MIN),
            max: node["maximum"].as_i64().unwrap_or(i64::MAX),
        }),
        "string" => Some(match texts(&node["enum"]) {
            any if any.is_empty() => KeyKind::Text,
            some => KeyKind::Choice(some),
        }),
        "array" => Some(list_of(node)),
        "object" if node["additionalProperties"] == true => Some(KeyKind::Table),
        _ => None,
    }
}

/// What the keys of a table name.
fn named(map: &str) -> &'static str {
    match map.starts_with("plugins.") {
        true => "plugin",
        false => "tool",
    }
}

/// What a list takes.
fn list_of(node: &Json) -> KeyKind {
    let items_max = node["maxItems"]
        .as_u64()
        .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    let item = &node["items"];
    match item["type"].as_str() {
        Some("integer") => KeyKind::IntegerList {
            min: item["minimum"].as_i64().unwrap_or(i64::MIN),
            max: item["maximum"].as_i64().unwrap_or(i64::MAX),
            items_max,
        },
        Some("object") => KeyKind::Records {
            record: record_of(item),
            items_max,
        },
        _ => KeyKind::TextList {
            one_of: texts(&item["enum"]),
            items_max,
        },
    }
}

/// The fields of the tables in a list.
fn record_of(node: &Json) -> ConfigRecord {
    let required = texts(&node["required"]);
    let fields = node["properties"].as_object().into_iter().flatten();
    let fields = fields.filter_map(|(name, field)| {
        let field = Field {
            kind: kind_of(field)?,
            is_required: required.contains(name),
        };
        Some((name.clone(), field))
    });
    ConfigRecord {
        fields: fields.collect(),
    }
}

fn texts(node: &Json) -> Vec<String> {
    let items = node.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// `section.name`, or `name` at the top.
pub(crate) fn join(section: &str, name: &str) -> String {
    if section.is_empty() {
        name.to_owned()
    } else {
        format!("{section}.{name}")
    }
}
