//! What is read from components, and what their authors are told.

mod hostile;
mod linked;

use zeph_core::capability::LimitName;

use super::{ComponentKind, ForeignFile, InspectError, Inspection, inspect};

/// A module with one function, lifted as `$f`.
const FUNCTION: &str = r#"
    (core module $m (func (export "f")))
    (core instance $i (instantiate $m))
    (func $f (canon lift (core func $i "f")))"#;

/// The text of a component that exports the tools in this version, with other parts before.
fn plugin_with(parts: &str, version: &str) -> String {
    format!(
        r#"(component {parts} {FUNCTION}
            (instance $tools (export "list-tools" (func $f)) (export "call-tool" (func $f)))
            (export "zeph:plugin/tools{version}" (instance $tools)))"#
    )
}

fn plugin(parts: &str) -> String {
    plugin_with(parts, "@0.1.0")
}

/// An import that needs nothing of the host.
const TYPES_ONLY: &str = r#"(import "demo:shapes/types@0.1.0" (instance
    (type $p (record (field "x" u32))) (export "point" (type (eq $p)))))"#;

fn import(name: &str) -> String {
    format!(r#"(import "{name}" (instance (export "f" (func))))"#)
}

fn custom(name: &str, text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("\\{byte:02x}"));
    format!("(@custom \"{name}\" \"{}\")", bytes.collect::<String>())
}

fn read(wat: &str) -> Inspection {
    inspect(&wat::parse_str(wat).unwrap()).unwrap()
}

/// The problems are exactly those that begin so.
fn check(wat: &str, expected: &[&str]) {
    let problems = read(wat).problems;
    let fits = |(problem, start): (&String, &&str)| problem.starts_with(start);
    let all_fit = problems.iter().zip(expected).all(fits);
    assert!(problems.len() == expected.len() && all_fit, "{problems:#?}");
    for problem in problems {
        assert!(
            !problem.contains(['\n', '\u{1b}']) && problem.len() < 1_000,
            "{problem}"
        );
    }
}

