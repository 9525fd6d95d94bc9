//! What is different in two JSON Schemas, place by place.

use serde::Serialize;
use serde_json::Value;

use super::line::{DiffLine, DiffMark};
use super::text;
use crate::definitions::canonical_json;
use crate::visible::{visible_json, visible_line};

/// Most characters of a value that is shown beside the one it replaced.
const BESIDE_CHARS_MAX: usize = 40;

/// A place where two schemas differ.
#[derive(Debug, Serialize)]
pub(super) struct SchemaChange {
    /// The keys that lead there, such as `["properties","path","description"]`.
    path: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
}

/// Every place that differs, by the order of the keys.
pub(super) fn changes(old: Option<&Value>, new: Option<&Value>) -> Vec<SchemaChange> {
    let mut found = Vec::new();
    compare(&mut found, &mut Vec::new(), old, new);
    found
}

fn compare(
    found: &mut Vec<SchemaChange>,
    path: &mut Vec<String>,
    old: Option<&Value>,
    new: Option<&Value>,
) {
    if old == new {
        return;
    }
    let mut inner = |key: &str, old: Option<&Value>, new: Option<&Value>| {
        path.push(key.to_owned());
        compare(found, path, old, new);
        path.pop();
    };
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            let mut keys: Vec<_> = old.keys().chain(added).collect();
            keys.sort();
            keys.into_iter()
                .for_each(|key| inner(key, old.get(key), new.get(key)));
        }
        // Of lists of names it matters who is in; of other lists of one length, what stands in which place.
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if old.len() == new.len() && !old.iter().chain(new).all(Value::is_string) =>
        {
            for (idx, (old, new)) in old.iter().zip(new).enumerate() {
                inner(&idx.to_string(), Some(old), Some(new));
            }
        }
        (old, new) => found.push(SchemaChange {
            path: path.clone(),
            old: old.cloned(),
            new: new.cloned(),
        }),
    }
}

/// Where in a schema a path leads: to which parameter, and to what of it.
struct SchemaPlace {
    /// Such as `filter.limit`; empty for the schema as a whole.
    parameter: String,
    /// Such as `items.maximum`; empty for the parameter itself.
    keyword: String,
}

impl SchemaPlace {
    fn of(path: &[String]) -> Self {
        let mut names = Vec::new();
        let mut rest = path;
        while let [properties, name, inner @ ..] = rest
            && properties == "properties"
        {
            names.push(name.as_str());
            rest = inner;
        }
        Self {
            parameter: visible_line(&names.join(".")),
            keyword: visible_line(&rest.join(".")),
        }
    }
}

/// What a property of a schema is called, and what the schema as a whole.
type Nouns = [&'static str; 2];

/// Lines for `changes`.
pub(super) fn push_lines(
    lines: &mut Vec<DiffLine>,
    depth: usize,
    nouns: Nouns,
    changes: &[SchemaChange],
) {
    for change in changes {
        push_change(lines, depth, nouns, change);
    }
}

fn push_change(
    lines: &mut Vec<DiffLine>,
    depth: usize,
    [noun, whole]: Nouns,
    change: &SchemaChange,
) {
    let SchemaChange { path, old, new } = change;
    let SchemaPlace { parameter, keyword } = SchemaPlace::of(path);
    let subject = match parameter.is_empty() {
        true => whole.to_owned(),
        false => format!("{noun} `{parameter}`"),
    };
    let mut push = |mark, text: String| lines.push(DiffLine::new(mark, depth, text));
    match (keyword.as_str(), old, new) {
        ("", None, Some(new)) => push(DiffMark::Added, format!("{subject}: {}", shown(new))),
        ("", Some(old), None) => push(DiffMark::Removed, format!("{subject}: {}", shown(old))),
        ("required", old, new) if is_names(old) && is_names(new) => {
            push_required(&mut push, &subject, (old.as_ref(), new.as_ref()));
        }
        (_, Some(old), Some(new)) => {
            let title = titled(&subject, &keyword);
            let (shown_old, shown_new) = (shown(old), shown(new));
            let is_short = |shown: &str| shown.chars().count() <= BESIDE_CHARS_MAX;
            if is_short(&shown_old) && is_short(&shown_new) {
                push(
                    DiffMark::Changed,
                    format!("{title}: {shown_old} → {shown_new}"),
                );
                return;
            }
            push(DiffMark::Changed, title);
            if let (Value::String(old), Value::String(new)) = (old, new) {
                text::push_lines(lines, depth + 1, old, new);
            } else {
                lines.push(DiffLine::new(DiffMark::Removed, depth + 1, shown_old));
                lines.push(DiffLine::new(DiffMark::Added, depth + 1, shown_new));
            }
        }
        (_, None, Some(new)) => {
            push(
                DiffMark::Added,
                format!("{}: {}", titled(&subject, &keyword), shown(new)),
            );
        }
        (_, Some(old), None) => {
            push(
                DiffMark::Removed,
                format!("{}: {}", titled(&subject, &keyword), shown(old)),
            );
        }
        (_, None, None) => {}
    }
}

/// Which names became required, and which are not any more.
fn push_required(
    push: &mut impl FnMut(DiffMark, String),
    subject: &str,
    (old, new): (Option<&Value>, Option<&Value>),
) {
    let (old, new) = (names(old), names(new));
    let n_before = old.len() + new.len();
    let added: Vec<_> = new.iter().filter(|name| !old.contains(name)).collect();
    let removed: Vec<_> = old.iter().filter(|name| !new.contains(name)).collect();
    for name in &added {
        push(
            DiffMark::Added,
            format!("{subject}: `{}` is required", visible_line(name)),
        );
    }
    for name in &removed {
        push(
            DiffMark::Removed,
            format!("{subject}: `{}` is required", visible_line(name)),
        );
    }
    if added.is_empty() && removed.is_empty() && n_before > 0 {
        push(
            DiffMark::Changed,
            format!("{subject}: what is required stands in another order"),
        );
    }
}

fn is_names(value: &Option<Value>) -> bool {
    match value {
        None => true,
        Some(Value::Array(items)) => items.iter().all(Value::is_string),
        Some(_) => false,
    }
}

fn names(value: Option<&Value>) -> Vec<&str> {
    let items = value
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).collect()
}

fn titled(subject: &str, keyword: &str) -> String {
    match keyword {
        "" => subject.to_owned(),
        keyword => format!("{subject}, {keyword}"),
    }
}

fn shown(value: &Value) -> String {
    visible_json(&canonical_json(value))
}
