//! A JSON Schema on one line.

use serde_json::Value;

/// Longest compact schema in characters: it stands inside error messages.
const CHARS_MAX: usize = 600;

/// Most values of an `enum` that are shown.
const VALUES_MAX: usize = 12;

/// Renders an object schema as `{name: type, optional?: type}`, required names first.
pub(super) fn object(schema: &Value) -> String {
    let full = render(schema, 0);
    crate::failure::one_line(&full, CHARS_MAX)
}

fn render(schema: &Value, depth: usize) -> String {
    if depth > 4 {
        return "…".to_owned();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let shown = values.iter().take(VALUES_MAX).map(Value::to_string);
        let more = (values.len() > VALUES_MAX).then(|| "…".to_owned());
        return shown.chain(more).collect::<Vec<_>>().join("|");
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "object" => fields(schema, depth),
        Some(Value::String(name)) if name == "array" => {
            let items = schema.get("items").map(|items| render(items, depth + 1));
            format!("[{}]", items.as_deref().unwrap_or("any"))
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("|"),
        _ => "any".to_owned(),
    }
}

fn fields(schema: &Value, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "object".to_owned();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (first, rest): (Vec<_>, Vec<_>) = properties
        .iter()
        .partition(|(name, _)| required.contains(&name.as_str()));
    let shown: Vec<String> = first
        .iter()
        .map(|(name, property)| format!("{name}: {}", render(property, depth + 1)))
        .chain(
            rest.iter()
                .map(|(name, property)| format!("{name}?: {}", render(property, depth + 1))),
        )
        .collect();
    format!("{{{}}}", shown.join(", "))
}
