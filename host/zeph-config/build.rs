//! Makes the table of keys and of defaults that the program holds: of `config/schema.json`, which a test compares with the types the
//! keys are declared by, and of `config/default.toml`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

/// The key whose tables a file of rules holds, and what they are called there.
const RULES: (&str, &str) = ("tools.policy.rules", "rules");

fn main() {
    if let Err(message) = make() {
        println!("cargo::error={message}");
    }
}

fn make() -> Result<(), String> {
    let schema = read("schema.json")?;
    let schema: Json =
        serde_json::from_str(&schema).map_err(|error| format!("schema.json: {error}"))?;
    let mut keys = Keys::default();
    keys.collect("", &schema);
    let rules = keys.leaves.iter().find(|leaf| leaf.0 == RULES.0);
    let rules = rules.map(|(_, kind, rule)| (RULES.1.to_owned(), kind.clone(), rule.clone()));
    let text = read("default.toml")?;
    let defaults = DeTable::parse(&text).map_err(|error| format!("default.toml: {error}"))?;
    let mut made = String::new();
    let mut put = |name: &str, of: &str, items: String| {
        let _ = writeln!(made, "pub(crate) const {name}: &[{of}] = &[{items}];");
    };
    put("LEAVES", "Key", table(keys.leaves));
    put("MAPS", "Key", table(keys.maps));
    put("OF_POLICY_FILE", "Key", table(rules.into_iter().collect()));
    keys.sections.sort();
    put(
        "SECTIONS",
        "&str",
        list(keys.sections.iter().map(|section| format!("{section:?}"))),
    );
    put(
        "DEFAULTS",
        "Default",
        list(said(&text, "", defaults.get_ref())?.into_iter()),
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo speaks to build scripts through the environment"
    )]
    let folder = std::env::var("OUT_DIR").map_err(|error| error.to_string())?;
    std::fs::write(Path::new(&folder).join("known.rs"), made).map_err(|error| error.to_string())
}

fn read(name: &str) -> Result<String, String> {
    let path = format!("{}/../../config/{name}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed={path}");
    std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
}

/// A name, the kind as source text, and the rule for projects.
type Row = (String, String, String);

/// What the schema holds.
#[derive(Default)]
struct Keys {
    leaves: Vec<Row>,
    maps: Vec<Row>,
    sections: Vec<String>,
}

impl Keys {
    fn collect(&mut self, path: &str, node: &Json) {
        let rule = node["x-project"].as_str().unwrap_or_default().to_owned();
        if let Some(kind) = kind_of(node) {
            self.leaves.push((path.to_owned(), kind, rule));
            return;
        }
        self.sections.push(path.to_owned());
        if let Some(kind) = field_kind(&node["additionalProperties"]) {
            self.maps.push((path.to_owned(), kind, rule));
        }
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            self.collect(&join(path, name), child);
        }
    }
}

fn table(mut rows: Vec<Row>) -> String {
    rows.sort();
    list(rows.into_iter().map(|(name, kind, project)| {
        format!("Key {{ name: {name:?}, kind: {kind}, project: {project:?} }}")
    }))
}

/// What a leaf of the schema takes; `None` for a table.
fn kind_of(node: &Json) -> Option<String> {
    match node["type"].as_str()? {
        "boolean" => Some("KeyKind::Boolean".to_owned()),
        "integer" => Some(format!("KeyKind::Integer {{ {} }}", range(node))),
        "number" => Some(format!("KeyKind::Number {{ {} }}", range(node))),
        "string" => Some(match texts(&node["enum"]) {
            any if any.is_empty() => "KeyKind::Text".to_owned(),
            some => format!("KeyKind::Choice({})", strings(&some)),
        }),
        "array" => Some(list_of(node)),
        "object" if node["additionalProperties"] == true => Some("KeyKind::Table".to_owned()),
        _ => None,
    }
}

