//! Arguments and results, both ways.

use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Val;
use zeph_core::argument::Parameters;
use zeph_core::failure::ToolFailure;

use crate::plain::docs::Docs;
use crate::plain::name::FieldName;
use crate::plain::schema::{Direction, Schemas};
use crate::plain::shape::{Case, Field, Int, Shape};
use crate::plain::types::TypeNames;
use crate::plain::{read, write};

fn field(name: &str, shape: Shape) -> Field {
    Field {
        name: FieldName::new(name),
        shape,
    }
}

fn boxed(shape: Shape) -> Box<Shape> {
    Box::new(shape)
}

fn record() -> Shape {
    Shape::Record(vec![
        field("the-size", Shape::Int(Int::U8)),
        field("note", Shape::Option(boxed(Shape::String))),
    ])
}

fn variant() -> Shape {
    let case = |name: &str, payload| Case {
        name: FieldName::new(name),
        payload,
    };
    Shape::Variant(vec![
        case("no-one", None),
        case("who", Some(Shape::String)),
        case("may-be", Some(Shape::Option(boxed(Shape::Bool)))),
    ])
}

fn names() -> Vec<FieldName> {
    vec![FieldName::new("red"), FieldName::new("deep-blue")]
}

/// Reads `value` as the argument `v`.
fn read(shape: Shape, value: Value) -> Result<Val, ToolFailure> {
    let arguments = json!({ "v": value });
    let arguments = arguments.as_object().unwrap();
    let mut read = read::arguments(&[field("v", shape)], arguments)?;
    Ok(read.remove(0))
}

#[test]
fn both_ways() {
    #[track_caller]
    fn check(shape: Shape, value: Val, json: Value) {
        let written = write::json(&shape, value.clone()).unwrap();
        assert_eq!(written, json);
        let read = read(shape, json.clone()).unwrap_or_else(|error| panic!("{json}: {error:?}"));
        assert_eq!(read, value, "{json}");
    }
    let text = |text: &str| Val::String(text.to_owned());
    let some = |value: Val| Val::Option(Some(Box::new(value)));
    let none = Val::Option(None);
    check(Shape::Bool, Val::Bool(true), json!(true));
    check(Shape::Int(Int::S8), Val::S8(-128), json!(-128));
    let safe = 9_007_199_254_740_991_u64;
    check(Shape::Int(Int::U64), Val::U64(safe), json!(safe));
    check(
        Shape::Int(Int::U64),
        Val::U64(safe + 1),
        json!("9007199254740992"),
    );
    check(
        Shape::Int(Int::U64),
        Val::U64(u64::MAX),
        json!("18446744073709551615"),
    );
    check(
        Shape::Int(Int::S64),
        Val::S64(i64::MIN),
        json!("-9223372036854775808"),
    );
    check(
        Shape::Int(Int::S64),
        Val::S64(-9_007_199_254_740_991),
        json!(-9_007_199_254_740_991_i64),
    );
    check(Shape::Float32, Val::Float32(0.1), json!(0.1));
    check(Shape::Float64, Val::Float64(-0.0), json!(-0.0));
    check(Shape::Char, Val::Char('é'), json!("é"));
    check(Shape::String, text("a\0b"), json!("a\0b"));
    let bytes = |bytes: &[u8]| Val::List(bytes.iter().map(|byte| Val::U8(*byte)).collect());
    check(
        Shape::Bytes,
        bytes("hé\n".as_bytes()),
        json!({"text": "hé\n"}),
    );
    check(Shape::Bytes, bytes(&[0, 255, 7]), json!({"base64": "AP8H"}));
    check(Shape::Bytes, bytes(&[]), json!({"text": ""}));
    check(Shape::Bytes, bytes(b"a\x1bb"), json!({"base64": "YRti"}));
    let list = Shape::List(boxed(Shape::Option(boxed(Shape::Bool))));
    check(
        list,
        Val::List(vec![none.clone(), some(Val::Bool(true))]),
        json!([null, true]),
    );
    let pair = Shape::Tuple(vec![Shape::Bool, Shape::Bool]);
    check(
        pair,
        Val::Tuple(vec![Val::Bool(true), Val::Bool(false)]),
        json!([true, false]),
    );
    let mixed = Shape::Tuple(vec![Shape::Bool, Shape::Option(boxed(Shape::Char))]);
    check(
        mixed.clone(),
        Val::Tuple(vec![Val::Bool(true), none.clone()]),
        json!({"item_0": true}),
    );
    let full = Val::Tuple(vec![Val::Bool(true), some(Val::Char('c'))]);
    check(mixed, full, json!({"item_0": true, "item_1": "c"}));
    let size = ("the-size".to_owned(), Val::U8(3));
    let noted = |note: Val| Val::Record(vec![size.clone(), ("note".to_owned(), note)]);
    check(record(), noted(none.clone()), json!({"the_size": 3}));
    check(
        record(),
        noted(some(text(""))),
        json!({"the_size": 3, "note": ""}),
    );
    let case =
        |name: &str, payload: Option<Val>| Val::Variant(name.to_owned(), payload.map(Box::new));
    check(variant(), case("no-one", None), json!({"no_one": true}));
    check(variant(), case("who", Some(text("x"))), json!({"who": "x"}));
    check(
        variant(),
        case("may-be", Some(none.clone())),
        json!({"may_be": null}),
    );
    check(
        Shape::Enum(names()),
        Val::Enum("deep-blue".to_owned()),
        json!("deep_blue"),
    );
    check(
        Shape::Flags(names()),
        Val::Flags(vec!["red".to_owned()]),
        json!(["red"]),
    );
    check(Shape::Flags(names()), Val::Flags(Vec::new()), json!([]));
    let nested =
        |depth: usize| (0..depth).fold(Shape::Bool, |shape, _| Shape::Option(boxed(shape)));
    check(nested(2), none.clone(), json!(null));
    check(nested(2), some(none.clone()), json!({}));
    check(
        nested(2),
        some(some(Val::Bool(true))),
        json!({"value": true}),
    );
    check(nested(3), some(some(none.clone())), json!({"value": {}}));
    let result = Shape::Result {
        ok: Some(boxed(Shape::Bool)),
        error: None,
    };
    check(
        result.clone(),
        Val::Result(Ok(Some(Box::new(Val::Bool(true))))),
        json!({"ok": true}),
    );
    check(result, Val::Result(Err(None)), json!({"error": true}));
}

