//! What a function gave back → JSON, and the text of it that a model reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::Val;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::{Content, RawOutput};

use super::shape::{Case, Field, Shape};

/// The largest integer every JSON reader keeps exactly (RFC 8259, section 6).
const SAFE_INTEGER_MAX: i128 = (1 << 53) - 1;

/// JSON of at most so many bytes stays on one line.
const LINE_BYTES_MAX: usize = 160;

/// Most bytes of the message of a function that failed.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Turns the values a function returned into the result of its tool.
///
/// Shape:  a record is the structured result itself, any other value is under `result`; the text is the same as JSON, a
///         string without its quotes.
/// Errors: what a `result` of the function said is wrong, or that there is more than `output_bytes_max`.
pub(crate) fn result(
    shape: Option<&Shape>,
    values: Vec<Val>,
    output_bytes_max: u64,
) -> Result<RawOutput, ToolFailure> {
    let value = values.into_iter().next();
    match (shape, value) {
        (None, None) => Ok(RawOutput::text("done")),
        (Some(Shape::Result { ok, error }), Some(Val::Result(value))) => match value {
            Ok(value) => success(ok.as_deref(), value.map(|value| *value), output_bytes_max),
            Err(value) => Err(said_no(error.as_deref(), value.map(|value| *value))),
        },
        (shape, value) => success(shape, value, output_bytes_max),
    }
}

fn success(
    shape: Option<&Shape>,
    value: Option<Val>,
    output_bytes_max: u64,
) -> Result<RawOutput, ToolFailure> {
    let (shape, value) = match (shape, value) {
        (None, None) => return Ok(RawOutput::text("done")),
        (Some(shape), Some(value)) => (shape, json(shape, value)?),
        _ => return Err(broken("it returned what its type does not say".to_owned())),
    };
    let n_bytes = match plain_text(shape, &value) {
        Some(text) => text.len(),
        None => value.to_string().len(),
    };
    if n_bytes as u64 > output_bytes_max {
        return Err(broken(format!(
            "the result has {n_bytes} bytes, more than {output_bytes_max} (`limits.output_bytes`)"
        )));
    }
    let text = text(shape, &value);
    let structured = match shape {
        Shape::Record(_) => value,
        _ => json!({ "result": value }),
    };
    Ok(RawOutput {
        content: vec![Content::Text(text)],
        structured: Some(structured),
        locations: Vec::new(),
    })
}

/// The error of a function's own `result` as a failure.
fn said_no(shape: Option<&Shape>, value: Option<Val>) -> ToolFailure {
    let message = match (shape, value) {
        (Some(shape), Some(value)) => match json(shape, value) {
            Ok(value) => text(shape, &value),
            Err(failure) => return failure,
        },
        _ => "the function failed and did not say why".to_owned(),
    };
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        &message[..end],
    )
    .arguable()
}

/// The text of a value: what is text as it is, everything else as JSON.
fn text(shape: &Shape, value: &Value) -> String {
    if let Some(text) = plain_text(shape, value) {
        return text.to_owned();
    }
    let mut text = String::new();
    write_lines(value, 0, &mut text);
    text
}

/// A value that is text without being JSON.
fn plain_text<'a>(shape: &Shape, value: &'a Value) -> Option<&'a str> {
    match shape {
        Shape::Option(some) => plain_text(some, value),
        Shape::Bytes => value.get("text")?.as_str(),
        _ => value.as_str(),
    }
}

