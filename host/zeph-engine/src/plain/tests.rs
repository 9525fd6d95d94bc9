//! What is offered of a component, under which names, with which words and schemas.

use serde_json::{Value, json};
use wasmtime::component::{Component, Linker};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};
use zeph_core::id::PluginId;
use zeph_core::tool::Tool;

use super::docs::WIT_SECTION;
use super::{NotPlain, Plain};

mod convert;
mod run;

/// A component of the world in `wit` whose functions trap.
fn component(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().module(&module).unwrap();
    encoder.encode().unwrap()
}

/// The same with a custom section at its end.
fn with_section(mut component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    fn leb(mut value: usize, to: &mut Vec<u8>) {
        while value > 0x7f {
            to.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        to.push(u8::try_from(value).unwrap());
    }
    let mut section = Vec::new();
    leb(name.len(), &mut section);
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(data);
    component.push(0);
    leb(section.len(), &mut component);
    component.extend_from_slice(&section);
    component
}

fn plain(bytes: &[u8]) -> Result<Plain<()>, NotPlain> {
    let engine = wasmtime::Engine::default();
    let component = Component::from_binary(&engine, bytes).unwrap();
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&component).unwrap();
    Plain::new(linker.instantiate_pre(&component).unwrap())
}

fn tools(bytes: &[u8]) -> Vec<Tool> {
    let plugin = PluginId("test".to_owned());
    plain(bytes).unwrap().tools(&plugin, bytes)
}

fn world(body: &str) -> String {
    format!("package a:b;\nworld w {{\n{body}\n}}")
}

#[test]
fn names() {
    #[track_caller]
    fn check(wit: &str, expect: &[&str]) {
        let tools = tools(&component(wit));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expect, "{wit}");
    }
    check(&world("export greet: func();"), &["greet"]);
    check(&world("export say-hello-2U: func();"), &["say_hello_2u"]);
    let interfaces = "package demo:geo@1.2.0;
        interface shapes { area: func() -> f64; move: func(); }
        interface maps { area: func() -> f64; draw: func(); }
        world w { export move: func(); export shapes; export maps; }";
    check(
        interfaces,
        &["move", "shapes_area", "shapes_move", "maps_area", "draw"],
    );
    let inline = "export inner: interface { f: func(); } export f: func();";
    check(&world(inline), &["f", "inner_f"]);
    let long = "export a-very-long-name-of-a-function-that-says-all-there-is-to-say: func();";
    check(
        &world(long),
        &["a_very_long_name_of_a_function_that_say_a50fbd33"],
    );
}

#[test]
fn a_long_name_of_two_is_still_two() {
    let long = "a-name-that-goes-on-and-on-and-on-until-nobody-reads-it";
    let wit = format!("export {long}-one: func(); export {long}-two: func();");
    let tools = tools(&component(&world(&wit)));
    assert_ne!(tools[0].name, tools[1].name);
    assert!(tools.iter().all(|tool| tool.name.as_str().len() == 48));
}

#[test]
fn what_is_no_tool_and_why() {
    let wit = "package a:b;
        interface files {
            resource file { constructor(); size: func() -> u64; open: static func() -> file; }
            stat: func(file: borrow<file>) -> u64;
            take: func(file: option<list<file>>);
            good: func() -> u64;
        }
        world w {
            export files;
        }";
    let plain = plain(&component(wit)).unwrap();
    let names: Vec<&str> = plain
        .functions
        .iter()
        .map(|one| one.tool.as_str())
        .collect();
    assert_eq!(names, ["good"]);
    let mut skipped: Vec<String> = plain
        .skipped()
        .iter()
        .map(|skipped| format!("{}: {}", skipped.function, skipped.reason))
        .collect();
    skipped.sort();
    assert_eq!(
        skipped,
        [
            "files#[constructor]file: it belongs to a resource",
            "files#[method]file.size: it belongs to a resource",
            "files#[static]file.open: it belongs to a resource",
            "files#stat: it uses a resource",
            "files#take: it uses a resource",
        ]
    );
}

