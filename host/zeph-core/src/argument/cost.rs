//! The cost of checking a value against a schema, determined by walking the schema once with all references followed.
//!
//! A schema comes from a plugin, checking happens in the host, and nothing can stop it half way: a few lines that refer to each
//! other are billions of checks, or recursion without an end. So a schema is refused beforehand when one value would take too
//! many checks, when it nests too deeply, or when it recurses so that the work doubles with every level of the value. What a schema that
//! is taken costs for each part of a value is kept (`weight`), since a large value may still take too long.
//! Nothing here checks values, and nothing is fetched.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::BadSchema;

mod pattern;
mod weight;

pub(super) use weight::Weights;

/// Most checks one value may take, each subschema counting as often as it is reached. Schemas in use have some hundred.
const CHECKS_MAX: usize = 4_096;

/// Most subschemas inside one another, references followed. A level of a recursive schema takes that much stack for each of the
/// 128 levels that a value may have: measured, 2 MiB of stack, a thread's usual share, bear three times as many.
const DEPTH_MAX: usize = 32;

/// Most places where a schema may refer back to what it is part of. They are compared with each other.
const LOOPS_MAX: usize = 128;

/// Most bytes of all patterns together. Compiled, a byte may take some 20 KiB (`PATTERN_SIZE_MAX` of `zeph-schema` for every eight bytes or so).
const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Most values of all `enum` and `const` together, those inside them included. Lists of time zones or icons have some thousand.
const COMPARED_MAX: usize = 16_384;

/// Keywords that change what a reference means. Without them `#/…` is always a place in the one document.
const REBASING: [&str; 3] = ["$schema", "$dynamicRef", "$recursiveRef"];

/// Keywords that name a place. What is referred to by `$dynamicRef` alone is no other place without it.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// Keywords with a schema that is applied to the value itself.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];

/// Keywords with a list of them.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords with a map of them.
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords whose schema is applied to any item.
const ANY_ITEM: [&str; 3] = ["contains", "additionalItems", "unevaluatedItems"];

/// Keywords that look at what their neighbours checked, for which those are checked a second time.
const SECOND_LOOKS: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// What the schema takes for each part of a value.
///
/// Errors: [`BadSchema`] with what its author has to mend.
pub(super) fn weights(schema: &Value) -> Result<Weights, BadSchema> {
    let mut anchors = Anchors::new();
    let sizes = keywords(schema, SchemaPosition::Root, &mut anchors)?;
    let n_bytes = sizes.pattern_bytes;
    if n_bytes > PATTERN_BYTES_MAX {
        return bad(format!(
            "its patterns have {n_bytes} bytes; the limit is {PATTERN_BYTES_MAX}"
        ));
    }
    let n_compared = sizes.n_compared;
    if n_compared > COMPARED_MAX {
        return bad(format!(
            "its `enum` and `const` hold {n_compared} values; the limit is {COMPARED_MAX}"
        ));
    }
    let mut walk = CostWalk {
        root: schema,
        anchors,
        n_checks: 0,
        above: Vec::new(),
        place: Vec::new(),
        loops: Vec::new(),
        weights: Weights::default(),
        again: Vec::new(),
    };
    walk.schema(schema)?;
    walk.weights.add_again(&walk.again);
    Ok(walk.weights)
}

/// What is counted over a whole schema, wherever it stands.
#[derive(Default)]
struct Sizes {
    /// Bytes of all patterns.
    pattern_bytes: usize,
    /// Values that others are compared with.
    n_compared: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    Inside,
}

/// The places that have a name; none for a name that several places have. What a validator takes for no schema is among them: it finds
/// no place of the name then, or this one.
type Anchors<'a> = HashMap<&'a str, Option<&'a Value>>;

/// Looks at every keyword, wherever it stands: a reference is understood only as a place in the document itself.
fn keywords<'a>(
    value: &'a Value,
    place: SchemaPosition,
    anchors: &mut Anchors<'a>,
) -> Result<Sizes, BadSchema> {
    let mut sizes = Sizes::default();
    let inner: Vec<&Value> = match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => return Ok(sizes),
    };
    if let Value::Object(map) = value {
        let is_root = place == SchemaPosition::Root;
        let found = REBASING.iter().find(|key| {
            let is_keyword = map.get(**key).is_some_and(|value| !value.is_object());
            is_keyword && !(is_root && **key == "$schema")
        });
        if let Some(key) = found {
            return bad(format!("`{key}` inside a schema is not supported"));
        }
        named(map, value, anchors);
        if !is_root && has_base(map) && value_refers(value) {
            return bad(
                "a schema with an `$id` of its own contains a reference, which is not supported"
                    .to_owned(),
            );
        }
        if place == SchemaPosition::Root && is_old(map) {
            return bad("its `$schema` is too old: write it for draft 2020-12".to_owned());
        }
        sizes.add(map);
    }
    for inner in inner {
        let inner = keywords(inner, SchemaPosition::Inside, anchors)?;
        sizes.pattern_bytes += inner.pattern_bytes;
        sizes.n_compared += inner.n_compared;
    }
    Ok(sizes)
}