#[test]
fn read_in_more_than_one_form() {
    assert_eq!(
        read(Shape::Int(Int::U64), json!(u64::MAX)).unwrap(),
        Val::U64(u64::MAX)
    );
    assert_eq!(read(Shape::Int(Int::U8), json!(7.0)).unwrap(), Val::U8(7));
    assert_eq!(read(Shape::Float64, json!(7)).unwrap(), Val::Float64(7.0));
    let unpadded = read(Shape::Bytes, json!({"base64": "YQ"})).unwrap();
    assert_eq!(
        unpadded,
        read(Shape::Bytes, json!({"base64": "YQ=="})).unwrap()
    );
    let null = read(Shape::Option(boxed(Shape::Bool)), Value::Null).unwrap();
    assert_eq!(null, Val::Option(None));
}

#[test]
fn only_written() {
    let written = |float| write::json(&Shape::Float64, Val::Float64(float)).unwrap();
    assert_eq!(written(f64::NAN), json!("NaN"));
    assert_eq!(written(f64::INFINITY), json!("Infinity"));
    assert_eq!(written(f64::NEG_INFINITY), json!("-Infinity"));
}

#[test]
fn refused_with_its_place() {
    #[track_caller]
    fn check(shape: Shape, value: Value, category: &str, expect: &str) {
        let failure = read(shape, value.clone()).expect_err(&value.to_string());
        assert_eq!(failure.category.label(), category, "{failure:?}");
        assert_eq!(failure.message, expect);
    }
    const TYPE: &str = "type_mismatch";
    const VALUE: &str = "invalid_parameters";
    let items = || Shape::List(boxed(record()));
    check(
        items(),
        json!([{"the_size": 1}, {"the_size": 256}]),
        VALUE,
        "`arguments.v[1].the_size`: expected an integer of 0 to 255, not 256",
    );
    check(
        items(),
        json!([{"the_size": "big"}]),
        TYPE,
        "`arguments.v[0].the_size`: expected an integer of 0 to 255, not the string \"big\"",
    );
    check(
        items(),
        json!([{}]),
        VALUE,
        "`arguments.v[0]`: `the_size` is missing",
    );
    check(
        items(),
        json!([{"the_size": 1, "sise": 2}]),
        VALUE,
        "`arguments.v[0]`: there is no `sise`",
    );
    check(
        items(),
        json!({}),
        TYPE,
        "`arguments.v`: expected an array, not an empty object",
    );
    check(
        Shape::Int(Int::U8),
        json!(1.5),
        VALUE,
        "`arguments.v`: expected an integer of 0 to 255, not 1.5",
    );
    check(
        Shape::Int(Int::U8),
        json!(-1),
        VALUE,
        "`arguments.v`: expected an integer of 0 to 255, not -1",
    );
    check(
        Shape::Int(Int::S64),
        json!("9223372036854775808"),
        VALUE,
        "`arguments.v`: expected an integer of 64 bits, as a number or a string, not the string \"9223372036854775808\"",
    );
    check(
        Shape::Int(Int::U64),
        json!("0x10"),
        VALUE,
        "`arguments.v`: expected an integer of 0 to 18446744073709551615, as a number or a string, not the string \"0x10\"",
    );
    check(
        Shape::Float64,
        json!("NaN"),
        TYPE,
        "`arguments.v`: expected a number, not the string \"NaN\"",
    );
    check(
        Shape::Float32,
        json!(1e39),
        VALUE,
        "`arguments.v`: expected a number within ±3.4e38, not 1e+39",
    );
    check(
        Shape::Char,
        json!("ab"),
        VALUE,
        "`arguments.v`: expected a string of one character, not the string \"ab\"",
    );
    check(
        Shape::Char,
        json!(""),
        VALUE,
        "`arguments.v`: expected a string of one character, not the string \"\"",
    );
    check(
        Shape::Bytes,
        json!({"base64": "?"}),
        VALUE,
        "`arguments.v.base64`: expected base64, not the string \"?\"",
    );
    check(
        Shape::Bytes,
        json!({"text": "a", "base64": ""}),
        VALUE,
        "`arguments.v`: expected an object with either `text` or `base64`, not an object of 2 keys",
    );
    check(
        Shape::Bytes,
        json!([1, 2]),
        TYPE,
        "`arguments.v`: expected an object with either `text` or `base64`, not an array of 2",
    );
    check(
        variant(),
        json!({"no_one": true, "who": "x"}),
        VALUE,
        "`arguments.v`: expected an object with exactly one of: no_one, who, may_be, not an object of 2 keys",
    );
    check(
        variant(),
        json!({"whom": "x"}),
        VALUE,
        "`arguments.v`: expected an object with exactly one of: no_one, who, may_be",
    );
    check(
        variant(),
        json!({"no_one": false}),
        TYPE,
        "`arguments.v.no_one`: expected true, not false",
    );
    check(
        variant(),
        json!({"who": null}),
        TYPE,
        "`arguments.v.who`: expected a string, not null",
    );
    let pair = Shape::Tuple(vec![Shape::Bool, Shape::Bool]);
    check(
        pair,
        json!([true]),
        VALUE,
        "`arguments.v`: expected an array of 2 items, not an array of 1",
    );
    check(
        Shape::Enum(names()),
        json!("deep-blue"),
        VALUE,
        "`arguments.v`: expected one of: red, deep_blue, not the string \"deep-blue\"",
    );
    check(
        Shape::Flags(names()),
        json!(["red", "red"]),
        VALUE,
        "`arguments.v`: `red` stands twice",
    );
    check(
        Shape::Flags(names()),
        json!([7]),
        TYPE,
        "`arguments.v[0]`: expected one of: red, deep_blue, not 7",
    );
    check(
        Shape::Bytes,
        json!({"text": "x".repeat(1 << 20)}),
        VALUE,
        "the arguments have more than 1048576 values or bytes",
    );
}

