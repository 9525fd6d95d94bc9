//! Bytes made to hurt their reader.

use proptest::prelude::*;

use super::{FUNCTION, custom, import, plugin};
use crate::inspect::{InspectError, inspect};

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        match value {
            0 => {
                bytes.push(low);
                return bytes;
            }
            _ => bytes.push(low | 0x80),
        }
    }
}

fn section(id: u8, payload: &[u8]) -> Vec<u8> {
    [&[id], leb(payload.len()).as_slice(), payload].concat()
}

fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [HEADER, &sections.concat()].concat()
}

/// An empty component in so many others, each the only section of the next.
fn nested(depth: usize, id: u8) -> Vec<u8> {
    let mut lengths = vec![HEADER.len()];
    for idx in 0..depth {
        let inner = lengths[idx];
        lengths.push(HEADER.len() + 1 + leb(inner).len() + inner);
    }
    let mut bytes = Vec::new();
    for inner in lengths.iter().rev().skip(1) {
        bytes.extend_from_slice(HEADER);
        bytes.push(id);
        bytes.extend(leb(*inner));
    }
    bytes.extend_from_slice(HEADER);
    assert_eq!(Some(&bytes.len()), lengths.last());
    bytes
}

fn whole() -> Vec<u8> {
    let parts = [
        import("wasi:io/poll@0.2.0"),
        custom("version", "1.0.0"),
        custom("zeph:manifest", "[[host]]\nname = \"a.example\"\nreason = \"b\"\n"),
        r#"(core module (@producers (language "C" "11")) (func (result i32) i32.const 7) (data "abc"))"#.to_owned(),
    ];
    wat::parse_str(plugin(&parts.concat())).unwrap()
}

#[test]
fn every_cut_is_seen_as_incomplete_or_useless() {
    let whole = whole();
    assert!(inspect(&whole).unwrap().is_usable());
    let mut n_incomplete = 0;
    for n_bytes in 0..whole.len() {
        match inspect(&whole[..n_bytes]) {
            Err(error) => {
                assert!(error.is_incomplete(), "{n_bytes}: {error}");
                n_incomplete += 1;
            }
            // Cut between two sections, nothing shows that more was to come but what is missing; a component that lacks
            // nothing but custom sections is whole.
            Ok(inspection) => assert!(!inspection.is_usable() || whole[n_bytes] == 0, "{n_bytes}"),
        }
    }
    assert!(
        n_incomplete * 10 > whole.len() * 9,
        "{n_incomplete} of {}",
        whole.len()
    );
}

#[test]
fn components_deep_in_each_other_are_refused_before_they_are_validated() {
    let (component, module) = (4, 1);
    for depth in [101, 1_000, 100_000] {
        let error = inspect(&nested(depth, component)).unwrap_err();
        assert_eq!(
            error.to_string(),
            InspectError::Invalid(
                "it holds components more than 100 deep in each other".to_owned()
            )
            .to_string()
        );
    }
    let shallow = inspect(&nested(100, component));
    assert!(!shallow.is_err_and(|error| error.to_string().contains("deep")));
    assert!(inspect(&nested(100_000, module)).is_err());
}

#[test]
fn numbers_without_anything_behind_them() {
    let huge = leb(u32::MAX as usize);
    for id in 0..=11 {
        let claims_items = component(&[section(id, &huge)]);
        assert!(inspect(&claims_items).is_err(), "section {id}");
        let claims_bytes = [HEADER, &[id], huge.as_slice()].concat();
        let error = inspect(&claims_bytes).unwrap_err();
        assert!(
            matches!(error, InspectError::Truncated | InspectError::Invalid(_)),
            "{error}"
        );
    }
}

#[test]
fn names_of_a_megabyte() {
    let long = "a".repeat(1 << 20);
    let name = [&[0], leb(long.len()).as_slice(), long.as_bytes()].concat();
    let import = section(10, &[&[1], name.as_slice(), &[0x05, 0]].concat());
    let error = inspect(&component(&[import])).unwrap_err();
    assert!(error.to_string().len() < 500, "{error}");
    // A custom section's name may be long; nobody copies it.
    let custom = section(0, &[leb(long.len()).as_slice(), long.as_bytes()].concat());
    let answer = inspect(&component(&[custom]));
    assert!(
        answer.map_or_else(
            |error| error.to_string().len(),
            |found| found.problems[0].len()
        ) < 500
    );
}

#[test]
fn many_items() {
    let imports: String = (0..1_001)
        .map(|idx| import(&format!("a:b/c{idx}")))
        .collect();
    let error = inspect(&wat::parse_str(plugin(&imports)).unwrap()).unwrap_err();
    assert_eq!(
        error,
        InspectError::Invalid("it has more than 1000 imports".to_owned())
    );
    let exports: String = (0..999)
        .map(|idx| format!("(export \"f{idx}\" (func $f))"))
        .collect();
    let inspection =
        inspect(&wat::parse_str(format!("(component {FUNCTION} {exports})")).unwrap()).unwrap();
    assert!(inspection.is_usable());
}

