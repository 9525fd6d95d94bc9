//! JSON → the values a function takes. Every error names its place; nothing here can panic on what a model writes.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasmtime::component::Val;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::text::counted;

use super::name::FieldName;
use super::shape::{Case, Field, Int, Shape};

/// Most values of one call, a byte counted as one. Each takes some forty bytes on its way into a guest.
const VALUES_MAX: usize = 1 << 20;

/// Accepts base64 with and without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Turns arguments into the values of `params`, in their order.
///
/// Errors: `type_mismatch` when a JSON type is wrong, `invalid_parameters` for everything else, with the place of the value.
pub(crate) fn arguments(
    params: &[Field],
    arguments: &Map<String, Value>,
) -> Result<Vec<Val>, ToolFailure> {
    let mut reader = Reader {
        place: "arguments".to_owned(),
        n_left: VALUES_MAX,
    };
    let fields = reader.fields(params, arguments)?;
    Ok(fields.into_iter().map(|(_, value)| value).collect())
}

struct Reader {
    /// Where the value stands that is being read, such as `arguments.items[3].size`.
    place: String,
    n_left: usize,
}

type Read<T> = Result<T, ToolFailure>;

impl Reader {
    fn value(&mut self, shape: &Shape, value: &Value) -> Read<Val> {
        self.count(1)?;
        match shape {
            Shape::Bool => match value {
                Value::Bool(flag) => Ok(Val::Bool(*flag)),
                other => Err(self.mismatch("true or false", other)),
            },
            Shape::Int(int) => self.int(*int, value),
            Shape::Float32 => self.float32(value),
            Shape::Float64 => self.float64(value).map(Val::Float64),
            Shape::Char => self.char(value),
            Shape::String => match value {
                Value::String(text) => Ok(Val::String(text.clone())),
                other => Err(self.mismatch("a string", other)),
            },
            Shape::Bytes => self.bytes(value),
            Shape::List(item) => self.list(item, value),
            Shape::Tuple(items) => self.tuple(items, value),
            Shape::Record(fields) => {
                let values = self.object(value)?;
                self.fields(fields, values).map(Val::Record)
            }
            Shape::Variant(cases) => self.variant(cases, value),
            Shape::Enum(names) => {
                let name = self.name(names, value)?;
                Ok(Val::Enum(name.wit.clone()))
            }
            Shape::Flags(names) => self.flags(names, value),
            Shape::Option(some) => self.option(some, value),
            Shape::Result { ok, error } => self.result(ok.as_deref(), error.as_deref(), value),
        }
    }

    /// The fields of a record or the parameters of a function, in their order.
    fn fields(
        &mut self,
        fields: &[Field],
        values: &Map<String, Value>,
    ) -> Read<Vec<(String, Val)>> {
        let known = |key: &String| fields.iter().any(|field| field.name.json == *key);
        if let Some(unknown) = values.keys().find(|key| !known(key)) {
            let unknown = one_line(unknown, 60);
            return Err(self.invalid(&format!("there is no `{unknown}`")));
        }
        let read = fields.iter().map(|field| {
            let name = &field.name;
            let value = match (values.get(&name.json), &field.shape) {
                (None, Shape::Option(_)) => Val::Option(None),
                (None, _) => return Err(self.invalid(&format!("`{}` is missing", name.json))),
                (Some(value), shape) => self.at(&name.json, |this| this.value(shape, value))?,
            };
            Ok((name.wit.clone(), value))
        });
        read.collect()
    }

    fn int(&self, int: Int, value: &Value) -> Read<Val> {
        let (min, max) = int.range();
        let wanted = || match int {
            Int::U64 => {
                "an integer of 0 to 18446744073709551615, as a number or a string".to_owned()
            }
            Int::S64 => "an integer of 64 bits, as a number or a string".to_owned(),
            _ => format!("an integer of {min} to {max}"),
        };
        let found = match value {
            Value::Number(number) => whole(number),
            Value::String(digits) if int.is_wide() => digits.parse::<i128>().ok(),
            other => return Err(self.mismatch(&wanted(), other)),
        };
        let within = found.filter(|found| (min..=max).contains(found));
        let fit = within.and_then(|found| int_value(int, found));
        fit.ok_or_else(|| self.unfit(&wanted(), value))
    }

    fn float64(&self, value: &Value) -> Read<f64> {
        let Value::Number(number) = value else {
            return Err(self.mismatch("a number", value));
        };
        let finite = number.as_f64().filter(|float| float.is_finite());
        finite.ok_or_else(|| self.unfit("a finite number", value))
    }

