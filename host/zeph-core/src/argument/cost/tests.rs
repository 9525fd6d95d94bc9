use std::thread;

use serde_json::{Map, Value, json};

use crate::argument::Parameters;

/// `expect` is a part of the reason; none is a schema that is taken.
#[track_caller]
fn check(mut schema: Value, expect: &str) {
    schema["type"] = json!("object");
    match (Parameters::new(schema), expect) {
        (Ok(_), "") => {}
        (Ok(_), _) => panic!("taken; expected `{expect}`"),
        (Err(error), "") => panic!("refused: {error}"),
        (Err(error), _) => assert!(error.0.contains(expect), "{error}"),
    }
}

/// Definitions `a0` to `a<n>`, each made by `step` from the reference to the next; `last` ends them.
fn chain(n: usize, step: impl Fn(Value) -> Value, last: Value) -> Map<String, Value> {
    let definition = |idx: usize| step(json!({"$ref": format!("#/$defs/a{}", idx + 1)}));
    let steps = (0..n).map(|idx| (format!("a{idx}"), definition(idx)));
    steps.chain([(format!("a{n}"), last)]).collect()
}

#[test]
fn schemas_of_real_tools_are_taken() {
    check(json!({}), "");
    check(
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/tool",
               "properties": {"id": {"type": "string"}, "$id": {"type": "string"}}}),
        "",
    );
    let point = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    check(
        json!({"properties": {"from": {"$ref": "#/$defs/p"}, "to": {"$ref": "#/$defs/p"}}, "$defs": {"p": point}}),
        "",
    );
    let wide: Map<String, Value> = (0..500)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            )
        })
        .collect();
    check(json!({"properties": wide}), "");
}