#[test]
fn refused_in_one_sentence() {
    #[track_caller]
    fn check(wit: &str, expect: &str) {
        let error = plain(&component(wit)).err().expect(wit).to_string();
        assert!(error.starts_with(expect), "{wit}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    check(&world(""), "it exports no function");
    check(
        &world("export f: interface { resource r; make: func() -> r; }"),
        "none of its functions can be a tool: `f#make`: it uses a resource",
    );
    let command =
        "package wasi:cli@0.2.3; interface run { run: func() -> result; } world w { export run; }";
    check(command, "it is a command (it exports `wasi:cli/run@0.2.3`)");
    let server = "package wasi:http@0.2.0; interface incoming-handler { handle: func(); } world w { export incoming-handler; }";
    check(
        server,
        "it is an HTTP server (it exports `wasi:http/incoming-handler@0.2.0`)",
    );
    let other = "package wasi:clocks@0.2.0; interface wall-clock { now: func() -> u64; } world w { export wall-clock; }";
    check(other, "it exports no function");
    let many: String = (0..300)
        .map(|n| format!("export fn{n}: func();\n"))
        .collect();
    check(&world(&many), "it exports 300 functions; the limit is 256");
    let same = "export a-b: interface { c: func(); } export a: interface { b-c: func(); c: func(); } export b-c: func();";
    check(
        &world(same),
        "two of its functions would both be the tool `a_b_c`",
    );
}

#[test]
fn what_tool_chains_export_for_themselves_is_no_tool() {
    let wit = "export init: func(shim: string, script: string, entry-path: option<string>, disable-gc: bool) -> result<_, string>;
        export exports: interface { init: func(app-name: string, stub-wasi: bool) -> result<_, string>; }
        export inner: interface { init: func(name: string); }";
    let tools = tools(&component(&world(wit)));
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name.as_str(), "init");
    assert!(
        tools[0].description.contains("`inner`"),
        "a function of that name is one"
    );
}

#[test]
fn types_too_large_for_a_schema() {
    let wide: String = (0..1_001).map(|n| format!("c{n},")).collect();
    let deep = "list<".repeat(30) + "u32" + &">".repeat(30);
    // Eight levels of four fields each: 4^8 fields when written out.
    let levels: String = (1..=8)
        .map(|n| {
            let inner = if n == 1 {
                "bool".to_owned()
            } else {
                format!("r{}", n - 1)
            };
            format!("record r{n} {{ a: {inner}, b: {inner}, c: {inner}, d: {inner} }}\n")
        })
        .collect();
    let long = "x".repeat(20_000);
    let wit = format!(
        "export i: interface {{ enum wide {{ {wide} }} {levels} record long {{ {long}: u32 }}
            f-wide: func(it: wide); f-deep: func(it: {deep}); f-many: func(it: r8); f-long: func(it: long); good: func(); }}"
    );
    let plain = plain(&component(&world(&wit))).unwrap();
    let reasons: Vec<&str> = plain
        .skipped()
        .iter()
        .map(|one| one.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "it uses types of too many parts",
            "it uses types that are nested too deeply",
            "it uses types of too many parts",
            "it uses names that are too long",
        ]
    );
}

/// The schema of a parameter `v` of the type, and that of a result of the type.
fn schemas(declarations: &str, ty: &str) -> (Value, Value) {
    let wit = format!("export i: interface {{ {declarations} f: func(v: {ty}) -> {ty}; }}");
    let tool = tools(&component(&world(&wit))).remove(0);
    (
        tool.parameters.schema().clone(),
        tool.output.as_deref().cloned().unwrap(),
    )
}