/// Writes JSON so that it can be cut and searched by lines without costing more than it must: what is short stays on one line, of
/// what is long each item has its own.
fn write_lines(value: &Value, depth: usize, text: &mut String) {
    let line = value.to_string();
    let (open, close) = match value {
        Value::Array(_) => ('[', ']'),
        Value::Object(_) => ('{', '}'),
        _ => (' ', ' '),
    };
    if line.len() <= LINE_BYTES_MAX || open == ' ' {
        text.push_str(&line);
        return;
    }
    let items: Vec<(Option<&String>, &Value)> = match value {
        Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
        Value::Object(items) => items.iter().map(|(key, item)| (Some(key), item)).collect(),
        _ => Vec::new(),
    };
    text.push(open);
    for (idx, (key, item)) in items.into_iter().enumerate() {
        text.push_str(if idx == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', depth + 1));
        if let Some(key) = key {
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push(':');
        }
        write_lines(item, depth + 1, text);
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', depth));
    text.push(close);
}

/// One value.
///
/// Errors: it is not of its type, which the engine does not let happen.
pub(crate) fn json(shape: &Shape, value: Val) -> Result<Value, ToolFailure> {
    Ok(match (shape, value) {
        (Shape::Bool, Val::Bool(flag)) => Value::Bool(flag),
        (Shape::Int(_), value) => int(&value).ok_or_else(mistyped)?,
        (Shape::Float32, Val::Float32(float)) => float32(float),
        (Shape::Float64, Val::Float64(float)) => float64(float),
        (Shape::Char, Val::Char(char)) => Value::String(char.to_string()),
        (Shape::String, Val::String(text)) => Value::String(text),
        (Shape::Bytes, Val::List(items)) => bytes(items)?,
        (Shape::List(item), Val::List(items)) => {
            let items = items.into_iter().map(|value| json(item, value));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        (Shape::Tuple(shapes), Val::Tuple(items)) => tuple(shapes, items)?,
        (Shape::Record(fields), Val::Record(values)) => record(fields, values)?,
        (Shape::Variant(cases), Val::Variant(name, value)) => variant(cases, &name, value)?,
        (Shape::Enum(names), Val::Enum(found)) => {
            let name = names.iter().find(|name| name.wit == found);
            name.ok_or_else(mistyped)?.json.as_str().into()
        }
        (Shape::Flags(names), Val::Flags(found)) => {
            let set = names.iter().filter(|name| found.contains(&name.wit));
            Value::Array(set.map(|name| name.json.as_str().into()).collect())
        }
        (Shape::Option(_), Val::Option(None)) => Value::Null,
        (Shape::Option(shape), Val::Option(Some(value))) => some(shape, *value)?,
        (Shape::Result { ok, error }, Val::Result(value)) => {
            let (key, shape, value) = match value {
                Ok(value) => ("ok", ok, value),
                Err(value) => ("error", error, value),
            };
            json!({ key: payload(shape.as_deref(), value)? })
        }
        _ => return Err(mistyped()),
    })
}

fn some(shape: &Shape, value: Val) -> Result<Value, ToolFailure> {
    match (shape, value) {
        (Shape::Option(_), Val::Option(None)) => Ok(json!({})),
        (Shape::Option(inner), Val::Option(Some(value))) => {
            Ok(json!({ "value": some(inner, *value)? }))
        }
        (shape, value) => json(shape, value),
    }
}

fn payload(shape: Option<&Shape>, value: Option<Box<Val>>) -> Result<Value, ToolFailure> {
    match (shape, value) {
        (None, None) => Ok(Value::Bool(true)),
        (Some(shape), Some(value)) => json(shape, *value),
        _ => Err(mistyped()),
    }
}

/// A field that is none is omitted.
fn record(fields: &[Field], values: Vec<(String, Val)>) -> Result<Value, ToolFailure> {
    let mut object = Map::new();
    if fields.len() != values.len() {
        return Err(mistyped());
    }
    for (field, (_, value)) in fields.iter().zip(values) {
        let value = json(&field.shape, value)?;
        if !(field.shape.is_nullable() && value.is_null()) {
            object.insert(field.name.json.clone(), value);
        }
    }
    Ok(Value::Object(object))
}

fn tuple(shapes: &[Shape], items: Vec<Val>) -> Result<Value, ToolFailure> {
    if Shape::is_uniform(shapes) {
        let items = shapes
            .iter()
            .zip(items)
            .map(|(shape, value)| json(shape, value));
        return Ok(Value::Array(items.collect::<Result<_, _>>()?));
    }
    let fields: Vec<Field> = shapes.iter().enumerate().map(super::item_field).collect();
    let values = items.into_iter().map(|value| (String::new(), value));
    record(&fields, values.collect())
}

fn variant(cases: &[Case], name: &str, value: Option<Box<Val>>) -> Result<Value, ToolFailure> {
    let case = cases.iter().find(|case| case.name.wit == name);
    let case = case.ok_or_else(mistyped)?;
    let key = case.name.json.as_str();
    Ok(json!({ key: payload(case.payload.as_ref(), value)? }))
}

fn int(value: &Val) -> Option<Value> {
    let int: i128 = match value {
        Val::U8(int) => (*int).into(),
        Val::S8(int) => (*int).into(),
        Val::U16(int) => (*int).into(),
        Val::S16(int) => (*int).into(),
        Val::U32(int) => (*int).into(),
        Val::S32(int) => (*int).into(),
        Val::U64(int) => (*int).into(),
        Val::S64(int) => (*int).into(),
        _ => return None,
    };
    Some(match i64::try_from(int) {
        Ok(safe) if int.abs() <= SAFE_INTEGER_MAX => Value::from(safe),
        _ => Value::String(int.to_string()),
    })
}

fn float64(float: f64) -> Value {
    match Number::from_f64(float) {
        Some(number) => Value::Number(number),
        None if float.is_nan() => "NaN".into(),
        None if float > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// The shortest number that reads back as the same: 0.1, not 0.10000000149011612.
fn float32(float: f32) -> Value {
    let exact = f64::from(float);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "compared with what it came from"
    )]
    let short = float
        .to_string()
        .parse::<f64>()
        .ok()
        .filter(|short| (*short as f32).to_bits() == float.to_bits());
    float64(short.unwrap_or(exact))
}

/// Bytes that are readable text as text, others in base64.
fn bytes(items: Vec<Val>) -> Result<Value, ToolFailure> {
    let bytes = items.into_iter().map(|item| match item {
        Val::U8(byte) => Ok(byte),
        _ => Err(mistyped()),
    });
    let bytes: Vec<u8> = bytes.collect::<Result<_, _>>()?;
    let is_odd = |char: char| char.is_control() && !matches!(char, '\n' | '\r' | '\t');
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains(is_odd) => json!({ "text": text }),
        Ok(text) => json!({ "base64": STANDARD.encode(text) }),
        Err(binary) => json!({ "base64": STANDARD.encode(binary.as_bytes()) }),
    })
}

fn mistyped() -> ToolFailure {
    broken("the plugin returned a value that is not of its type".to_owned())
}

fn broken(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::ResultInterpretation,
        message,
    )
}