/// What a function returned, as its tool's result.
fn done(shape: Shape, value: Val) -> (String, Value) {
    let output = write::result(Some(&shape), vec![value], 1 << 20).unwrap();
    (output.to_text(), output.structured.unwrap())
}

#[test]
fn results() {
    let text = |text: &str| Val::String(text.to_owned());
    assert_eq!(
        done(Shape::String, text("a\nb")),
        ("a\nb".to_owned(), json!({"result": "a\nb"}))
    );
    let letters = Val::List(vec![Val::U8(b'h'), Val::U8(b'i')]);
    assert_eq!(
        done(Shape::Bytes, letters),
        ("hi".to_owned(), json!({"result": {"text": "hi"}}))
    );
    let size = Val::Record(vec![
        ("the-size".to_owned(), Val::U8(3)),
        ("note".to_owned(), Val::Option(None)),
    ]);
    assert_eq!(
        done(record(), size),
        ("{\"the_size\":3}".to_owned(), json!({"the_size": 3}))
    );
    let long = Val::List((0..60).map(|_| text("xy")).chain([text("\"z")]).collect());
    let (shown, _) = done(Shape::List(boxed(Shape::String)), long);
    assert_eq!(
        shown,
        format!("[\n{} \"\\\"z\"\n]", " \"xy\",\n".repeat(60))
    );
    let item = |note: &str| {
        let note = Val::Option(Some(Box::new(text(note))));
        Val::Record(vec![
            ("the-size".to_owned(), Val::U8(1)),
            ("note".to_owned(), note),
        ])
    };
    let mixed = Val::List(vec![item("short"), item(&"x".repeat(200))]);
    let (shown, structured) = done(Shape::List(boxed(record())), mixed);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..3],
        ["[", " {\"note\":\"short\",\"the_size\":1},", " {"]
    );
    assert_eq!(lines[4..], ["  \"the_size\":1", " }", "]"]);
    assert_eq!(
        serde_json::from_str::<Value>(&shown).unwrap(),
        structured["result"]
    );
    let nothing = write::result(None, Vec::new(), 10).unwrap();
    assert_eq!(
        (nothing.to_text().as_str(), nothing.structured),
        ("done", None)
    );
}