#[test]
fn schemas_of_types() {
    #[track_caller]
    fn check(declarations: &str, ty: &str, expect: Value) {
        let (input, output) = schemas(declarations, ty);
        assert_eq!(
            input,
            json!({"type": "object", "properties": {"v": expect}, "required": ["v"]}),
            "{ty}"
        );
        let output = if ty == "point" {
            output
        } else {
            output["properties"]["result"].clone()
        };
        assert_eq!(output, expect, "the result {ty}");
    }
    check("", "bool", json!({"type": "boolean"}));
    check(
        "",
        "u8",
        json!({"type": "integer", "minimum": 0, "maximum": 255}),
    );
    check(
        "",
        "s16",
        json!({"type": "integer", "minimum": -32768, "maximum": 32767}),
    );
    check(
        "",
        "u32",
        json!({"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32}),
    );
    check("", "string", json!({"type": "string"}));
    check(
        "",
        "char",
        json!({"type": "string", "description": "One character."}),
    );
    check(
        "",
        "list<string>",
        json!({"type": "array", "items": {"type": "string"}}),
    );
    let pair =
        json!({"type": "array", "items": {"type": "boolean"}, "description": "Exactly 2 items."});
    check("", "tuple<bool, bool>", pair);
    let mixed = json!({
        "type": "object",
        "properties": {"item_0": {"type": "string"}, "item_1": {"type": "boolean"}},
        "required": ["item_0", "item_1"],
    });
    check("", "tuple<string, bool>", mixed);
    let point = json!({
        "type": "object",
        "properties": {"x-pos".replace('-', "_"): {"type": "boolean"}, "label": {"type": "string"}},
        "required": ["x_pos"],
    });
    check(
        "record point { x-pos: bool, label: option<string> }",
        "point",
        point,
    );
    let variant = json!({
        "type": "object",
        "description": "Exactly one of these keys.",
        "properties": {
            "no_one": {"type": "boolean", "description": "Always true."},
            "named": {"type": "string"},
        },
    });
    check("variant who { no-one, named(string) }", "who", variant);
    let color = json!({"type": "string", "enum": ["red", "deep_blue"]});
    check("enum color { red, deep-blue }", "color", color.clone());
    check(
        "flags style { red, deep-blue }",
        "style",
        json!({"type": "array", "items": color, "description": "Each at most once."}),
    );
    check(
        "",
        "list<option<string>>",
        json!({"type": "array", "items": {"type": ["string", "null"]}}),
    );
    check(
        "enum color { red, deep-blue }",
        "list<option<color>>",
        json!({"type": "array", "items": {"type": ["string", "null"], "enum": ["red", "deep_blue", null]}}),
    );
    check(
        "",
        "list<result<string>>",
        json!({"type": "array", "items": {
            "type": "object",
            "description": "Exactly one of these keys.",
            "properties": {
                "ok": {"type": "string"},
                "error": {"type": "boolean", "description": "Always true."},
            },
        }}),
    );
}

#[test]
fn schemas_that_differ_by_direction() {
    let (input, output) = schemas("", "u64");
    let hint = "Beyond ±9007199254740991 as a string of decimal digits.";
    assert_eq!(
        input["properties"]["v"],
        json!({"type": "integer", "minimum": 0, "description": hint})
    );
    assert_eq!(
        output["properties"]["result"],
        json!({"type": ["integer", "string"], "minimum": 0, "description": hint})
    );
    let (input, output) = schemas("", "list<f32>");
    assert_eq!(input["properties"]["v"]["items"], json!({"type": "number"}));
    assert_eq!(
        output["properties"]["result"]["items"]["type"],
        json!(["number", "string"])
    );
    let (input, output) = schemas("", "option<string>");
    assert_eq!(
        input,
        json!({"type": "object", "properties": {"v": {"type": "string"}}})
    );
    assert_eq!(
        output,
        json!({"type": "object", "properties": {"result": {"type": ["string", "null"]}}, "required": ["result"]})
    );
}

#[test]
fn results_that_are_not_part_of_a_success() {
    let output = |result: &str| {
        let wit = format!("export f: func(){result};");
        let tool = tools(&component(&world(&wit))).remove(0);
        tool.output.as_deref().cloned()
    };
    assert_eq!(output(""), None);
    assert_eq!(output(" -> result"), None);
    assert_eq!(output(" -> result<_, string>"), None);
    let text = json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]});
    assert_eq!(output(" -> result<string, u32>"), Some(text));
}

const DOCUMENTED: &str = "package demo:geo@1.0.0;
    /// Shapes and their sizes.
    interface shapes {
        /// A point in the plane.
        record point {
            /// To the right.
            x: f32,
            y: f32,
        }
        /// What to draw with.
        enum pen {
            /// Lasts.
            ink,
            lead,
        }
        variant figure {
            /// Its radius.
            circle(f32),
            dot,
        }
        /// Moves a point.
        ///
        /// Never far.
        move: func(it: point, pen: pen, figure: figure) -> point;
        unsaid: func(it: list<point>);
    }
    world w {
        use shapes.{point};
        export shapes;
        /// How far apart two points are.
        export distance: func(a: point, b: point) -> f32;
    }";

#[track_caller]
fn check_documented(bytes: &[u8]) {
    let tools = tools(bytes);
    let described: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.description.as_str()))
        .collect();
    assert_eq!(
        described,
        [
            ("distance", "How far apart two points are."),
            ("move", "Moves a point.\n\nNever far."),
            (
                "unsaid",
                "`unsaid: func(it: list<point>)` of `shapes` in `test`. Shapes and their sizes."
            ),
        ]
    );
    let description = |tool: usize, pointer: &str| {
        let schema = tools[tool].parameters.schema();
        schema
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    for (tool, param) in [(0, "a"), (0, "b"), (1, "it")] {
        let point = format!("/properties/{param}");
        let at = |rest: &str| description(tool, &format!("{point}{rest}/description"));
        assert_eq!(at("").as_deref(), Some("A point in the plane."));
        assert_eq!(at("/properties/x").as_deref(), Some("To the right."));
        assert_eq!(at("/properties/y"), None);
    }
    assert_eq!(
        description(1, "/properties/pen/description").as_deref(),
        Some("What to draw with. `ink`: Lasts.")
    );
    assert_eq!(
        description(1, "/properties/figure/properties/circle/description").as_deref(),
        Some("Its radius.")
    );
}