#[test]
fn recursion_with_one_way_at_each_place_is_taken() {
    let node =
        json!({"properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}});
    check(
        json!({"properties": {"tree": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}),
        "",
    );
    let filter = json!({"anyOf": [
        {"properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}},
        {"properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}}},
        {"properties": {"not": {"$ref": "#/$defs/f"}}},
    ]});
    check(
        json!({"properties": {"where": {"$ref": "#/$defs/f"}}, "$defs": {"f": filter}}),
        "",
    );
    let any = json!({"anyOf": [
        {"type": "array", "items": {"$ref": "#/$defs/v"}},
        {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": {"$ref": "#/$defs/v"}},
    ]});
    check(
        json!({"properties": {"value": {"$ref": "#/$defs/v"}}, "$defs": {"v": any}}),
        "",
    );
    check(json!({"properties": {"self": {"$ref": "#"}}}), "");
}

#[test]
fn what_multiplies_is_refused() {
    let twice = |next: Value| json!({"allOf": [next, next]});
    check(
        json!({"$ref": "#/$defs/a0", "$defs": chain(12, twice, json!({}))}),
        "more than 4096 checks",
    );
    let look_again = |next: Value| json!({"unevaluatedProperties": false, "anyOf": [next]});
    check(
        json!({"$ref": "#/$defs/a0", "$defs": chain(14, look_again, json!({}))}),
        "more than 4096 checks",
    );
    let (a, again) = (json!({"$ref": "#"}), "in more than one way");
    check(
        json!({"allOf": [{"properties": {"a": a}}, {"properties": {"a": a}}]}),
        again,
    );
    check(
        json!({"properties": {"a": a}, "patternProperties": {"^a": a}}),
        again,
    );
    check(
        json!({"allOf": [{"properties": {"a": a}}, {"additionalProperties": a}]}),
        again,
    );
    check(
        json!({"properties": {"a": {"allOf": [a, {"properties": {"a": a}}]}}}),
        again,
    );
    check(
        json!({"properties": {"a": {"prefixItems": [a], "contains": a}}}),
        again,
    );
    check(
        json!({"properties": {"a": {"items": a, "unevaluatedItems": a}}}),
        again,
    );
}

#[test]
fn patterns_have_a_measure() {
    let long = |n| json!({"properties": {"a": {"pattern": "a".repeat(n)}}, "patternProperties": {"b": {}}});
    check(long(16_000), "");
    check(long(17_000), "its patterns have 17001 bytes");
}

#[test]
fn values_to_compare_with_have_a_measure() {
    let names = |n: usize| json!({"properties": {"a": {"enum": (0..n).map(|n| format!("n{n}")).collect::<Vec<_>>()}}});
    check(names(5_000), "");
    check(names(20_000), "hold 20001 values");
    let list =
        |n: usize| json!({"properties": {"a": {"const": vec![1; n]}, "enum": {}, "const": {}}});
    check(list(5_000), "");
    check(list(20_000), "hold 20002 values");
}

#[test]
fn what_goes_on_and_on_is_refused() {
    check(json!({"allOf": [{"$ref": "#"}]}), "refers to itself");
    check(
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        "refers to itself",
    );
    let once = |next: Value| json!({"allOf": [next]});
    check(
        json!({"$ref": "#/$defs/a0", "$defs": chain(40, once, json!({}))}),
        "deeper than 32 levels",
    );
}

#[test]
fn only_places_in_the_schema_itself_are_followed() {
    let refers = |to: &str| json!({"properties": {"n": {"$ref": to}}, "$defs": {"a": {}}});
    check(refers("#/$defs/a"), "");
    check(refers("#/$defs/b"), "where nothing is");
    for elsewhere in [
        "http://127.0.0.1:1/schema.json",
        "file:///etc/passwd",
        "other.json",
        "#%2F$defs%2Fa",
        "#/%24defs/a",
        "",
    ] {
        check(refers(elsewhere), "only places in itself");
    }
    for key in ["$dynamicRef", "$recursiveRef", "$schema"] {
        check(json!({"$defs": {"a": {key: "x"}}}), "is not supported");
    }
    check(
        json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        "too old",
    );
}

#[test]
fn names_of_places_are_followed_where_they_are_clear() {
    let named = |a: Value, b: Value| json!({"properties": {"n": {"$ref": "#x"}}, "$defs": {"a": a, "b": b}});
    let x = json!({"$anchor": "x", "type": "string"});
    check(named(x.clone(), json!({})), "");
    check(named(json!({"$dynamicAnchor": "x"}), json!({})), "");
    check(named(x.clone(), x.clone()), "where nothing is");
    check(named(json!({}), json!({})), "where nothing is");
    // What they cost counts like that of any other place.
    check(
        named(
            json!({"$anchor": "x", "allOf": [{"$ref": "#x"}]}),
            json!({}),
        ),
        "refers to itself",
    );
    let other = |inner: Value| json!({"$defs": {"a": {"$id": "https://example.com/a", "properties": {"b": inner}}}});
    check(other(json!({"type": "string"})), "");
    check(other(json!({"$ref": "#/$defs/a"})), "a reference");
    check(other(x), "a reference");
}

#[test]
fn a_validator_agrees_about_names() {
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"a": {"$ref": "#address"}},
        "$defs": {"address": {"$anchor": "address", "type": "object", "required": ["city"]}}});
    let parameters = Parameters::new(schema).unwrap();
    parameters.check().unwrap();
    assert!(parameters.read(json!({"a": {"city": "x"}})).is_ok());
    assert!(parameters.read(json!({"a": {}})).is_err());
    // Draft 7 knows no such keyword: its validator finds no place of this name.
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {"$ref": "#b"}}, "definitions": {"b": {"$id": "#b", "type": "string"}}});
    let parameters = Parameters::new(old).unwrap();
    parameters.check().unwrap();
    assert!(parameters.read(json!({"a": "x"})).is_ok());
}

/// The deepest schema that is taken, with the deepest value a request can have, on the stack of any thread.
#[test]
fn the_deepest_that_is_taken_fits_a_stack() {
    let once = |next: Value| json!({"allOf": [next]});
    let again = json!({"properties": {"a": {"$ref": "#/$defs/a0"}}});
    let schema = json!({"type": "object", "$ref": "#/$defs/a0", "$defs": chain(14, once, again)});
    let parameters = Parameters::new(schema).unwrap();
    let deepest = (0..126).fold(json!({}), |inner, _| json!({"a": inner}));
    let thread = thread::Builder::new().stack_size(2 << 20);
    let read = thread.spawn(move || parameters.read(deepest)).unwrap();
    assert!(read.join().unwrap().is_ok());
}
