use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use zeph_store::{Location, SealKeyFile, Store, StoreOptions};

use super::uses::{ALL_MAX, OPEN_MAX};
use super::{BadSeal, Seals, Subject};

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

async fn is_used(seals: &Seals, subject: Subject<'_>, seal: &str) -> bool {
    let opened = seals.open::<Value>(subject, seal, 0).unwrap();
    seals.check(opened.ticket).await == Err(BadSeal::Used)
}

#[tokio::test]
async fn a_seal_is_redeemed_once() {
    let (seals, own) = (Seals::new(), subject(Some("ann"), &[b"a", b"b"]));
    let sealed = seal(&seals, own);
    let opened = seals.open::<Value>(own, &sealed, LATER_MS - 1).unwrap();
    assert_eq!(opened.content, json!({ "n": 1 }));
    assert!(!is_used(&seals, own, &sealed).await);
    assert_eq!(seals.redeem(opened.ticket).await, Ok(()));
    assert_eq!(seals.redeem(opened.ticket).await, Err(BadSeal::Used));
    assert!(is_used(&seals, own, &sealed).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_redeems() {
    let seals = Arc::new(Seals::new());
    let own = subject(None, &[]);
    let sealed = seal(&seals, own);
    let mut tries = JoinSet::new();
    for _ in 0..8 {
        let (seals, ticket) = (Arc::clone(&seals), seals.open::<Value>(own, &sealed, 0));
        let ticket = ticket.unwrap().ticket;
        tries.spawn(async move { seals.redeem(ticket).await.is_ok() });
    }
    let ends = tries.join_all().await;
    assert_eq!(ends.into_iter().filter(|was_first| *was_first).count(), 1);
}

/// A folder with a file of these keys, and a store.
struct Lab {
    folder: TempDir,
    store: Store,
}

impl Lab {
    fn new(keys: &[u8]) -> Self {
        let options = StoreOptions {
            at_ms: 0,
            busy_timeout: Duration::from_secs(5),
        };
        let lab = Self {
            folder: tempfile::tempdir().unwrap(),
            store: Store::open(Location::Memory, options).unwrap().store,
        };
        lab.write(keys);
        lab
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    fn write(&self, keys: &[u8]) {
        let next = self.folder.path().join("next");
        let lines = keys.iter().map(|key| format!("{}\n", hex(*key)));
        fs::write(&next, lines.collect::<String>()).unwrap();
        fs::set_permissions(&next, Permissions::from_mode(0o600)).unwrap();
        fs::rename(&next, self.path()).unwrap();
    }

    /// Another host.
    fn host(&self) -> Seals {
        Seals::shared(
            SealKeyFile::new(self.path(), "mcp.serve.seal_keys"),
            self.store.clone(),
        )
        .unwrap()
    }
}

fn hex(key: u8) -> String {
    format!("{key:02x}").repeat(32)
}

#[tokio::test]
async fn hosts_with_one_file_of_keys_open_each_others_seals_once_in_all() {
    let lab = Lab::new(&[1]);
    let own = subject(Some("ann"), &[b"a"]);
    let (one, other) = (lab.host(), lab.host());
    let sealed = seal(&one, own);
    let opened = other.open::<Value>(own, &sealed, 0).unwrap();
    assert!(!is_used(&one, own, &sealed).await);
    let (first, second) = tokio::join!(one.redeem(opened.ticket), other.redeem(opened.ticket));
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
    for host in [&one, &other, &lab.host()] {
        assert!(is_used(host, own, &sealed).await);
    }
    assert!(one.are_shared() && !Seals::new().are_shared());
    let mark = one.mark(own);
    assert!(other.is_mark(own, &mark));
    assert!(!other.is_mark(subject(Some("bob"), &[b"a"]), &mark));
    assert!(!Seals::new().is_mark(own, &mark));
    for bad in ["", "A", &mark[1..], &format!("{mark}A"), &sealed] {
        assert!(!other.is_mark(own, bad), "{bad}");
    }
}

#[tokio::test]
async fn keys_change_hands_without_refusing_a_seal() {
    let lab = Lab::new(&[1]);
    let own = subject(None, &[]);
    let of_old = seal(&lab.host(), own);
    let steps: [&[u8]; 3] = [&[1, 2], &[2, 1], &[2]];
    let mut before = lab.host();
    for (step, keys) in steps.into_iter().enumerate() {
        lab.write(keys);
        let after = lab.host();
        // Hosts read the file at different moments.
        for (sealing, opening) in [(&before, &after), (&after, &before)] {
            assert_eq!(why(opening, own, &seal(sealing, own), 0), None, "{step}");
        }
        before = after;
    }
    assert_eq!(why(&before, own, &of_old, 0), Some(BadSeal::Foreign));
    lab.write(&[]);
    assert!(
        Seals::shared(
            SealKeyFile::new(lab.path(), "mcp.serve.seal_keys"),
            lab.store.clone()
        )
        .is_err()
    );
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

#[tokio::test]
async fn what_is_never_redeemed_takes_bounded_room_of_its_owner() {
    let seals = Seals::new();
    let (ann, bob) = (subject(Some("ann"), &[]), subject(Some("bob"), &[]));
    let of_bob = seal(&seals, bob);
    let first = seal(&seals, ann);
    for _ in 0..OPEN_MAX {
        seal(&seals, ann);
    }
    assert_eq!(seals.n_open(), OPEN_MAX + 1);
    assert!(is_used(&seals, ann, &first).await);
    assert!(!is_used(&seals, bob, &of_bob).await);
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