#[test]
fn words_from_the_wit_text() {
    let bytes = with_section(component(DOCUMENTED), WIT_SECTION, DOCUMENTED.as_bytes());
    check_documented(&bytes);
}

#[test]
fn words_from_package_docs() {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", DOCUMENTED).unwrap();
    let docs = wit_parser::PackageMetadata::extract(&resolve, package);
    let section = docs.encode().unwrap();
    check_documented(&with_section(
        component(DOCUMENTED),
        "package-docs",
        &section,
    ));
}

#[test]
fn without_words_the_signature_stands() {
    let wit = "package demo:geo;
        interface shapes {
            record point { x: f32 }
            record other { x: f32 }
            variant v { a, b(u8) }
            f: func(a: point, b: option<v>, c: list<u8>, d: tuple<s64, char>) -> result<v, string>;
        }
        world w { export shapes; export g: func() -> result<_, bool>; }";
    let tools = tools(&component(wit));
    let descriptions: Vec<&str> = tools.iter().map(|tool| tool.description.as_str()).collect();
    assert_eq!(
        descriptions,
        [
            "`g: func() -> result<_, bool>` of `test`.",
            // Two types look alike: which one it is cannot be told.
            "`f: func(a: record, b: option<v>, c: list<u8>, d: tuple<s64, char>) -> result<v, string>` of `shapes` in `test`.",
        ]
    );
}

#[test]
fn sections_that_cannot_be_read_are_passed_over() {
    let deep = format!(
        "package a:b; interface i {{ f: func(it: {}u8{}); }}",
        "list<".repeat(50_000),
        ">".repeat(50_000)
    );
    let hostile: [(&str, &[u8]); 9] = [
        (WIT_SECTION, b"\xff\xfe"),
        (WIT_SECTION, b"package a:b; world w {"),
        (WIT_SECTION, deep.as_bytes()),
        (WIT_SECTION, b""),
        ("package-docs", b""),
        ("package-docs", b"\x07{}"),
        (
            "package-docs",
            b"\x01{\"worlds\":{\"w\":3},\"interfaces\":[]}",
        ),
        (
            "package-docs",
            b"\x01{\"worlds\":{\"w\":{\"func_exports\":{\"f\":{\"docs\":[]}}}}}",
        ),
        ("package-docs", b"\x01[[[[[["),
    ];
    for (name, data) in hostile {
        let bytes = with_section(component(&world("export f: func();")), name, data);
        let tool = tools(&bytes).remove(0);
        assert_eq!(tool.description, "`f: func()` of `test`.");
    }
}

#[test]
fn words_cannot_deceive() {
    let section = b"\x01{\"worlds\":{\"w\":{\"func_exports\":{\"f\":\"Adds.\\u001b[31m\\u202e\\n\\tMore.\"}}}}";
    let bytes = with_section(
        component(&world("export f: func();")),
        "package-docs",
        section,
    );
    assert_eq!(tools(&bytes).remove(0).description, "Adds.[31m\n\tMore.");
    let long = format!(
        "\x01{{\"worlds\":{{\"w\":{{\"funcs\":{{\"f\":\"{}\"}}}}}}}}",
        "é".repeat(100_000)
    );
    let bytes = with_section(
        component(&world("export f: func();")),
        "package-docs",
        long.as_bytes(),
    );
    let said = tools(&bytes).remove(0).description;
    assert_eq!(said, "é".repeat(4_096));
}

#[test]
fn a_schema_too_large_with_its_words_goes_without() {
    let fields: String = (0..200).map(|n| format!("fd{n}: bool,")).collect();
    let wit = world(&format!(
        "export i: interface {{ record r {{ {fields} }} f: func(it: r); }}"
    ));
    let words: Vec<String> = (0..200)
        .map(|n| format!("\"fd{n}\":\"{}\"", "x".repeat(2_000)))
        .collect();
    let section = format!(
        "\x01{{\"worlds\":{{\"w\":{{\"interfaces\":{{\"i\":{{\"funcs\":{{\"f\":\"Said.\"}},\"types\":{{\"r\":{{\"items\":{{{}}}}}}}}}}}}}}}}}",
        words.join(",")
    );
    let bytes = with_section(component(&wit), "package-docs", section.as_bytes());
    let tool = tools(&bytes).remove(0);
    assert_eq!(tool.description, "Said.");
    assert_eq!(
        tool.parameters.schema()["properties"]["it"]["properties"]["fd7"],
        json!({"type": "boolean"})
    );
}

#[test]
fn tools_promise_nothing() {
    let tool = tools(&component(&world("export f: func();"))).remove(0);
    let promises = tool.annotations;
    assert!(promises.destructive && promises.open_world);
    assert!(!promises.read_only && !promises.idempotent);
}
