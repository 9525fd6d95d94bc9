//! Calls into components written by hand, for what no tool chain would write.

use serde_json::{Value, json};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;

use crate::plain::Plain;

/// Calls `tool` of the component in `wat`; the outer error is a trap.
fn call(
    wat: &str,
    tool: &str,
    arguments: Value,
) -> wasmtime::Result<Result<RawOutput, ToolFailure>> {
    let engine = Engine::new(Config::new().concurrency_support(false)).unwrap();
    let component = Component::from_binary(&engine, &wat::parse_str(wat).unwrap()).unwrap();
    let pre = Linker::new(&engine).instantiate_pre(&component).unwrap();
    let plain = Plain::new(pre).unwrap();
    let mut store = Store::new(&engine, ());
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let returned = runtime.block_on(plain.call(&mut store, tool, &arguments))?;
    Ok(returned.finish(1 << 20))
}

/// A component with one function `f` of type `ty`, whose core function is `core` and may use the memory.
fn one(ty: &str, core: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (global $top (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (global.get $top)
                    (global.set $top (i32.add (global.get $top) (local.get 3))))
                (data (i32.const 0) "\10\00\00\00\03\00\00\00")
                (data (i32.const 16) "\ff\fe\41")
                {core})
            (core instance $i (instantiate $m))
            (func $f {ty} (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc"))))
            (export "f" (func $f)))"#
    )
}

#[test]
fn what_a_guest_may_not_return_ends_the_call() {
    #[track_caller]
    fn check(ty: &str, core: &str, expect: &str) {
        let error = call(&one(ty, core), "f", json!({})).expect_err(ty);
        let root = error.root_cause().to_string();
        assert!(root.contains(expect), "{ty}: {root}");
    }
    let at_0 = "(func (export \"f\") (result i32) (i32.const 0))";
    check("(result string)", at_0, "utf-8");
    let surrogate = "(func (export \"f\") (result i32) (i32.const 0xd800))";
    check("(result char)", surrogate, "char");
    let beyond = "(func (export \"f\") (result i32) (i32.const 0x7ffffff0))";
    check("(result string)", beyond, "out of bounds");
    let odd = "(func (export \"f\") (result i32) (i32.const 3))";
    check("(result string)", odd, "aligned");
    let endless = "(data (i32.const 32) \"\\00\\00\\00\\00\\ff\\ff\\ff\\0f\") (func (export \"f\") (result i32) (i32.const 32))";
    check("(result (list u64))", endless, "out of bounds");
    let traps = "(func (export \"f\") (result i32) unreachable)";
    check("(result bool)", traps, "unreachable");
}

#[test]
fn numbers_out_of_range_are_cut_to_their_type() {
    let wide = "(func (export \"f\") (result i32) (i32.const 0x101))";
    let done = call(&one("(result u8)", wide), "f", json!({}))
        .unwrap()
        .unwrap();
    assert_eq!(done.to_text(), "1");
    let done = call(&one("(result bool)", wide), "f", json!({}))
        .unwrap()
        .unwrap();
    assert_eq!(done.to_text(), "true");
}

#[test]
fn arguments_arrive_in_their_order() {
    let core = "(func (export \"f\") (param i32 i64 f64) (result i64)
        (i64.add (i64.mul (i64.extend_i32_u (local.get 0)) (i64.const 100)) (local.get 1)))";
    let ty = "(param \"zebra\" u8) (param \"apple\" s64) (param \"mid-one\" f64) (result s64)";
    let arguments = json!({"apple": "7", "mid_one": 0.5, "zebra": 3});
    let done = call(&one(ty, core), "f", arguments).unwrap().unwrap();
    assert_eq!(done.to_text(), "307");
    assert_eq!(done.structured, Some(json!({"result": 307})));
}

#[test]
fn wrong_arguments_never_reach_the_guest() {
    let core =
        "(func (export \"f\") (param i32) unreachable) (func $start unreachable) (start $start)";
    let failure = call(&one("(param \"n\" u8)", core), "f", json!({"n": 256}))
        .unwrap()
        .unwrap_err();
    assert_eq!(
        failure.message,
        "`arguments.n`: expected an integer of 0 to 255, not 256"
    );
    let error = call(&one("(param \"n\" u8)", core), "f", json!({"n": 25})).unwrap_err();
    assert!(error.root_cause().to_string().contains("unreachable"));
}

#[test]
fn what_the_guest_cleans_up_after_a_call_is_run() {
    let wat = r#"(component
        (core module $m
            (func (export "f") (result i32) (i32.const 1))
            (func (export "post") (param i32) unreachable))
        (core instance $i (instantiate $m))
        (func (export "f") (result bool) (canon lift (core func $i "f") (post-return (func $i "post")))))"#;
    let error = call(wat, "f", json!({})).unwrap_err();
    assert!(error.root_cause().to_string().contains("unreachable"));
}