#[test]
fn a_result_that_is_an_error_is_a_failure() {
    let shape = |error| Shape::Result { ok: None, error };
    let failure = |error: Option<Shape>, value: Option<Val>| {
        let values = vec![Val::Result(Err(value.map(Box::new)))];
        write::result(Some(&shape(error.map(Box::new))), values, 1 << 20).unwrap_err()
    };
    let failed = failure(
        Some(Shape::String),
        Some(Val::String("no such city".to_owned())),
    );
    assert_eq!(failed.message, "no such city");
    assert_eq!(failed.category.label(), "permanent_failure");
    let case = Val::Variant("no-one".to_owned(), None);
    assert_eq!(
        failure(Some(variant()), Some(case)).message,
        "{\"no_one\":true}"
    );
    assert_eq!(
        failure(None, None).message,
        "the function failed and did not say why"
    );
    let done = write::result(Some(&shape(None)), vec![Val::Result(Ok(None))], 10).unwrap();
    assert_eq!(done.to_text(), "done");
}

#[test]
fn a_result_beyond_the_limit_is_a_failure() {
    let text = Val::String("x".repeat(101));
    let failed = write::result(Some(&Shape::String), vec![text], 100).unwrap_err();
    assert!(
        failed.message.contains("`limits.output_bytes`"),
        "{failed:?}"
    );
}

fn any_int() -> impl Strategy<Value = Int> {
    prop_oneof![
        Just(Int::U8),
        Just(Int::S8),
        Just(Int::U16),
        Just(Int::S16),
        Just(Int::U32),
        Just(Int::S32),
        Just(Int::U64),
        Just(Int::S64),
    ]
}