    fn float32(&self, value: &Value) -> Read<Val> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the nearest is wanted; beyond the range it is infinite, which is refused"
        )]
        let float = self.float64(value)? as f32;
        if float.is_finite() {
            Ok(Val::Float32(float))
        } else {
            Err(self.unfit("a number within ±3.4e38", value))
        }
    }

    fn char(&self, value: &Value) -> Read<Val> {
        let Value::String(text) = value else {
            return Err(self.mismatch("a string of one character", value));
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => Ok(Val::Char(char)),
            _ => Err(self.unfit("a string of one character", value)),
        }
    }

    /// `{"text": …}` or `{"base64": …}`.
    fn bytes(&mut self, value: &Value) -> Read<Val> {
        let wanted = "an object with either `text` or `base64`";
        let (key, value) = self.only_key(wanted, value)?;
        let place = key.clone();
        self.at(&place, |this| {
            let Value::String(text) = value else {
                return Err(this.mismatch("a string", value));
            };
            let bytes = match key.as_str() {
                "text" => text.as_bytes().to_vec(),
                "base64" => BASE64
                    .decode(text)
                    .map_err(|_bad| this.unfit("base64", value))?,
                _ => return Err(this.invalid(&format!("expected {wanted}"))),
            };
            this.count(bytes.len())?;
            Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
        })
    }

    fn list(&mut self, item: &Shape, value: &Value) -> Read<Val> {
        let Value::Array(items) = value else {
            return Err(self.mismatch("an array", value));
        };
        let read = items
            .iter()
            .enumerate()
            .map(|(idx, value)| self.at_index(idx, |this| this.value(item, value)));
        read.collect::<Read<_>>().map(Val::List)
    }

    fn tuple(&mut self, shapes: &[Shape], value: &Value) -> Read<Val> {
        if !Shape::is_uniform(shapes) {
            return self.mixed_tuple(shapes, value);
        }
        let wanted = format!("an array of {}", counted(shapes.len(), "item", "items"));
        let Value::Array(items) = value else {
            return Err(self.mismatch(&wanted, value));
        };
        if items.len() != shapes.len() {
            return Err(self.unfit(&wanted, value));
        }
        let read = shapes.iter().zip(items).enumerate();
        let read =
            read.map(|(idx, (shape, value))| self.at_index(idx, |this| this.value(shape, value)));
        read.collect::<Read<_>>().map(Val::Tuple)
    }

    /// A tuple of several types is an object of `item_0`, `item_1`, …
    fn mixed_tuple(&mut self, shapes: &[Shape], value: &Value) -> Read<Val> {
        let values = self.object(value)?;
        let fields: Vec<Field> = shapes.iter().enumerate().map(super::item_field).collect();
        let read = self.fields(&fields, values)?;
        Ok(Val::Tuple(
            read.into_iter().map(|(_, value)| value).collect(),
        ))
    }

    fn variant(&mut self, cases: &[Case], value: &Value) -> Read<Val> {
        let wanted = || {
            let names: Vec<&str> = cases.iter().map(|case| case.name.json.as_str()).collect();
            one_line(
                &format!("an object with exactly one of: {}", names.join(", ")),
                300,
            )
        };
        let (key, value) = self.only_key(&wanted(), value)?;
        let Some(case) = cases.iter().find(|case| case.name.json == *key) else {
            return Err(self.invalid(&format!("expected {}", wanted())));
        };
        let payload = self.payload(&case.name.json, case.payload.as_ref(), value)?;
        Ok(Val::Variant(case.name.wit.clone(), payload))
    }

    fn result(&mut self, ok: Option<&Shape>, error: Option<&Shape>, value: &Value) -> Read<Val> {
        let wanted = "an object with either `ok` or `error`";
        let (key, value) = self.only_key(wanted, value)?;
        match key.as_str() {
            "ok" => Ok(Val::Result(Ok(self.payload("ok", ok, value)?))),
            "error" => Ok(Val::Result(Err(self.payload("error", error, value)?))),
            _ => Err(self.invalid(&format!("expected {wanted}"))),
        }
    }

    /// What a case holds. A case without a value is written `true`.
    fn payload(
        &mut self,
        case: &str,
        shape: Option<&Shape>,
        value: &Value,
    ) -> Read<Option<Box<Val>>> {
        self.at(case, |this| match (shape, value) {
            (Some(shape), value) => Ok(Some(Box::new(this.value(shape, value)?))),
            (None, Value::Bool(true)) => Ok(None),
            (None, other) => Err(this.mismatch("true", other)),
        })
    }

    fn flags(&mut self, names: &[FieldName], value: &Value) -> Read<Val> {
        let Value::Array(items) = value else {
            return Err(self.mismatch("an array", value));
        };
        self.count(items.len())?;
        let mut set = Vec::new();
        for (idx, item) in items.iter().enumerate() {
            let name = self.at_index(idx, |this| this.name(names, item))?;
            if set.contains(&name.wit) {
                return Err(self.invalid(&format!("`{}` stands twice", name.json)));
            }
            set.push(name.wit.clone());
        }
        Ok(Val::Flags(set))
    }

    fn option(&mut self, some: &Shape, value: &Value) -> Read<Val> {
        if value.is_null() {
            return Ok(Val::Option(None));
        }
        let value = self.some(some, value)?;
        Ok(Val::Option(Some(Box::new(value))))
    }

    /// What an option holds; an option in it is `{"value": …}`, or `{}` for none.
    fn some(&mut self, shape: &Shape, value: &Value) -> Read<Val> {
        let Shape::Option(inner) = shape else {
            return self.value(shape, value);
        };
        self.count(1)?;
        let values = self.object(value)?;
        if let Some(unknown) = values.keys().find(|key| *key != "value") {
            let unknown = one_line(unknown, 60);
            return Err(self.invalid(&format!("there is no `{unknown}`")));
        }
        let value = values.get("value").unwrap_or(&Value::Null);
        self.at("value", |this| this.option(inner, value))
    }

    fn name<'a>(&self, names: &'a [FieldName], value: &Value) -> Read<&'a FieldName> {
        let wanted = || {
            let names: Vec<&str> = names.iter().map(|name| name.json.as_str()).collect();
            one_line(&format!("one of: {}", names.join(", ")), 300)
        };
        let Value::String(text) = value else {
            return Err(self.mismatch(&wanted(), value));
        };
        let found = names.iter().find(|name| name.json == *text);
        found.ok_or_else(|| self.unfit(&wanted(), value))
    }

    fn only_key<'a>(&self, wanted: &str, value: &'a Value) -> Read<(&'a String, &'a Value)> {
        let Value::Object(values) = value else {
            return Err(self.mismatch(wanted, value));
        };
        let mut entries = values.iter();
        match (entries.next(), entries.next()) {
            (Some(entry), None) => Ok(entry),
            _ => Err(self.unfit(wanted, value)),
        }
    }

    fn object<'a>(&self, value: &'a Value) -> Read<&'a Map<String, Value>> {
        let object = value.as_object();
        object.ok_or_else(|| self.mismatch("an object", value))
    }

    fn at<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let length = self.place.len();
        self.place.push('.');
        self.place.push_str(key);
        let read = read(self)?;
        self.place.truncate(length);
        Ok(read)
    }

    fn at_index<T>(&mut self, idx: usize, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let length = self.place.len();
        // Writing to a string cannot fail.
        let _written = write!(self.place, "[{idx}]");
        let read = read(self)?;
        self.place.truncate(length);
        Ok(read)
    }

    fn count(&mut self, n_values: usize) -> Read<()> {
        match self.n_left.checked_sub(n_values) {
            Some(n_left) => {
                self.n_left = n_left;
                Ok(())
            }
            None => Err(failure(
                ErrorCategory::InvalidParameters,
                format!("the arguments have more than {VALUES_MAX} values or bytes"),
            )),
        }
    }

    fn mismatch(&self, wanted: &str, value: &Value) -> ToolFailure {
        self.expected(ErrorCategory::TypeMismatch, wanted, value)
    }

    fn unfit(&self, wanted: &str, value: &Value) -> ToolFailure {
        self.expected(ErrorCategory::InvalidParameters, wanted, value)
    }

    fn expected(&self, category: ErrorCategory, wanted: &str, value: &Value) -> ToolFailure {
        let place = one_line(&self.place, 200);
        let got = shown(value);
        failure(category, format!("`{place}`: expected {wanted}, not {got}"))
    }

    fn invalid(&self, problem: &str) -> ToolFailure {
        let place = one_line(&self.place, 200);
        failure(
            ErrorCategory::InvalidParameters,
            format!("`{place}`: {problem}"),
        )
    }
}