fn check_error(bytes: &[u8], expected: &str) {
    let error = inspect(bytes).unwrap_err();
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn what_can_be_used() {
    let nested = format!("(component {FUNCTION} (export \"f\" (func $f)))");
    let table = [
        (plugin(""), "tool_plugin"),
        (plugin_with("", "@0.1.7"), "tool_plugin"),
        (plugin(&import("wasi:io/poll@0.2.0")), "tool_plugin"),
        (plugin(&import("wasi:io/poll@0.2.99")), "tool_plugin"),
        (plugin(&import("zeph:plugin/walk@0.1.3")), "tool_plugin"),
        (plugin(TYPES_ONLY), "tool_plugin"),
        (
            plugin(r#"(import "t" (type (sub resource)))"#),
            "tool_plugin",
        ),
        (nested.clone(), "plain"),
        (
            format!(
                "(component {FUNCTION} (instance $i2 (export \"f\" (func $f))) (export \"a:b/c@1.0.0\" (instance $i2)))"
            ),
            "plain",
        ),
    ];
    for (wat, world) in table {
        let inspection = read(&wat);
        assert!(inspection.is_usable(), "{:?}", inspection.problems);
        let kind = serde_json::to_value(&inspection.kind).unwrap();
        assert_eq!(kind["world"], world, "{wat}");
    }
}

#[test]
fn worlds() {
    check(
        &plugin_with("", "@0.2.0"),
        &[
            "it is built for zeph:plugin 0.2, this host speaks 0.1; rebuild it with the `wit` of 0.1, or use a later zeph-host",
        ],
    );
    check(
        &plugin_with("", "@0.0.9"),
        &[
            "it is built for zeph:plugin 0.0, this host speaks 0.1; rebuild it with the `wit` of 0.1",
        ],
    );
    // Imports and exports of one old version give one message.
    check(
        &plugin_with(&import("zeph:plugin/log@0.2.0"), "@0.2.0"),
        &["it is built for zeph:plugin 0.2,"],
    );
    check(
        &plugin_with("", "@1.0.0"),
        &["it is built for zeph:plugin 1.0,"],
    );
    check(
        &plugin_with("", ""),
        &["it exports `zeph:plugin/tools`: this host needs `zeph:plugin/tools@0.1.0`"],
    );
    check(
        &plugin_with("", "@0.1.0-draft"),
        &["it exports `zeph:plugin/tools@0.1.0-draft`: this host needs"],
    );
    check(
        "(component)",
        &["it exports nothing: a plugin exports `zeph:plugin/tools@0.1.0`, or functions"],
    );
    check(
        &format!(
            "(component {FUNCTION} (instance $r (export \"run\" (func $f))) (export \"wasi:cli/run@0.2.0\" (instance $r)))"
        ),
        &["it is a command (`wasi:cli/run`): a plugin exports"],
    );
    check(
        "(component (type $t u32) (export \"some-type\" (type $t)))",
        &["it exports `some-type`: a plugin exports"],
    );
    check(
        &format!(
            "(component {FUNCTION} (instance $t (export \"list-tools\" (func $f))) (export \"zeph:plugin/tools@0.1.0\" (instance $t)))"
        ),
        &["its `zeph:plugin/tools` lacks `call-tool`"],
    );
}

/// The text of a component that exports strategies in this version, with these functions and another part.
fn filter(version: &str, functions: &[&str], other: &str) -> String {
    let functions: String = functions
        .iter()
        .map(|name| format!("(export \"{name}\" (func $f))"))
        .collect();
    format!(
        r#"(component {FUNCTION} (instance $s {functions} (export "other" (func $f)))
            (export "zeph:filter/strategies{version}" (instance $s)) {other})"#
    )
}

#[test]
fn worlds_of_filters() {
    let lacking = filter("@0.1.0", &["list-strategies"], "");
    check(
        &lacking,
        &[
            "its `zeph:filter/strategies` lacks `[static]strategy.create` and `[method]strategy.apply`",
        ],
    );
    check(
        &filter("@0.2.0", &[], ""),
        &["it is built for zeph:filter 0.2, this host speaks 0.1; rebuild"],
    );
    check(
        &filter("", &[], ""),
        &["it exports `zeph:filter/strategies`: this host needs `zeph:filter/strategies@0.1.0`"],
    );
    let tools = r#"(instance $t (export "list-tools" (func $f)) (export "call-tool" (func $f)))
        (export "zeph:plugin/tools@0.1.0" (instance $t))"#;
    check(
        &filter("@0.1.0", &["list-strategies"], tools),
        &["it exports `zeph:plugin/tools` and `zeph:filter/strategies`: tools hold grants"],
    );
}

#[test]
fn imports() {
    let table: &[(&[&str], &[&str])] = &[
        (
            &["wasi:keyvalue/store@0.2.0"],
            &["it imports `wasi:keyvalue/store@0.2.0`, which this host does not have and no grant"],
        ),
        (
            &["wasi:http/incoming-handler@0.2.3"],
            &["it imports `wasi:http/incoming-handler@0.2.3`, which this host"],
        ),
        (
            &["zeph:plugin/kitchen@0.1.0"],
            &[
                "it imports `zeph:plugin/kitchen@0.1.0`, which this host does not have; a later zeph-host may",
            ],
        ),
        (
            &["zeph:plugin/log@0.2.0", "zeph:plugin/walk@0.2.0"],
            &["it is built for zeph:plugin 0.2, this host speaks 0.1; rebuild"],
        ),
        (
            &["wasi:cli/stdin@0.3.0", "wasi:io/poll@0.3.1"],
            &["it is built for WASI 0.3, this host speaks 0.2; rebuild it for WASI 0.2"],
        ),
        (
            &["wasi:cli/stdin@0.3.0-rc-2025-09-16"],
            &["it imports `wasi:cli/stdin@0.3.0-rc-2025-09-16`, not a released version"],
        ),
        (
            &["wasi:io/poll@0.2.0-rc-2023-11-10"],
            &[
                "it imports `wasi:io/poll@0.2.0-rc-2023-11-10`, not a released version; rebuild it for WASI 0.2",
            ],
        ),
        (
            &["wasi:io/poll"],
            &["it imports `wasi:io/poll`, not a released version"],
        ),
        (
            &["a:b/c@1.0.0", "wasi:io/poll@0.2.0", "d"],
            &["it imports `a:b/c@1.0.0`, which", "it imports `d`, which"],
        ),
    ];
    for (names, expected) in table {
        let imports: String = names.iter().map(|name| import(name)).collect();
        check(&plugin(&imports), expected);
    }
}

#[test]
fn many_unknown_imports_are_not_all_told() {
    let imports: String = (0..100).map(|idx| import(&format!("a:b/c{idx}"))).collect();
    let problems = read(&plugin(&imports)).problems;
    assert_eq!(problems.len(), 9);
    assert_eq!(problems[8], "92 more of its imports are not known here");
}

#[test]
fn a_resource_needs_a_host() {
    check(
        &plugin(r#"(import "a:b/c" (instance (export "r" (type (sub resource)))))"#),
        &["it imports `a:b/c`, which this host does not have"],
    );
}

#[test]
fn a_function_that_is_imported_is_told() {
    check(
        &plugin(r#"(import "fetch" (func))"#),
        &[
            "it imports `fetch`, which this host does not have: a plugin can import `wasi:*` 0.2 and `zeph:plugin` 0.1;",
        ],
    );
}

#[test]
fn a_core_module_is_named_after_the_host_it_was_made_for() {
    for (imports, host, advice) in [
        (
            &["extism:host/env input_length"][..],
            "Extism",
            "plugin new",
        ),
        (&["extism:host/user lookup"], "Extism", "plugin new"),
        (&["env extism_input_length"], "Extism", "plugin new"),
        // Those of its Rust and Go kits import WASI, too, before or after.
        (
            &[
                "wasi_snapshot_preview1 fd_write",
                "extism:host/env output_set",
            ],
            "Extism",
            "cannot be converted",
        ),
        (&["wapc __guest_call"], "waPC", "plugin new"),
        (&["env proxy_log"], "Proxy-Wasm", "plugin new"),
        (&["wbg __wbg_log_1"], "wasm-bindgen", "wasm32-wasip2"),
        (
            &["./x_bg.js __wbindgen_throw"],
            "wasm-bindgen",
            "wasm32-wasip2",
        ),
        (&["env emscripten_memcpy"], "Emscripten", "wasm32-wasip2"),
        (
            &["gojs runtime.wasmExit"],
            "JavaScript (Go)",
            "wasm32-wasip2",
        ),
        (
            &["wasi_unstable fd_write"],
            "wasi_unstable",
            "component new",
        ),
    ] {
        let import = |names: &&str| {
            let (module, name) = names.split_once(' ').unwrap();
            format!(r#"(import "{module}" "{name}" (func))"#)
        };
        let imports: String = imports.iter().map(import).collect();
        let bytes = wat::parse_str(format!("(module {imports})")).unwrap();
        let message = inspect(&bytes).unwrap_err().to_string();
        let said = format!("(it is made for {host}");
        assert!(
            message.contains(&said) || message.contains(host),
            "{message}"
        );
        assert!(message.contains(advice), "{message}");
    }
}

#[test]
fn what_is_no_component() {
    check_error(b"", "the file is empty");
    check_error(b"\0as", "the file ends in the middle");
    check_error(b"\0asm\x0d", "the file ends in the middle");
    check_error(
        b"\0asm\x0c\0\x01\0",
        "this is WebAssembly of a version this host does not know (0x0001000c)",
    );
    check_error(
        &wat::parse_str("(module)").unwrap(),
        "this is a core WebAssembly module, not a component; build it",
    );
    let preview1 = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))))"#;
    check_error(
        &wat::parse_str(preview1).unwrap(),
        "this is a core WebAssembly module, not a component (it is made for WASI preview 1",
    );
    let foreign: [(&[u8], ForeignFile); 9] = [
        (b"\x7fELF\x02\x01\x01", ForeignFile::Native),
        (b"MZ\x90\0", ForeignFile::Native),
        (b"(component)", ForeignFile::WasmText),
        (b"\n ;; a comment\n(module)", ForeignFile::WasmText),
        (b"<!DOCTYPE html><title>404", ForeignFile::WebPage),
        (b"\x1f\x8b\x08", ForeignFile::Archive),
        (b"PK\x03\x04", ForeignFile::Archive),
        ("not a plugin, éh".as_bytes(), ForeignFile::Text),
        (b"\x01\x02\x03\xff", ForeignFile::Unknown),
    ];
    for (bytes, expected) in foreign {
        assert_eq!(inspect(bytes), Err(InspectError::NotWasm(expected)));
    }
}

