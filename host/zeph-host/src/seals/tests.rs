use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ALL_MAX, BadSeal, OPEN_MAX, Seals, Subject};

const LATER_MS: i64 = 1_000;

fn subject<'a>(owner: Option<&'a str>, parts: &'a [&'a [u8]]) -> Subject<'a> {
    Subject {
        purpose: "test",
        owner,
        parts,
    }
}

fn seal(seals: &Seals, subject: Subject<'_>) -> String {
    seals.seal(subject, &json!({ "n": 1 }), LATER_MS, 0)
}

fn why(seals: &Seals, subject: Subject<'_>, seal: &str, now_ms: i64) -> Option<BadSeal> {
    seals.open::<Value>(subject, seal, now_ms).err()
}

#[test]
fn a_seal_is_redeemed_once() {
    let (seals, own) = (Seals::new(), subject(Some("ann"), &[b"a", b"b"]));
    let sealed = seal(&seals, own);
    let opened = seals.open::<Value>(own, &sealed, LATER_MS - 1).unwrap();
    assert_eq!(opened.content, json!({ "n": 1 }));
    assert!(seals.redeem(opened.ticket));
    assert!(!seals.redeem(opened.ticket));
    assert_eq!(why(&seals, own, &sealed, 0), Some(BadSeal::Used));
}

#[test]
fn of_many_at_once_one_redeems() {
    let (seals, own) = (Seals::new(), subject(None, &[]));
    let sealed = seal(&seals, own);
    let redeemed = |_| {
        let opened = seals.open::<Value>(own, &sealed, 0).ok();
        opened.is_some_and(|opened| seals.redeem(opened.ticket))
    };
    let n_redeemed = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8).map(|n| scope.spawn(move || redeemed(n))).collect();
        let ends = tries.into_iter().map(|end| end.join().unwrap());
        ends.filter(|was_first| *was_first).count()
    });
    assert_eq!(n_redeemed, 1);
}

#[test]
fn a_seal_belongs_to_one_thing_and_one_process() {
    let seals = Seals::new();
    let parts: &[&[u8]] = &[b"ab", b"c"];
    let sealed = seal(&seals, subject(Some("ann"), parts));
    for other in [
        subject(None, parts),
        subject(Some("bob"), parts),
        subject(Some("ann"), &[b"a", b"bc"]),
        subject(Some("ann"), &[b"abc"]),
        subject(Some("ann"), &[b"ab"]),
        Subject {
            purpose: "other",
            ..subject(Some("ann"), parts)
        },
    ] {
        let problem = why(&seals, other, &sealed, 0);
        assert_eq!(problem, Some(BadSeal::Foreign), "{other:?}");
    }
    let own = subject(Some("ann"), parts);
    assert_eq!(why(&Seals::new(), own, &sealed, 0), Some(BadSeal::Foreign));
    assert_eq!(why(&seals, own, &sealed, LATER_MS), Some(BadSeal::Expired));
    assert_eq!(why(&seals, own, &sealed, 0), None);
}

#[test]
fn what_is_never_redeemed_takes_bounded_room_of_its_owner() {
    let seals = Seals::new();
    let (ann, bob) = (subject(Some("ann"), &[]), subject(Some("bob"), &[]));
    let of_bob = seal(&seals, bob);
    let first = seal(&seals, ann);
    for _ in 0..OPEN_MAX {
        seal(&seals, ann);
    }
    assert_eq!(seals.n_open(), OPEN_MAX + 1);
    assert_eq!(why(&seals, ann, &first, 0), Some(BadSeal::Used));
    assert_eq!(why(&seals, bob, &of_bob, 0), None);
    // Those whose time is over make room for others.
    seals.seal(ann, &json!(null), 2 * LATER_MS, LATER_MS);
    assert_eq!(seals.n_open(), 1);
    const { assert!(ALL_MAX > OPEN_MAX) };
}

proptest! {
    /// Whatever is done to the text of a seal, only the seal itself can be opened.
    #[test]
    fn no_other_text_is_the_seal(place in 0usize..400, letter in "[ -~]", cut in 0usize..400) {
        let (seals, own) = (Seals::new(), subject(Some("ann"), &[b"a"]));
        let sealed = seal(&seals, own);
        let place = place % sealed.len();
        let changed = format!("{}{letter}{}", &sealed[..place], &sealed[place + 1..]);
        let inserted = format!("{}{letter}{}", &sealed[..place], &sealed[place..]);
        for other in [changed.as_str(), &inserted, &sealed[..cut % sealed.len()]] {
            let opened = why(&seals, own, other, 0);
            prop_assert_eq!(opened.is_none(), other == sealed, "{}", other);
        }
    }
}
