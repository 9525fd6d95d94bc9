//! Which schemas say the same in draft 7 as in 2020-12.
//!
//! Whether a schema is one at all is checked against the schema of its draft, which has to be compiled first. That of draft 7 is one
//! document; that of 2020-12 are eight that refer to each other, and take a program started for one call a tenth of its time.

use serde_json::Value;

/// Keywords with one meaning in both drafts, and values that need no closer look. References are none of them: what stands beside one
/// counts in 2020-12 only. Neither are texts about their content, which draft 7 has checked.
const COMMON: [&str; 18] = [
    "type",
    "title",
    "description",
    "default",
    "examples",
    "enum",
    "const",
    "format",
    "pattern",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "multipleOf",
];

/// Whether `schema` consists of what both drafts have in common.
///
/// Limits: recurses as deep as the schema, whose depth the reader of JSON bounds.
pub(super) fn is_common(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(keywords) => keywords.iter().all(|(keyword, value)| {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(schemas)) => schemas.values().all(is_common),
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    schemas.iter().all(is_common)
                }
                // A list of them is a tuple in one draft and wrong in the other.
                ("items" | "additionalProperties" | "not", schema) => is_common(schema),
                (keyword, _) => COMMON.contains(&keyword),
            }
        }),
        _ => false,
    }
}