impl Sizes {
    /// Adds what stands in a schema itself.
    fn add(&mut self, map: &Map<String, Value>) {
        let pattern = map.get("pattern").and_then(Value::as_str);
        let keys = map.get("patternProperties").and_then(Value::as_object);
        let patterns = keys.into_iter().flat_map(Map::keys).map(String::as_str);
        self.pattern_bytes += patterns.chain(pattern).map(str::len).sum::<usize>();
        // Below the name of a property stands a schema.
        let values = map.get("enum").filter(|values| values.is_array());
        self.n_compared += values
            .into_iter()
            .chain(map.get("const"))
            .map(n_values)
            .sum::<usize>();
    }
}

/// How many values `value` consists of.
fn n_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(n_values).sum(),
        Value::Object(map) => map.values().map(n_values).sum(),
        _ => 0,
    }
}

/// Notes the names of a schema. In drafts 6 and 7 they stand in `$id`.
fn named<'a>(map: &'a Map<String, Value>, schema: &'a Value, anchors: &mut Anchors<'a>) {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let names = ANCHORS.iter().filter_map(|key| text(key));
    for name in names.chain(text("$id").and_then(|id| id.strip_prefix('#'))) {
        let is_same = |known: &mut Option<&'a Value>| {
            if known.is_some_and(|known| !std::ptr::eq(known, schema)) {
                *known = None;
            }
        };
        anchors
            .entry(name)
            .and_modify(is_same)
            .or_insert(Some(schema));
    }
}

/// Whether references in a schema begin at the schema, and not at the document.
fn has_base(map: &Map<String, Value>) -> bool {
    let id = map.get("$id").and_then(Value::as_str);
    id.is_some_and(|id| !id.starts_with('#'))
}

/// Whether a reference or a name stands anywhere in `value`.
fn value_refers(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            let is_text = |key: &str| map.get(key).is_some_and(Value::is_string);
            is_text("$ref") || ANCHORS.into_iter().any(is_text) || map.values().any(value_refers)
        }
        Value::Array(items) => items.iter().any(value_refers),
        _ => false,
    }
}

/// In drafts 3 and 4 the keyword `id` changes what references mean, and it is too common as a name to be refused.
fn is_old(schema: &Map<String, Value>) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str);
    draft.is_some_and(|draft| draft.contains("draft-03") || draft.contains("draft-04"))
}

/// A step from a value into one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueStep<'a> {
    Key(&'a str),
    /// Any key but those that these properties name.
    OtherKey(Option<&'a Map<String, Value>>),
    Item(usize),
    /// Any item from this one on.
    Items(usize),
    /// A key itself, as a text.
    Name,
}

impl ValueStep<'_> {
    /// One for all steps that are weighed together with this one.
    fn weighed(self) -> Self {
        match self {
            Self::OtherKey(_) => Self::OtherKey(None),
            Self::Item(_) | Self::Items(_) => Self::Items(0),
            Self::Key(_) | Self::Name => self,
        }
    }

    /// Whether one part of one value may be meant by both.
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Key(one), Self::Key(two)) => one == two,
            (Self::Key(key), Self::OtherKey(named)) | (Self::OtherKey(named), Self::Key(key)) => {
                !named.is_some_and(|named| named.contains_key(key))
            }
            (Self::OtherKey(_), Self::OtherKey(_)) | (Self::Name, Self::Name) => true,
            (Self::Item(one), Self::Item(two)) => one == two,
            (Self::Item(one), Self::Items(from)) | (Self::Items(from), Self::Item(one)) => {
                one >= from
            }
            (Self::Items(_), Self::Items(_)) => true,
            _ => false,
        }
    }
}