fn some_names() -> impl Strategy<Value = Vec<FieldName>> {
    (1_usize..5).prop_map(|n| {
        (0..n)
            .map(|idx| FieldName::new(&format!("the-{idx}")))
            .collect()
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Bool),
        any_int().prop_map(Shape::Int),
        Just(Shape::Float32),
        Just(Shape::Float64),
        Just(Shape::Char),
        Just(Shape::String),
        Just(Shape::Bytes),
        some_names().prop_map(Shape::Enum),
        some_names().prop_map(Shape::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4);
        let maybe = || prop::option::of(inner.clone().prop_map(boxed));
        prop_oneof![
            inner
                .clone()
                .prop_filter("`list<u8>` is bytes", |item| *item != Shape::Int(Int::U8))
                .prop_map(|item| Shape::List(boxed(item))),
            several().prop_map(Shape::Tuple),
            several().prop_map(|shapes| {
                let fields = shapes.into_iter().enumerate();
                Shape::Record(
                    fields
                        .map(|(idx, shape)| field(&format!("a-{idx}"), shape))
                        .collect(),
                )
            }),
            prop::collection::vec(prop::option::of(inner.clone()), 1..4).prop_map(|payloads| {
                let cases = payloads.into_iter().enumerate();
                Shape::Variant(
                    cases
                        .map(|(idx, payload)| Case {
                            name: FieldName::new(&format!("b-{idx}")),
                            payload,
                        })
                        .collect(),
                )
            }),
            inner.clone().prop_map(|shape| Shape::Option(boxed(shape))),
            (maybe(), maybe()).prop_map(|(ok, error)| Shape::Result { ok, error }),
        ]
    })
}

fn any_value(shape: &Shape) -> BoxedStrategy<Val> {
    let payload = |payload: Option<&Shape>| match payload {
        Some(shape) => any_value(shape)
            .prop_map(|value| Some(Box::new(value)))
            .boxed(),
        None => Just(None).boxed(),
    };
    let all = |shapes: Vec<&Shape>| shapes.into_iter().map(any_value).collect::<Vec<_>>();
    match shape {
        Shape::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Shape::Int(Int::U8) => any::<u8>().prop_map(Val::U8).boxed(),
        Shape::Int(Int::S8) => any::<i8>().prop_map(Val::S8).boxed(),
        Shape::Int(Int::U16) => any::<u16>().prop_map(Val::U16).boxed(),
        Shape::Int(Int::S16) => any::<i16>().prop_map(Val::S16).boxed(),
        Shape::Int(Int::U32) => any::<u32>().prop_map(Val::U32).boxed(),
        Shape::Int(Int::S32) => any::<i32>().prop_map(Val::S32).boxed(),
        Shape::Int(Int::U64) => any::<u64>().prop_map(Val::U64).boxed(),
        Shape::Int(Int::S64) => any::<i64>().prop_map(Val::S64).boxed(),
        Shape::Float32 => any::<f32>().prop_map(Val::Float32).boxed(),
        Shape::Float64 => any::<f64>().prop_map(Val::Float64).boxed(),
        Shape::Char => any::<char>().prop_map(Val::Char).boxed(),
        Shape::String => any::<String>().prop_map(Val::String).boxed(),
        Shape::Bytes => prop::collection::vec(any::<u8>().prop_map(Val::U8), 0..6)
            .prop_map(Val::List)
            .boxed(),
        Shape::List(item) => prop::collection::vec(any_value(item), 0..4)
            .prop_map(Val::List)
            .boxed(),
        Shape::Tuple(items) => all(items.iter().collect()).prop_map(Val::Tuple).boxed(),
        Shape::Record(fields) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.wit.clone()).collect();
            all(fields.iter().map(|field| &field.shape).collect())
                .prop_map(move |values| Val::Record(names.iter().cloned().zip(values).collect()))
                .boxed()
        }
        Shape::Variant(cases) => {
            let cases = cases.iter().map(|case| {
                let name = case.name.wit.clone();
                payload(case.payload.as_ref())
                    .prop_map(move |value| Val::Variant(name.clone(), value))
                    .boxed()
            });
            prop::strategy::Union::new(cases).boxed()
        }
        Shape::Enum(names) => {
            let names: Vec<String> = names.iter().map(|name| name.wit.clone()).collect();
            prop::sample::select(names).prop_map(Val::Enum).boxed()
        }
        Shape::Flags(names) => {
            let names: Vec<String> = names.iter().map(|name| name.wit.clone()).collect();
            prop::sample::subsequence(names.clone(), 0..=names.len())
                .prop_map(Val::Flags)
                .boxed()
        }
        Shape::Option(some) => prop_oneof![
            Just(Val::Option(None)),
            any_value(some).prop_map(|value| Val::Option(Some(Box::new(value)))),
        ]
        .boxed(),
        Shape::Result { ok, error } => prop_oneof![
            payload(ok.as_deref()).prop_map(|value| Val::Result(Ok(value))),
            payload(error.as_deref()).prop_map(|value| Val::Result(Err(value))),
        ]
        .boxed(),
    }
}

