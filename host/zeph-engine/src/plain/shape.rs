//! The types of a plain component as far as JSON has words for them. What JSON has no words for (handles, streams) has no shape, and
//! a function that needs it is not offered.

use wasmtime::component::types::Case as WasmCase;
use wasmtime::component::{Type, types};

use super::name::FieldName;

/// Deepest nesting of types. Each level is two of JSON at most, and JSON readers stop at 128.
pub(crate) const DEPTH_MAX: usize = 24;

/// Most types, fields and cases of one function, and most bytes of their names: a model that has to fill in more will not get them
/// right, and a schema of so many is always smaller than what a typed plugin may have.
const NODES_MAX: usize = 1_000;
const NAME_BYTES_MAX: usize = 16 * 1024;

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    Int(Int),
    Float32,
    Float64,
    Char,
    String,
    /// `list<u8>`.
    Bytes,
    List(Box<Shape>),
    Tuple(Vec<Shape>),
    Record(Vec<Field>),
    Variant(Vec<Case>),
    Enum(Vec<FieldName>),
    Flags(Vec<FieldName>),
    Option(Box<Shape>),
    Result {
        ok: Option<Box<Shape>>,
        error: Option<Box<Shape>>,
    },
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Int {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: FieldName,
    pub(crate) shape: Shape,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: FieldName,
    pub(crate) payload: Option<Shape>,
}

impl Int {
    /// The smallest and the largest value.
    pub(crate) fn range(self) -> (i128, i128) {
        match self {
            Self::U8 => (0, u8::MAX.into()),
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
        }
    }

    /// Whether values lie beyond the integers every JSON reader keeps exactly.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::U64 | Self::S64)
    }
}

impl Shape {
    /// Whether JSON's null is one of its values.
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Whether all items of the tuple are of one type, so that it reads as an array.
    pub(crate) fn is_uniform(items: &[Self]) -> bool {
        items.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// Reads the types of one function, within limits.
pub(crate) struct Reader {
    n_nodes: usize,
    n_name_bytes: usize,
    depth: usize,
}

/// Why a type has no shape, to be put after "it uses".
pub(crate) type Unsupported = &'static str;

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            n_nodes: 0,
            n_name_bytes: 0,
            depth: 0,
        }
    }

    /// The shape of `ty`.
    ///
    /// Errors: what it uses that JSON has no words for, or that it is too large.
    pub(crate) fn read(&mut self, ty: &Type) -> Result<Shape, Unsupported> {
        self.count()?;
        if self.depth == DEPTH_MAX {
            return Err("types that are nested too deeply");
        }
        self.depth += 1;
        let shape = self.read_one(ty)?;
        self.depth -= 1;
        Ok(shape)
    }

    fn read_one(&mut self, ty: &Type) -> Result<Shape, Unsupported> {
        Ok(match ty {
            Type::Bool => Shape::Bool,
            Type::U8 => Shape::Int(Int::U8),
            Type::S8 => Shape::Int(Int::S8),
            Type::U16 => Shape::Int(Int::U16),
            Type::S16 => Shape::Int(Int::S16),
            Type::U32 => Shape::Int(Int::U32),
            Type::S32 => Shape::Int(Int::S32),
            Type::U64 => Shape::Int(Int::U64),
            Type::S64 => Shape::Int(Int::S64),
            Type::Float32 => Shape::Float32,
            Type::Float64 => Shape::Float64,
            Type::Char => Shape::Char,
            Type::String => Shape::String,
            Type::List(list) => match list.ty() {
                Type::U8 => Shape::Bytes,
                item => Shape::List(Box::new(self.read(&item)?)),
            },
            Type::Tuple(tuple) => {
                let items = tuple.types().map(|item| self.read(&item));
                Shape::Tuple(items.collect::<Result<_, _>>()?)
            }
            Type::Record(record) => Shape::Record(self.record(record)?),
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| self.case(&case));
                Shape::Variant(cases.collect::<Result<_, _>>()?)
            }
            Type::Enum(cases) => Shape::Enum(self.names(cases.names())?),
            Type::Flags(flags) => Shape::Flags(self.names(flags.names())?),
            Type::Option(option) => Shape::Option(Box::new(self.read(&option.ty())?)),
            Type::Result(result) => Shape::Result {
                ok: self.payload(result.ok())?.map(Box::new),
                error: self.payload(result.err())?.map(Box::new),
            },
            Type::Own(_) | Type::Borrow(_) => return Err("a resource"),
            Type::Future(_) => return Err("a future"),
            Type::Stream(_) => return Err("a stream"),
            Type::ErrorContext => return Err("an error-context"),
            Type::Map(_) => return Err("a map"),
            Type::FixedLengthList(_) => return Err("a list of fixed length"),
        })
    }

    /// A field, or a parameter.
    pub(crate) fn field(&mut self, name: &str, ty: &Type) -> Result<Field, Unsupported> {
        Ok(Field {
            name: self.name(name)?,
            shape: self.read(ty)?,
        })
    }

    fn record(&mut self, record: &types::Record) -> Result<Vec<Field>, Unsupported> {
        let fields = record
            .fields()
            .map(|field| self.field(field.name, &field.ty));
        fields.collect()
    }

    fn case(&mut self, case: &WasmCase<'_>) -> Result<Case, Unsupported> {
        Ok(Case {
            name: self.name(case.name)?,
            payload: self.payload(case.ty.clone())?,
        })
    }

    fn payload(&mut self, ty: Option<Type>) -> Result<Option<Shape>, Unsupported> {
        ty.map(|ty| self.read(&ty)).transpose()
    }

    fn names<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<FieldName>, Unsupported> {
        names.map(|name| self.name(name)).collect()
    }

    fn name(&mut self, name: &str) -> Result<FieldName, Unsupported> {
        self.count()?;
        self.n_name_bytes += name.len();
        if self.n_name_bytes > NAME_BYTES_MAX {
            return Err("names that are too long");
        }
        Ok(FieldName::new(name))
    }

    fn count(&mut self) -> Result<(), Unsupported> {
        self.n_nodes += 1;
        if self.n_nodes > NODES_MAX {
            return Err("types of too many parts");
        }
        Ok(())
    }
}