struct CostWalk<'a> {
    root: &'a Value,
    anchors: Anchors<'a>,
    n_checks: usize,
    /// The schemas that the present one is part of, with the length of `place` there.
    above: Vec<(&'a Value, usize)>,
    /// Where in the value the present schema is applied.
    place: Vec<ValueStep<'a>>,
    /// Where in the value a schema begins anew.
    loops: Vec<Vec<ValueStep<'a>>>,
    weights: Weights,
    /// The step to where a schema began, and the step to where it begins anew.
    again: Vec<[Option<ValueStep<'a>>; 2]>,
}

impl<'a> CostWalk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Result<(), BadSchema> {
        self.weights.add_schema(self.place.last(), schema);
        let Value::Object(map) = schema else {
            return Ok(());
        };
        self.n_checks += 1;
        if self.n_checks > CHECKS_MAX {
            return bad(format!(
                "its schema takes more than {CHECKS_MAX} checks for one value"
            ));
        }
        if self.above.len() == DEPTH_MAX {
            return bad(format!("its schema nests deeper than {DEPTH_MAX} levels"));
        }
        self.above.push((schema, self.place.len()));
        self.same_value(map)?;
        if SECOND_LOOKS.iter().any(|key| map.contains_key(*key)) {
            // The same places again are no second way.
            let loops = std::mem::take(&mut self.loops);
            self.same_value(map)?;
            self.loops = loops;
        }
        self.parts(map)?;
        self.above.pop();
        Ok(())
    }

    /// What is applied to the value itself.
    fn same_value(&mut self, map: &'a Map<String, Value>) -> Result<(), BadSchema> {
        for key in SAME_VALUE {
            map.get(key).map_or(Ok(()), |inner| self.schema(inner))?;
        }
        for key in SAME_VALUE_LISTS {
            for inner in map.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.schema(inner)?;
            }
        }
        for key in SAME_VALUE_MAPS {
            let inner = map.get(key).and_then(Value::as_object);
            inner
                .into_iter()
                .flat_map(Map::values)
                .try_for_each(|inner| self.schema(inner))?;
        }
        match map.get("$ref") {
            Some(Value::String(reference)) => self.reference(reference),
            _ => Ok(()),
        }
    }

    /// What is applied to parts of the value.
    fn parts(&mut self, map: &'a Map<String, Value>) -> Result<(), BadSchema> {
        let object = |key| map.get(key).and_then(Value::as_object);
        for (key, inner) in object("properties").into_iter().flatten() {
            self.part(ValueStep::Key(key), inner)?;
        }
        let patterns = object("patternProperties");
        self.weights
            .add_key_patterns(patterns.into_iter().flat_map(Map::keys));
        for inner in patterns.into_iter().flat_map(Map::values) {
            self.part(ValueStep::OtherKey(None), inner)?;
        }
        if let Some(inner) = map.get("additionalProperties") {
            self.part(ValueStep::OtherKey(object("properties")), inner)?;
        }
        if let Some(inner) = map.get("unevaluatedProperties") {
            self.part(ValueStep::OtherKey(None), inner)?;
        }
        if let Some(inner) = map.get("propertyNames") {
            self.part(ValueStep::Name, inner)?;
        }
        let prefix = map.get("prefixItems").and_then(Value::as_array);
        let list = map.get("items").and_then(Value::as_array);
        for (idx, inner) in prefix.into_iter().chain(list).flatten().enumerate() {
            self.part(ValueStep::Item(idx), inner)?;
        }
        if let Some(inner) = map.get("items") {
            self.part(ValueStep::Items(prefix.map_or(0, Vec::len)), inner)?;
        }
        for key in ANY_ITEM {
            if let Some(inner) = map.get(key) {
                self.part(ValueStep::Items(0), inner)?;
            }
        }
        Ok(())
    }

    fn part(&mut self, step: ValueStep<'a>, schema: &'a Value) -> Result<(), BadSchema> {
        self.place.push(step);
        self.schema(schema)?;
        self.place.pop();
        Ok(())
    }

    fn reference(&mut self, reference: &str) -> Result<(), BadSchema> {
        let shown = crate::failure::one_line(reference, 80);
        let place = reference.strip_prefix('#');
        let Some(place) = place.filter(|place| !place.contains('%')) else {
            return bad(format!(
                "its schema refers to `{shown}`: only places in itself, `#`, `#/…` and `#NAME`, are followed"
            ));
        };
        let target = match place.is_empty() || place.starts_with('/') {
            true => self.root.pointer(place),
            false => self.anchors.get(place).copied().flatten(),
        };
        let Some(target) = target else {
            return bad(format!("its schema refers to `{shown}`, where nothing is"));
        };
        let above = self
            .above
            .iter()
            .find(|(above, _)| std::ptr::eq(*above, target));
        match above {
            Some((_, depth)) => self.begins_anew(*depth, &shown),
            None => self.schema(target),
        }
    }

    /// The schema `depth` steps into the value is applied to the present part of it.
    fn begins_anew(&mut self, depth: usize, shown: &str) -> Result<(), BadSchema> {
        if depth == self.place.len() {
            return bad(format!("its schema refers to itself through `{shown}`"));
        }
        // Where two of them meet, each level of a value would be checked by both: twice the work of the level above.
        let meets = self.loops.iter().any(|other| {
            let mut pairs = other.iter().zip(&self.place);
            pairs.all(|(one, two)| one.meets(*two))
        });
        if meets || self.loops.len() == LOOPS_MAX {
            return bad(format!(
                "its schema recurses through `{shown}` in more than one way at one place"
            ));
        }
        let step = |place: &[ValueStep<'a>]| place.last().map(|step| step.weighed());
        let steps = [step(&self.place[..depth]), step(&self.place)];
        // What began at the same step is weighed there already.
        if steps[0] != steps[1] && !self.again.contains(&steps) {
            self.again.push(steps);
        }
        self.loops.push(self.place.clone());
        Ok(())
    }
}

fn bad<T>(reason: String) -> Result<T, BadSchema> {
    Err(BadSchema(reason))
}

#[cfg(test)]
mod tests;
