//! Limits that are raised for one plugin hold beyond those the engine was made for, up to the ceilings and no further.

use std::time::Duration;

use serde_json::json;
use zeph_core::capability::{FsGrant, LimitName};
use zeph_core::limit::CallLimits;
use zeph_engine::{LIMITS_MAX, ceiling};

use crate::guest::{Guest, LIMITS, PATIENT};

/// Grows its table or memory, and tells how large it was, or -1.
const GROWS: &str = r#"
(component
  (core module $inside
    (table $table 10 funcref)
    (memory 1)
    (func (export "table") (param i32) (result i32)
      (table.grow $table (ref.null func) (local.get 0)))
    (func (export "memory") (param i32) (result i32)
      (memory.grow (local.get 0))))
  (core instance $inside (instantiate $inside))
  (func (export "table") (param "n" u32) (result s32)
    (canon lift (core func $inside "table")))
  (func (export "memory") (param "n" u32) (result s32)
    (canon lift (core func $inside "memory"))))
"#;

/// What a growth by `n` comes to: the former size, or the message.
async fn grow(guest: &Guest, what: &str, n: u64) -> String {
    match guest.call(what, json!({"n": n})).await {
        Ok(output) => output.to_text(),
        Err(failure) => failure.message,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_may_have_more_than_the_engine_was_made_for() {
    let component = wat::parse_str(GROWS).unwrap();
    let guest = Guest::of("grows", component.into(), LIMITS, &FsGrant::default()).await;
    let usual = guest.with(PATIENT);
    assert_eq!(grow(&usual, "table", 9_000).await, "10");
    assert_eq!(grow(&usual, "memory", 500).await, "1");
    let table = grow(&usual, "table", 10_000).await;
    assert!(table.contains("limits.table_elements"), "{table}");
    let memory = grow(&usual, "memory", 1_024).await;
    assert!(memory.contains("limits.memory_bytes"), "{memory}");

    let raised = guest.with(CallLimits {
        table_elements: 200_000,
        memory_bytes: 128 << 20,
        ..PATIENT
    });
    assert_eq!(grow(&raised, "table", 199_990).await, "10");
    assert_eq!(grow(&raised, "memory", 2_047).await, "1");
    let table = grow(&raised, "table", 199_991).await;
    assert!(table.contains("200000 table elements"), "{table}");
    let memory = grow(&raised, "memory", 2_048).await;
    assert!(memory.contains("134217728 bytes"), "{memory}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_grant_goes_beyond_the_ceilings_or_harms_the_host() {
    let component = wat::parse_str(GROWS).unwrap();
    let guest = Guest::of("grows", component.into(), LIMITS, &FsGrant::default()).await;
    let mut limits = LIMITS;
    for name in LimitName::ALL {
        name.raise(&mut limits, u64::MAX);
    }
    limits.wall_clock = Duration::MAX;
    let boundless = guest.with(limits);
    let most = ceiling(LimitName::TableElements);
    assert_eq!(most, LIMITS_MAX.table_elements);
    assert_eq!(grow(&boundless, "table", most - 10).await, "10");
    // The pool tells the guest itself; without one the limit ends the call.
    let more = grow(&boundless, "table", most).await;
    assert!(more == "-1" || more.contains("limits."), "{more}");
    assert_eq!(grow(&boundless, "memory", 65_536).await, "-1");
    assert_eq!(grow(&boundless, "memory", 2_000).await, "1");
}
