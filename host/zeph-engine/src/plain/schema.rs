//! JSON Schemas of shapes, in the subset every model provider accepts: `type`, `description`, `properties`, `required`, `items`,
//! `enum`, `minimum`, `maximum`. No union and no reference; null beside another type only where a value may be missing inside a list
//! or a case.

use serde_json::{Map, Value, json};
use zeph_core::text::counted;

use super::docs::{Docs, TypeDocs};
use super::name::FieldName;
use super::shape::{Case, Field, Int, Shape};
use super::types::TypeNames;

/// Which way the values go. It matters where a value has two forms and one of them is only ever written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
}

/// Writes the schemas of one function.
pub(crate) struct Schemas<'a> {
    pub(crate) direction: Direction,
    /// The named types where the function stands.
    pub(crate) names: &'a TypeNames,
    pub(crate) docs: &'a Docs,
}

impl Schemas<'_> {
    /// An object with a property for each field; those that may be absent are not required.
    pub(crate) fn object(&self, fields: &[Field], docs: Option<&TypeDocs>) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            let mut schema = match &field.shape {
                Shape::Option(some) => self.some(some),
                shape => {
                    required.push(Value::from(field.name.json.as_str()));
                    self.value(shape)
                }
            };
            prepend(&mut schema, member(docs, &field.name));
            properties.insert(field.name.json.clone(), schema);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = Value::Array(required);
        }
        schema
    }

    /// What a function returns, as an object: a record is one, everything else stands under `result`.
    pub(crate) fn returned(&self, shape: &Shape) -> Value {
        let schema = self.value(shape);
        if let Shape::Record(_) = shape {
            return schema;
        }
        json!({"type": "object", "properties": {"result": schema}, "required": ["result"]})
    }

    /// A value that cannot be absent.
    pub(crate) fn value(&self, shape: &Shape) -> Value {
        match shape {
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int(int) => self.int(*int),
            Shape::Float32 | Shape::Float64 => self.float(),
            Shape::Char => described("string", "One character."),
            Shape::String => json!({"type": "string"}),
            Shape::Bytes => bytes(),
            Shape::List(item) => json!({"type": "array", "items": self.value(item)}),
            Shape::Tuple(items) => self.tuple(items),
            Shape::Record(fields) => {
                let docs = self.type_docs(shape);
                let mut schema = self.object(fields, docs);
                prepend(&mut schema, docs.and_then(|docs| docs.text.as_deref()));
                schema
            }
            Shape::Variant(cases) => self.variant(shape, cases),
            Shape::Enum(names) => self.names(shape, names),
            Shape::Flags(names) => {
                let mut items = self.names(shape, names);
                let text = items
                    .as_object_mut()
                    .and_then(|items| items.remove("description"));
                let mut schema = json!({"type": "array", "items": items});
                prepend(&mut schema, Some("Each at most once."));
                prepend(&mut schema, text.as_ref().and_then(Value::as_str));
                schema
            }
            Shape::Option(some) => nullable(self.some(some)),
            Shape::Result { ok, error } => self.result(ok.as_deref(), error.as_deref()),
        }
    }

    /// What an option holds. An option in an option is wrapped, so that "none" and "some none" differ.
    fn some(&self, shape: &Shape) -> Value {
        match shape {
            Shape::Option(inner) => json!({
                "type": "object",
                "description": "An optional value that may itself be absent.",
                "properties": {"value": self.some(inner)},
            }),
            shape => self.value(shape),
        }
    }

    fn int(&self, int: Int) -> Value {
        let (min, max) = int.range();
        let mut schema = json!({"type": "integer"});
        if !int.is_wide() {
            schema["minimum"] = json!(min_max(min));
            schema["maximum"] = json!(min_max(max));
            return schema;
        }
        if int == Int::U64 {
            schema["minimum"] = json!(0);
        }
        if self.direction == Direction::Output {
            schema["type"] = json!(["integer", "string"]);
        }
        let hint = "Beyond ±9007199254740991 as a string of decimal digits.";
        prepend(&mut schema, Some(hint));
        schema
    }

    fn float(&self) -> Value {
        match self.direction {
            Direction::Input => json!({"type": "number"}),
            Direction::Output => json!({
                "type": ["number", "string"],
                "description": "A string only for \"NaN\", \"Infinity\" and \"-Infinity\".",
            }),
        }
    }

    fn tuple(&self, items: &[Shape]) -> Value {
        if Shape::is_uniform(items) {
            let mut schema = json!({"type": "array"});
            if let Some(first) = items.first() {
                schema["items"] = self.value(first);
            }
            prepend(
                &mut schema,
                Some(&format!(
                    "Exactly {}.",
                    counted(items.len(), "item", "items")
                )),
            );
            return schema;
        }
        let fields: Vec<Field> = items.iter().enumerate().map(super::item_field).collect();
        self.object(&fields, None)
    }

    fn variant(&self, shape: &Shape, cases: &[Case]) -> Value {
        let docs = self.type_docs(shape);
        let properties: Map<String, Value> = cases
            .iter()
            .map(|case| {
                let mut schema = self.payload(case.payload.as_ref());
                prepend(&mut schema, member(docs, &case.name));
                (case.name.json.clone(), schema)
            })
            .collect();
        let mut schema = json!({"type": "object", "properties": properties});
        prepend(&mut schema, Some("Exactly one of these keys."));
        prepend(&mut schema, docs.and_then(|docs| docs.text.as_deref()));
        schema
    }

    fn result(&self, ok: Option<&Shape>, error: Option<&Shape>) -> Value {
        json!({
            "type": "object",
            "description": "Exactly one of these keys.",
            "properties": {"ok": self.payload(ok), "error": self.payload(error)},
        })
    }

    fn payload(&self, payload: Option<&Shape>) -> Value {
        match payload {
            Some(shape) => self.value(shape),
            None => described("boolean", "Always true."),
        }
    }

    /// A string that is one of `names`, with what the author says about each.
    fn names(&self, shape: &Shape, names: &[FieldName]) -> Value {
        let docs = self.type_docs(shape);
        let values: Vec<&str> = names.iter().map(|name| name.json.as_str()).collect();
        let mut schema = json!({"type": "string", "enum": values});
        let said: Vec<String> = names
            .iter()
            .filter_map(|name| Some(format!("`{}`: {}", name.json, member(docs, name)?)))
            .collect();
        if !said.is_empty() {
            prepend(&mut schema, Some(&said.join("\n")));
        }
        prepend(&mut schema, docs.and_then(|docs| docs.text.as_deref()));
        schema
    }

    fn type_docs(&self, shape: &Shape) -> Option<&TypeDocs> {
        let name = self.names.name_of(shape)?;
        self.docs.of_type(self.names.interface(), name)
    }
}

fn member<'a>(docs: Option<&'a TypeDocs>, name: &FieldName) -> Option<&'a str> {
    docs?.members.get(&name.wit).map(String::as_str)
}

fn bytes() -> Value {
    json!({
        "type": "object",
        "description": "Bytes, given under exactly one of these keys.",
        "properties": {
            "text": described("string", "The bytes as text (UTF-8)."),
            "base64": described("string", "Bytes that are no text, in base64."),
        },
    })
}

fn described(type_name: &str, description: &str) -> Value {
    json!({"type": type_name, "description": description})
}

/// Puts `text` before the description there is.
fn prepend(schema: &mut Value, text: Option<&str>) {
    let Some(text) = text else {
        return;
    };
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(hint) => format!("{text} {hint}"),
        None => text.to_owned(),
    };
    schema["description"] = Value::String(text);
}

/// Lets a schema take null too.
fn nullable(mut schema: Value) -> Value {
    let types = match schema["type"].take() {
        Value::Array(mut types) => {
            types.push("null".into());
            types
        }
        one => vec![one, "null".into()],
    };
    schema["type"] = Value::Array(types);
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}

/// A bound of at most 32 bits.
fn min_max(bound: i128) -> i64 {
    i64::try_from(bound).unwrap_or_default()
}