#[test]
fn what_does_not_validate() {
    let table = [
        // A type that is not there, and features the engine does not compile.
        r#"(component (core module (func (result i32))) )"#,
        r#"(component (core module (memory 1 1 shared)))"#,
        r#"(component (core module (tag)))"#,
        r#"(component (core module (func (param externref))))"#,
        r#"(component (core type (func (param (ref null 7)))))"#,
    ];
    for wat in table {
        let bytes = wat::parse_str(wat).unwrap();
        println!("{wat}");
        check_error(&bytes, "the component is not valid for this host: ");
    }
}

#[test]
fn a_component_of_a_later_wasi_is_told_why_it_does_not_validate() {
    let wat = plugin(
        r#"(import "wasi:cli/stdin@0.3.0" (instance (type (stream u8)) (export "read" (func (result 0)))))"#,
    );
    check(&wat, &["it is built for WASI 0.3,"]);
}

#[test]
fn metadata() {
    let inner = r#"(core module
        (@custom "description" "inner")
        (@custom "version" "1.2.3")
        (@custom "licenses" "MIT\0a \1b[31mOR evil"))"#;
    let outer = custom("description", "outer\u{202e}\n text");
    let metadata = read(&plugin(&format!("{inner} {outer}"))).metadata;
    assert_eq!(metadata.description.as_deref(), Some("outer text"));
    assert_eq!(metadata.version.as_deref(), Some("1.2.3"));
    assert_eq!(metadata.licenses.as_deref(), Some("MIT [31mOR evil"));
    assert_eq!(metadata.authors, None);
}