/// What a field of a table takes that has no built-in value: besides what a leaf does, tables with fields or names of their own, a string
/// or a table, anything.
fn field_kind(node: &Json) -> Option<String> {
    if let Some(either) = node["anyOf"].as_array() {
        let table = either.iter().find(|one| one["type"] == "object")?;
        return Some(format!("KeyKind::TextOr({})", record_of(table)));
    }
    if node["type"] == "object" && node["additionalProperties"].is_object() {
        let of = field_kind(&node["additionalProperties"])?;
        let names_max = node["maxProperties"].as_u64().unwrap_or(u32::MAX.into());
        return Some(format!(
            "KeyKind::Map {{ of: &{of}, names_max: {names_max} }}"
        ));
    }
    match kind_of(node) {
        None if node["properties"].is_object() => {
            Some(format!("KeyKind::Record({})", record_of(node)))
        }
        None if node.is_object() && node["type"].is_null() => Some("KeyKind::Any".to_owned()),
        kind => kind,
    }
}

/// What a list takes.
fn list_of(node: &Json) -> String {
    let items_max = node["maxItems"].as_u64().unwrap_or(u32::MAX.into());
    let item = &node["items"];
    match item["type"].as_str() {
        Some("integer") => format!(
            "KeyKind::IntegerList {{ {}, items_max: {items_max} }}",
            range(item)
        ),
        Some("object") => format!(
            "KeyKind::Records {{ record: {}, items_max: {items_max} }}",
            record_of(item)
        ),
        None if item["anyOf"].is_array() => format!("KeyKind::List {{ items_max: {items_max} }}"),
        _ => {
            let one_of = strings(&texts(&item["enum"]));
            format!("KeyKind::TextList {{ one_of: {one_of}, items_max: {items_max} }}")
        }
    }
}

/// The fields of the tables in a list.
fn record_of(node: &Json) -> String {
    let required = texts(&node["required"]);
    let fields = node["properties"].as_object().into_iter().flatten();
    let fields = fields.filter_map(|(name, field)| {
        let (kind, is_required) = (field_kind(field)?, required.contains(name));
        Some(format!(
            "Field {{ name: {name:?}, kind: {kind}, is_required: {is_required} }}"
        ))
    });
    format!("ConfigRecord {{ fields: &[{}] }}", list(fields))
}

fn range(node: &Json) -> String {
    let min = node["minimum"].as_i64().unwrap_or(i64::MIN);
    let max = node["maximum"].as_i64().unwrap_or(i64::MAX);
    format!("min: {min}, max: {max}")
}

fn texts(node: &Json) -> Vec<String> {
    let items = node.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn strings(texts: &[String]) -> String {
    format!("&[{}]", list(texts.iter().map(|text| format!("{text:?}"))))
}

/// Every key of the file with its value and its line, sorted by the file's own order of tables.
fn said(text: &str, section: &str, table: &DeTable<'_>) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (name, value) in table {
        let key = join(section, name.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            all.extend(said(text, &key, inner)?);
            continue;
        }
        let before = text.get(..name.span().start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let value = value_of(value.get_ref())
            .ok_or_else(|| format!("default.toml:{line}: `{key}` is of a type no default has"))?;
        all.push(format!(
            "Default {{ key: {key:?}, value: {value}, line: {line} }}"
        ));
    }
    Ok(all)
}

fn value_of(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::Boolean(value) => format!("DefaultValue::Boolean({value})"),
        DeValue::Integer(value) => {
            let value = i64::from_str_radix(value.as_str(), value.radix()).ok()?;
            format!("DefaultValue::Integer({value})")
        }
        DeValue::String(text) => format!("DefaultValue::Text({text:?})"),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| value_of(item.get_ref()));
            format!(
                "DefaultValue::List(&[{}])",
                list(items.collect::<Option<Vec<_>>>()?.into_iter())
            )
        }
        DeValue::Float(value) => {
            let value: f64 = value.as_str().parse().ok()?;
            format!("DefaultValue::Float({value:?})")
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| item + ",\n").collect()
}

fn join(section: &str, name: &str) -> String {
    match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    }
}