#[test]
fn a_hundred_thousand_custom_sections() {
    let one = section(0, b"\x07version1");
    let mut bytes = [HEADER, &one.repeat(100_000)].concat();
    let manifest = custom("zeph:manifest", "x = 1");
    let with_manifest = wat::parse_str(format!("(component {manifest})")).unwrap();
    bytes.extend_from_slice(&with_manifest[HEADER.len()..]);
    let inspection = inspect(&bytes).unwrap();
    assert_eq!(inspection.metadata.version.as_deref(), Some("1"));
    // The manifest at their end is not overlooked.
    assert!(
        inspection.problems[1].contains("manifest"),
        "{:?}",
        inspection.problems
    );
}

/// Components in each other, each of which instantiates the one inside it `width` times.
fn doubling(n_levels: usize, width: usize, innermost: &str) -> String {
    let mut component = format!("(component $c {innermost})");
    for level in 1..=n_levels {
        let name = if level == n_levels { "" } else { "$c" };
        let instances: String = (0..width)
            .map(|n| format!("(instance $i{n} (instantiate $c))"))
            .collect();
        component =
            format!(r#"(component {name} {component} {instances} (export "f" (func $i0 "f")))"#);
    }
    component
}

#[test]
fn components_that_double_at_each_level() {
    let with_module = format!(r#"{FUNCTION} (export "f" (func $f))"#);
    let without = r#"(import "f" (func $f)) (export "g" (func $f))"#;
    let problems = |wat: &str| inspect(&wat::parse_str(wat).unwrap()).unwrap().problems;
    for (n_levels, width, expected) in [
        (1, 24, None),
        (4, 2, None),
        (1, 25, Some("it consists of 25 instances")),
        (5, 2, Some("it consists of 32 instances")),
        (40, 2, Some("it consists of 1099511627776 instances")),
        (70, 2, Some("it consists of 18446744073709551615 instances")),
    ] {
        let problems = problems(&doubling(n_levels, width, &with_module));
        let is_expected = match expected {
            None => problems.is_empty(),
            Some(start) => problems.iter().any(|problem| problem.starts_with(start)),
        };
        assert!(is_expected, "{n_levels} levels of {width}: {problems:?}");
    }
    // Without any module, what is written out counts.
    let inner = format!(r#"(component $d {without})"#);
    let instances = r#"(instance (instantiate $d (with "f" (func $f))))"#.repeat(900);
    let outer = format!(r#"(import "f" (func $f)) {inner} {instances} (export "f" (func $f))"#);
    let many = r#"(instance (instantiate $c (with "f" (func $f))))"#.repeat(900);
    let wat = format!(r#"(component (import "f" (func $f)) (component $c {outer}) {many})"#);
    let problems = problems(&wat);
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("written out, it has ")),
        "{problems:?}"
    );
}

#[test]
fn components_that_are_named_from_inside_or_given_are_counted() {
    let defined = format!(r#"(component $c {FUNCTION} (export "f" (func $f)))"#);
    let six = "(instance (instantiate $c))".repeat(6);
    let from_inside = format!("(component (alias outer 1 0 (component $c)) {six})");
    let problem = |parts: &str| {
        let wat = format!(
            r#"(component {defined} {parts} (instance $i (instantiate $c)) (export "f" (func $i "f")))"#
        );
        let problems = inspect(&wat::parse_str(wat).unwrap()).unwrap().problems;
        problems.into_iter().next().unwrap_or_default()
    };
    let inner = |n: usize| {
        format!(
            "(component $d {six}) {}",
            "(instance (instantiate $d))".repeat(n)
        )
    };
    assert_eq!(problem(&inner(3)), "");
    assert!(problem(&inner(4)).starts_with("it consists of 25 instances"));
    let times = |n: usize| format!("{from_inside} {}", "(instance (instantiate 1))".repeat(n));
    assert_eq!(problem(&times(3)), "");
    assert!(problem(&times(4)).starts_with("it consists of 25 instances"));
    let given = r#"(component $g (import "c" (component $p)) (instance (instantiate $p)))"#;
    assert_eq!(problem(given), "");
    let used = format!(r#"{given} (instance (instantiate $g (with "c" (component $c))))"#);
    assert!(problem(&used).starts_with("it instantiates a component that it imports"));
}

#[test]
fn types_that_double_at_each_step() {
    let mut types = "(type $t0 (tuple u8 u8))".to_owned();
    for idx in 1..60 {
        let before = idx - 1;
        types += &format!("(type $t{idx} (tuple $t{before} $t{before}))");
    }
    let wat = format!("(component {types} (export \"t\" (type $t59)))");
    let error = inspect(&wat::parse_str(wat).unwrap()).unwrap_err();
    assert!(matches!(error, InspectError::Invalid(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = whole();
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(inspection) = inspect(&bytes) {
            let shown = serde_json::to_string(&inspection).unwrap();
            prop_assert!(shown.len() < 20_000);
        }
    }

    #[test]
    fn parts_taken_out_or_doubled_never_panic(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), again in 0..3_usize) {
        let bytes = whole();
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let (from, to) = (from.min(to), from.max(to));
        let changed = [&bytes[..from], &bytes[from..to].repeat(again), &bytes[to..]].concat();
        drop(inspect(&changed));
    }
}
