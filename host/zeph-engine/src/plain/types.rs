//! The names that types have where a function stands, and signatures as their author wrote them. A compiled type does not know its
//! name, so it is found again by what it is made of; where two named types look alike, neither is named.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::name::FieldName;
use super::shape::{Field, Int, Shape};

/// Most characters of a signature.
const SIGNATURE_CHARS_MAX: usize = 600;

/// The named types of one interface, or of the component itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypeNames {
    interface: String,
    /// By kind and members; none where several types have the same.
    by_members: HashMap<String, Option<String>>,
}

impl TypeNames {
    /// No names yet; `interface` is empty for the component itself.
    pub(crate) fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            by_members: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, name: &str, shape: &Shape) {
        let Some(members) = members(shape) else {
            return;
        };
        match self.by_members.entry(members) {
            Entry::Vacant(entry) => {
                entry.insert(Some(name.to_owned()));
            }
            Entry::Occupied(mut entry) => {
                let is_other = entry.get().as_deref() != Some(name);
                if is_other {
                    entry.insert(None);
                }
            }
        }
    }

    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) fn name_of(&self, shape: &Shape) -> Option<&str> {
        self.by_members.get(&members(shape)?)?.as_deref()
    }

    /// `name: func(a: u32, b: point) -> string`.
    pub(crate) fn signature(&self, name: &str, params: &[Field], result: Option<&Shape>) -> String {
        let params: Vec<String> = params
            .iter()
            .map(|param| format!("{}: {}", param.name.wit, self.written(&param.shape)))
            .collect();
        let mut signature = format!("{name}: func({})", params.join(", "));
        if let Some(result) = result {
            signature += &format!(" -> {}", self.written(result));
        }
        zeph_core::text::plain_line(&signature, SIGNATURE_CHARS_MAX)
    }

    fn written(&self, shape: &Shape) -> String {
        if let Some(name) = self.name_of(shape) {
            return name.to_owned();
        }
        let of = |kind: &str, shapes: &[&Shape]| {
            let inner: Vec<String> = shapes.iter().map(|shape| self.written(shape)).collect();
            format!("{kind}<{}>", inner.join(", "))
        };
        match shape {
            Shape::Bool => "bool".to_owned(),
            Shape::Int(int) => int_name(*int).to_owned(),
            Shape::Float32 => "f32".to_owned(),
            Shape::Float64 => "f64".to_owned(),
            Shape::Char => "char".to_owned(),
            Shape::String => "string".to_owned(),
            Shape::Bytes => "list<u8>".to_owned(),
            Shape::List(item) => of("list", &[item]),
            Shape::Tuple(items) => of("tuple", &items.iter().collect::<Vec<_>>()),
            Shape::Option(some) => of("option", &[some]),
            Shape::Result { ok, error } => match (ok.as_deref(), error.as_deref()) {
                (None, None) => "result".to_owned(),
                (Some(ok), None) => of("result", &[ok]),
                (None, Some(error)) => format!("result<_, {}>", self.written(error)),
                (Some(ok), Some(error)) => of("result", &[ok, error]),
            },
            Shape::Record(_) => "record".to_owned(),
            Shape::Variant(_) => "variant".to_owned(),
            Shape::Enum(_) => "enum".to_owned(),
            Shape::Flags(_) => "flags".to_owned(),
        }
    }
}

fn int_name(int: Int) -> &'static str {
    match int {
        Int::U8 => "u8",
        Int::S8 => "s8",
        Int::U16 => "u16",
        Int::S16 => "s16",
        Int::U32 => "u32",
        Int::S32 => "s32",
        Int::U64 => "u64",
        Int::S64 => "s64",
    }
}

/// What a type that needs a name is made of; none for a type that has no name of its own.
fn members(shape: &Shape) -> Option<String> {
    let (kind, names): (&str, Vec<&FieldName>) = match shape {
        Shape::Record(fields) => ("record", fields.iter().map(|field| &field.name).collect()),
        Shape::Variant(cases) => ("variant", cases.iter().map(|case| &case.name).collect()),
        Shape::Enum(names) => ("enum", names.iter().collect()),
        Shape::Flags(names) => ("flags", names.iter().collect()),
        _ => return None,
    };
    let words = names.into_iter().map(|name| name.wit.as_str());
    Some(
        [kind]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" "),
    )
}
