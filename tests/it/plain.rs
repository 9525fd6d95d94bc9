//! A component that knows nothing of us, made by an ordinary tool chain: its functions are tools.

use std::time::Duration;

use serde_json::{Value, json};
use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_core::limit::CallLimits;
use zeph_engine::Cancel;

use crate::guest::{Guest, LIMITS, PATIENT};
use crate::product::{Product, answer};

/// The component, compiled by the build script.
static PLAIN: &[u8] = include_bytes!(env!("GUEST_PLAIN"));

async fn load(limits: CallLimits) -> Guest {
    Guest::of("plain", PLAIN.into(), limits, &FsGrant::default()).await
}

fn item() -> Value {
    json!({
        "name": "kettle",
        "price_cents": 1_999,
        "kind": "electric_thing",
        "tags": ["new", "on_sale"],
        "weight": 850.5,
        "size": [20, 15, 25],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_are_tools_in_the_words_of_their_author() {
    let guest = load(PATIENT).await;
    let names: Vec<&str> = guest
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "add",
            "spin",
            "letters",
            "fail",
            "crash",
            "read_file",
            "count",
            "sell",
            "double",
            "blank",
            "all",
            "bytes",
            "big",
            "maybe",
            "outcome",
            "pair",
            "float",
        ]
    );
    let tool = |name: &str| guest.tool(name);
    assert_eq!(tool("add").description, "Adds two numbers.");
    assert_eq!(
        tool("big").description,
        "`big: func(it: s64) -> s64` of `echo` in `plain`. Values that go in and come out as they are."
    );
    let sell = tool("sell").parameters.schema();
    let says = |pointer: &str| {
        sell.pointer(&format!("/properties/{pointer}/description"))
            .unwrap()
            .clone()
    };
    assert_eq!(says("item"), "Something for sale.");
    assert_eq!(says("item/properties/name"), "As on the label.");
    assert_eq!(
        says("item/properties/kind"),
        "What sort of thing it is. `electric_thing`: With a plug."
    );
    assert_eq!(
        says("payment/properties/split"),
        "Several payments that add up."
    );
    assert_eq!(
        sell["properties"]["payment"]["properties"]["split"]["items"]["properties"]["cents"]["type"],
        "integer"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_go_in_and_come_out() {
    let guest = load(PATIENT).await;
    let sold = "Item { name: \"kettle\", price-cents: 1999, kind: Kind::ElectricThing, tags: Tags(NEW | ON_SALE), \
                weight: Some(850.5), size: (20, 15, 25) }";
    let doubled = json!({"result": [{
        "name": "kettle", "price_cents": 3_998, "kind": "electric_thing", "tags": ["new", "on_sale"],
        "weight": 850.5, "size": [20, 15, 25],
    }]});
    let blank = json!({
        "name": "", "price_cents": "18446744073709551615", "kind": "electric_thing",
        "tags": ["new", "on_sale"], "size": [1, 2, 3],
    });
    let all = json!({
        "a": true, "b": -1, "c": 65_535, "d": -7, "e": "18446744073709551615", "f": -5, "g": 0.1, "h": 1e300,
        "i": "é", "j": "two\nlines",
    });
    let table = [
        ("add", json!({"a": 2, "b": "3"}), json!({"result": 5})),
        (
            "sell",
            json!({"item": item(), "payment": {"cash": true}}),
            json!({"result": sold}),
        ),
        ("double", json!({"items": [item()]}), doubled),
        ("blank", json!({}), blank),
        (
            "all",
            all,
            json!({"result": format!("true -1 65535 -7 18446744073709551615 -5 0.1 {} é two\nlines", 1e300)}),
        ),
        (
            "bytes",
            json!({"it": {"text": "hé"}}),
            json!({"result": {"text": "hé"}}),
        ),
        (
            "bytes",
            json!({"it": {"base64": "AAH/"}}),
            json!({"result": {"base64": "AAH/"}}),
        ),
        (
            "big",
            json!({"it": "-9223372036854775808"}),
            json!({"result": "-9223372036854775808"}),
        ),
        (
            "big",
            json!({"it": -9_007_199_254_740_991_i64}),
            json!({"result": -9_007_199_254_740_991_i64}),
        ),
        ("maybe", json!({}), json!({"result": null})),
        ("maybe", json!({"it": {}}), json!({"result": {}})),
        (
            "maybe",
            json!({"it": {"value": 7}}),
            json!({"result": {"value": 7}}),
        ),
        (
            "outcome",
            json!({"it": {"error": "odd"}}),
            json!({"result": [{"error": "odd"}, {"ok": 1}, {"error": "no"}]}),
        ),
        (
            "pair",
            json!({"it": {"item_0": "x"}}),
            json!({"result": {"item_0": "x"}}),
        ),
        ("float", json!({"it": "1.5"}), json!({"result": 1.5})),
        ("float", json!({"it": "x"}), json!({"result": "NaN"})),
        (
            "float",
            json!({"it": "-inf"}),
            json!({"result": "-Infinity"}),
        ),
    ];
    for (tool, arguments, expect) in table {
        let done = guest.call(tool, arguments.clone()).await;
        let done = done.unwrap_or_else(|failure| panic!("{tool} {arguments}: {failure:?}"));
        assert_eq!(done.structured, Some(expect), "{tool} {arguments}");
        assert!(guest.tool(tool).output.is_some(), "{tool}");
    }
    let sold_text = guest
        .call("sell", json!({"item": item(), "payment": {"cash": true}}))
        .await;
    assert_eq!(sold_text.unwrap().to_text(), sold, "a text is itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_function_says_against_it_is_a_failure() {
    let guest = load(PATIENT).await;
    let short = json!({"split": [{"who": "me", "cents": 1_000}, {"who": "you", "cents": "900"}]});
    let mut last = item();
    last["tags"] = json!(["last_one"]);
    let table = [
        ("fail", json!({"message": "no such city"}), "no such city"),
        (
            "sell",
            json!({"item": item(), "payment": short}),
            "{\"too_little\":99}",
        ),
        (
            "sell",
            json!({"item": last, "payment": {"cash": true}}),
            "{\"sold_out\":true}",
        ),
    ];
    for (tool, arguments, expect) in table {
        let failure = guest.call(tool, arguments).await.expect_err(tool);
        assert_eq!(failure.category.label(), "permanent_failure", "{failure:?}");
        assert_eq!(failure.message, expect);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_values_are_named_by_their_place() {
    let guest = load(PATIENT).await;
    let with = |key: &str, value: Value| {
        let mut item = item();
        item[key] = value;
        json!({ "items": [item] })
    };
    let table = [
        ("double", with("kind", json!("furniture")), "`items.0.kind`"),
        (
            "double",
            with("price_cents", json!(-1)),
            "`items.0.price_cents`",
        ),
        (
            "double",
            with("price_cents", json!(1.5)),
            "`items[0].price_cents`",
        ),
        (
            "double",
            with("size", json!([1, 2])),
            "`arguments.items[0].size`: expected an array of 3 items",
        ),
        (
            "double",
            with("tags", json!(["new", "new"])),
            "`arguments.items[0].tags`: `new` stands twice",
        ),
        (
            "bytes",
            json!({"it": {"base64": "&"}}),
            "`arguments.it.base64`: expected base64",
        ),
        (
            "sell",
            json!({"item": item(), "payment": {"cash": true, "card": "4000"}}),
            "`arguments.payment`: expected an object with exactly one of: cash, card, split",
        ),
    ];
    for (tool, arguments, expect) in table {
        let failure = guest
            .try_call(tool, arguments.clone())
            .await
            .expect_err(tool);
        assert!(failure.message.contains(expect), "{arguments}: {failure:?}");
        assert!(failure.category.asks_for_reformat(), "{failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_for_plain_functions() {
    let patient = load(PATIENT).await;
    let hurried = patient.with(LIMITS);
    let failure = hurried.call("spin", json!({})).await.unwrap_err();
    assert_eq!(failure.category.label(), "timeout");
    // It spins: whichever is reached first.
    let limits = ["limits.wall_clock_secs", "limits.cpu_secs"];
    let names = limits.iter().any(|limit| failure.message.contains(limit));
    assert!(names, "{failure:?}");
    let failure = patient
        .call("crash", json!({"message": "boom"}))
        .await
        .unwrap_err();
    assert!(failure.message.contains("boom"), "{failure:?}");
    for n in [LIMITS.output_bytes + 1, 100 << 20] {
        let failure = patient
            .call("letters", json!({ "n": n }))
            .await
            .unwrap_err();
        assert_eq!(failure.category.label(), "permanent_failure");
    }
    let full = patient
        .call("letters", json!({"n": LIMITS.output_bytes}))
        .await
        .unwrap();
    assert_eq!(full.to_text().len() as u64, LIMITS.output_bytes);
    let cancel = Cancel::new();
    let spinning = patient.call_with("spin", json!({}), cancel.clone());
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(spinning, cancelled);
    assert_eq!(result.unwrap_err().category.label(), "cancelled");
    for _ in 0..3 {
        let count = patient.call("count", json!({})).await.unwrap();
        assert_eq!(count.to_text(), "1", "each call has an instance of its own");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_functions_see_what_was_granted() {
    let none = load(PATIENT).await;
    let dir = tempfile::tempdir().unwrap();
    let dir_path = dir.path().canonicalize().unwrap();
    let file = dir_path.join("a.txt");
    std::fs::write(&file, "inside").unwrap();
    let arguments = json!({"path": file});
    none.call("read_file", arguments.clone()).await.unwrap_err();
    let grant = FsGrant {
        roots: vec![FsRoot {
            path: dir_path,
            rights: FsRights::READ,
        }],
        ..FsGrant::default()
    };
    let some = Guest::of("plain", PLAIN.into(), PATIENT, &grant).await;
    assert_eq!(
        some.call("read_file", arguments).await.unwrap().to_text(),
        "inside"
    );
}

#[test]
fn dropped_into_the_folder_its_functions_are_called() {
    let product = Product::new();
    product.file("a.txt", "inside");
    let folder = product.home.join(".config/zeph-host/plugins");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.wasm"), PLAIN).unwrap();
    let calls = [
        json!({"id": 1, "tool": "add", "params": {"a": 2, "b": 3}}),
        json!({"id": 2, "tool": "double", "params": {"items": [item()]}}),
        json!({"id": 3, "tool": "fail", "params": {"message": "no such city"}}),
        json!({"id": 4, "tool": "add", "params": {"a": -1, "b": 3}}),
        json!({"id": 5, "tool": "read_file", "params": {"path": product.work.join("a.txt")}}),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    // The second time its tools are known from a record.
    for run in ["first", "second"] {
        let answers = product.answers(&["--allow", "*"], &lines);
        assert_eq!(answer(&answers, 1)["text"], "5", "{run}");
        assert_eq!(
            answer(&answers, 1)["structured"],
            json!({"result": 5}),
            "{run}"
        );
        let doubled = answer(&answers, 2);
        assert_eq!(
            doubled["structured"]["result"][0]["price_cents"], 3_998,
            "{run}"
        );
        let failed = answer(&answers, 3);
        assert_eq!(failed["status"], "failed", "{failed}");
        assert_eq!(failed["error"]["message"], "no such city");
        assert_eq!(
            answer(&answers, 4)["error"]["category"],
            "invalid_parameters",
            "{run}"
        );
        // It has no manifest and was granted nothing: the refusal names the line that would.
        assert_eq!(answer(&answers, 5)["status"], "refused", "{run}");
    }
}

/// What toolchains make with the async ABI: built-ins for plain functions, and functions that are asynchronous by their type.
const ASYNC: &str = r#"(component
    (core func $cancel (canon task.cancel))
    (core func $return (canon task.return (result u32)))
    (core func $set (canon waitable-set.new))
    (core module $code
        (import "host" "cancel" (func))
        (import "host" "return" (func $return (param i32)))
        (import "host" "set" (func $set (result i32)))
        (func (export "answer") (result i32) i32.const 42)
        (func (export "later") (result i32) (call $return (i32.const 43)) i32.const 0)
        ;; WAIT, for a set without members.
        (func (export "never") (result i32) (i32.or (i32.shl (call $set) (i32.const 4)) (i32.const 2)))
        (func (export "resumed") (param i32 i32 i32) (result i32) unreachable))
    (core instance $instance (instantiate $code (with "host" (instance
        (export "cancel" (func $cancel)) (export "return" (func $return)) (export "set" (func $set))))))
    (func (export "answer") (result u32) (canon lift (core func $instance "answer")))
    (func (export "later") async (result u32)
        (canon lift (core func $instance "later") async (callback (core func $instance "resumed"))))
    (func (export "never") async (result u32)
        (canon lift (core func $instance "never") async (callback (core func $instance "resumed"))))
    (func (export "flow") (result (stream u8)) (canon lift (core func $instance "answer"))))"#;

#[test]
fn a_component_that_needs_async_runs_and_waits_for_nothing_that_cannot_happen() {
    let product = Product::new();
    product.file("asking.wasm", wat::parse_str(ASYNC).unwrap());
    let checked = product.run(&["plugin", "check", "asking.wasm"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // What is no tool is not left out silently.
    assert!(
        checked.stdout.contains("flow: it uses a stream"),
        "{checked:?}"
    );
    for (tool, expect) in [("answer", "42"), ("later", "43")] {
        let called = product.run(&["call", "./asking.wasm", tool]);
        assert_eq!(called.stdout.trim(), expect, "{called:?}");
    }
    let called = product.run(&["call", "./asking.wasm", "never"]);
    assert_eq!(called.code, Some(1), "{called:?}");
    assert!(called.stderr.contains("deadlock"), "{called:?}");
}