#[test]
fn names_and_producers() {
    let inner = r#"(core module $libc.so
        (@producers (language "Rust" "2024") (processed-by "rustc" "1.95.0") (processed-by "rustc" "1.95.0")))"#;
    let metadata = read(&plugin(inner)).metadata;
    // The name of some module inside is not the component's.
    assert_eq!(metadata.name, None);
    assert_eq!(metadata.made_with, ["rustc 1.95.0"]);
    let named = plugin(inner).replacen("(component", "(component $outer", 1);
    assert_eq!(read(&named).metadata.name.as_deref(), Some("outer"));
}

const MANIFEST: &str = "[[limit]]\nname = \"memory_bytes\"\nvalue = 1\nreason = \"big\"\n";

#[test]
fn manifests() {
    let section = custom("zeph:manifest", MANIFEST);
    let inner = format!("(core module {section})");
    for parts in [
        section.clone(),
        inner.clone(),
        format!("{inner}{section}"),
        format!("(component {inner})"),
    ] {
        let inspection = read(&plugin(&parts));
        let wants = inspection.manifest.unwrap().wants;
        assert_eq!(
            wants[0].capability.to_string(),
            format!("limit {}=1", LimitName::MemoryBytes)
        );
        assert!(inspection.problems.is_empty());
    }
    assert_eq!(read(&plugin("")).manifest, None);
    let other = custom("zeph:manifest", &MANIFEST.replace('1', "2"));
    check(
        &plugin(&format!("{inner}{other}")),
        &["it has two manifests (`zeph:manifest`) that differ"],
    );
    check(
        &plugin(&custom("zeph:manifest", "a = 1")),
        &["its manifest (`plugin.toml`) is bad: line 1: unknown field `a`"],
    );
    check(
        &plugin(&custom("zeph:manifest", &"#".repeat(100_000))),
        &["its manifest has 100000 bytes; the limit is 65536"],
    );
    check(
        &plugin(r#"(@custom "zeph:manifest" "\ff\fe")"#),
        &["its manifest (`plugin.toml`) is bad: it is not UTF-8"],
    );
}

#[test]
fn what_is_read_of_a_plugin() {
    let inspection = read(&plugin(&import("wasi:io/poll@0.2.6")));
    assert_eq!(
        inspection.kind,
        ComponentKind::ToolPlugin {
            version: "0.1.0".to_owned()
        }
    );
    let shown = serde_json::to_value(&inspection).unwrap();
    assert_eq!(
        shown["imports"],
        serde_json::json!([{"name": "wasi:io/poll", "version": "0.2.6", "kind": "interface", "is_known": true}])
    );
    assert_eq!(
        shown["exports"],
        serde_json::json!([{"name": "zeph:plugin/tools", "version": "0.1.0", "kind": "interface", "n_functions": 2}])
    );
}
