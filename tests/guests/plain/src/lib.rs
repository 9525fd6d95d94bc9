//! A component that knows nothing of zeph-host: plain functions of every kind of type, as other authors would write them.

#![expect(
    unsafe_code,
    reason = "the binding generator's code, and a custom section"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use exports::test::plain::echo;
use exports::test::plain::shop::{self, Item, Kind, Payment, Refusal, Tags};

#[allow(warnings, reason = "the binding generator's code")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "plain" });
}

use bindings::{Guest, exports};

/// The comments of the WIT file are not part of a component: the text goes along.
#[used]
#[unsafe(link_section = "zeph:wit")]
static WIT: [u8; include_bytes!("../wit/world.wit").len()] = *include_bytes!("../wit/world.wit");

struct Plain;

impl shop::Guest for Plain {
    fn sell(item: Item, payment: Payment) -> Result<String, Refusal> {
        if item.tags.contains(Tags::LAST_ONE) {
            return Err(Refusal::SoldOut);
        }
        let paid = match payment {
            Payment::Cash => item.price_cents,
            Payment::Card(number) => number.len() as u64,
            Payment::Split(parts) => parts.iter().map(|part| part.cents).sum(),
        };
        match item.price_cents.checked_sub(paid) {
            Some(missing) if missing > 0 => Err(Refusal::TooLittle(missing)),
            _ => Ok(format!("{item:?}")),
        }
    }

    fn double(items: Vec<Item>) -> Vec<Item> {
        let doubled = items.into_iter().map(|item| Item {
            price_cents: item.price_cents.saturating_mul(2),
            ..item
        });
        doubled.collect()
    }

    fn blank() -> Item {
        Item {
            name: String::new(),
            price_cents: u64::MAX,
            kind: Kind::ElectricThing,
            tags: Tags::NEW | Tags::ON_SALE,
            weight: None,
            size: (1, 2, 3),
        }
    }
}

impl echo::Guest for Plain {
    fn all(
        a: bool,
        b: i8,
        c: u16,
        d: i32,
        e: u64,
        f: i64,
        g: f32,
        h: f64,
        i: char,
        j: String,
    ) -> String {
        format!("{a} {b} {c} {d} {e} {f} {g} {h} {i} {j}")
    }

    fn bytes(it: Vec<u8>) -> Vec<u8> {
        it
    }

    fn big(it: i64) -> i64 {
        it
    }

    fn maybe(it: Option<Option<u32>>) -> Option<Option<u32>> {
        it
    }

    fn outcome(it: Result<u32, String>) -> Vec<Result<u32, String>> {
        vec![it, Ok(1), Err("no".to_owned())]
    }

    fn pair(it: (String, Option<u8>)) -> (String, Option<u8>) {
        it
    }

    fn float(it: String) -> f64 {
        it.parse().unwrap_or(f64::NAN)
    }
}

impl Guest for Plain {
    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn spin() {
        loop {
            black_box(0);
        }
    }

    fn letters(n: u32) -> String {
        "x".repeat(n as usize)
    }

    fn fail(message: String) -> Result<(), String> {
        Err(message)
    }

    fn crash(message: String) {
        panic!("{message}")
    }

    fn read_file(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn count() -> u32 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        CALLS.fetch_add(1, Ordering::Relaxed) + 1
    }
}

// A native linker rejects the names of some exports, and CI links this crate natively, too.
#[cfg(target_family = "wasm")]
bindings::export!(Plain with_types_in bindings);