fn failure(category: ErrorCategory, message: String) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::ParamHandling, message)
}

/// A value in an error: itself when it is short, else its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(values) if values.len() > 1 => format!("an object of {} keys", values.len()),
        Value::Object(values) => match values.keys().next() {
            Some(key) => format!("an object with `{}`", one_line(key, 60)),
            None => "an empty object".to_owned(),
        },
        Value::String(text) => format!("the string {:?}", one_line(text, 60)),
        other => other.to_string(),
    }
}

/// A number without a fraction. Of floats only those are taken that stand for one integer (RFC 8259, section 6).
fn whole(number: &serde_json::Number) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(int) = number.as_i64() {
        return Some(int.into());
    }
    if let Some(int) = number.as_u64() {
        return Some(int.into());
    }
    let float = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within 2^53 by the guard"
    )]
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i128)
}

fn int_value(int: Int, found: i128) -> Option<Val> {
    Some(match int {
        Int::U8 => Val::U8(found.try_into().ok()?),
        Int::S8 => Val::S8(found.try_into().ok()?),
        Int::U16 => Val::U16(found.try_into().ok()?),
        Int::S16 => Val::S16(found.try_into().ok()?),
        Int::U32 => Val::U32(found.try_into().ok()?),
        Int::S32 => Val::S32(found.try_into().ok()?),
        Int::U64 => Val::U64(found.try_into().ok()?),
        Int::S64 => Val::S64(found.try_into().ok()?),
    })
}