fn shape_and_value() -> impl Strategy<Value = (Shape, Val)> {
    any_shape().prop_flat_map(|shape| {
        let value = any_value(&shape);
        (Just(shape), value)
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![".{0,6}", "the_[0-9]", "-?[0-9]{1,30}"].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let key = prop_oneof!["v|ok|error|value|text|base64", "(a|b|item)_[0-4]", ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn schemas<'a>(direction: Direction, names: &'a TypeNames, docs: &'a Docs) -> Schemas<'a> {
    Schemas {
        direction,
        names,
        docs,
    }
}

proptest! {
    /// What is written is read as the same value, also after it went through the schema and the forgiving layer before it.
    #[test]
    fn what_is_written_reads_back((shape, value) in shape_and_value()) {
        let (names, docs) = (TypeNames::default(), Docs::default());
        let written = write::json(&shape, value.clone()).unwrap();
        let output = schemas(Direction::Output, &names, &docs).returned(&shape);
        let result = write::result(Some(&shape), vec![value.clone()], 1 << 20);
        if let (Ok(result), false) = (result, matches!(shape, Shape::Result { .. })) {
            let structured = result.structured.unwrap();
            let read = Parameters::new(output.clone()).unwrap().read(structured.clone());
            let read = read.unwrap_or_else(|error| panic!("{structured}: {error:?} in {output}"));
            prop_assert!(read.notes.is_empty(), "{:?}", read.notes);
        }
        // What has no word in JSON is written as a string and never read.
        prop_assume!(!["NaN", "Infinity"].iter().any(|word| written.to_string().contains(word)));
        let again = read(shape.clone(), written.clone()).unwrap_or_else(|error| panic!("{written}: {error:?}"));
        prop_assert_eq!(&again, &value);

        let params = [field("v", shape)];
        let input = schemas(Direction::Input, &names, &docs).object(&params, None);
        let arguments = Parameters::new(input.clone()).unwrap().read(json!({ "v": written.clone() }));
        let arguments = arguments.unwrap_or_else(|error| panic!("{written}: {error:?} in {input}"));
        let again = read::arguments(&params, &arguments.values).unwrap_or_else(|error| panic!("{written}: {error:?}"));
        prop_assert_eq!(&again[0], &value);
    }

    /// Anything at all: a value that writes as it was read, or an error of one line that names its place.
    #[test]
    fn anything_reads_or_fails(shape in any_shape(), json in any_json()) {
        match read(shape.clone(), json) {
            Ok(value) => {
                let written = write::json(&shape, value.clone()).unwrap();
                prop_assert_eq!(read(shape, written).unwrap(), value);
            }
            Err(failure) => {
                prop_assert!(failure.message.starts_with("`arguments"), "{}", failure.message);
                prop_assert!(!failure.message.contains('\n'));
                prop_assert!(failure.message.len() < 2_000);
            }
        }
    }

    /// A schema has nothing in it that a model provider may refuse.
    #[test]
    fn schemas_are_plain(shape in any_shape()) {
        let (names, docs) = (TypeNames::default(), Docs::default());
        let schema = schemas(Direction::Input, &names, &docs).value(&shape);
        check_plain(&schema)?;
    }
}

const KEYWORDS: [&str; 8] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "minimum",
    "maximum",
];

fn check_plain(schema: &Value) -> Result<(), TestCaseError> {
    let object = schema.as_object().unwrap();
    let known = |key: &String| KEYWORDS.contains(&key.as_str());
    prop_assert!(object.keys().all(known), "{schema}");
    prop_assert!(object.contains_key("type"), "{schema}");
    if let Some(Value::Object(properties)) = object.get("properties") {
        for (name, property) in properties {
            prop_assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            );
            check_plain(property)?;
        }
    }
    if let Some(items) = object.get("items") {
        check_plain(items)?;
    }
    Ok(())
}
