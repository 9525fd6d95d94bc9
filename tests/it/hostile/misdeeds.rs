//! The table of misdeeds, and what must be true of each.

use std::collections::HashMap;
use std::time::Instant;

use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_engine::{Engine, Plugin};

use super::harness::{Call, LATE, PATIENT, Pool, SHORT, all_threads_are_free, engine, good, load};

/// A guest, its variant, and how its call must end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Misdeed {
    pub(super) guest: &'static str,
    pub(super) say: &'static str,
    pub(super) ends: Ends,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Ends {
    /// By time alone, whichever limit comes first.
    InTime,
    /// As a failure that would be the same another time, with these words.
    For(&'static str),
    /// As another failure, with these words.
    As(&'static str, &'static str),
    /// As a success with this text: what was tried came to nothing.
    Saying(&'static str),
}

const BROKE: &str = "broke its contract";
const CRASHED: &str = "the plugin crashed";

/// Each guest with all of its variants.
pub(super) fn misdeeds() -> Vec<Misdeed> {
    use Ends::{As, For, InTime, Saying};
    let rows: &[(&str, &[(&str, Ends)])] = &[
        (
            "spin",
            &["a", "b", "c", "d", "e", "f"].map(|say| (say, InTime)),
        ),
        (
            "spin",
            &["g", "h"].map(|say| (say, For("limits.memory_bytes"))),
        ),
        ("spin_realloc", &[("a", InTime)]),
        ("spin_drop", &[("a", InTime)]),
        ("spin_post", &[("a", InTime)]),
        ("wait", &["a", "b", "c", "d"].map(|say| (say, InTime))),
        (
            "flood",
            &["a", "b", "c", "d", "e", "f", "g", "h"].map(|say| (say, InTime)),
        ),
        (
            "flood",
            &["a", "b", "c", "d", "e", "f", "g"].map(|say| (say, For("limits.host_calls"))),
        ),
        ("flood", &[("i", Saying("done")), ("j", Saying("done"))]),
        ("flood", &["k", "l", "m"].map(|say| (say, For(BROKE)))),
        (
            "memory",
            &["a", "b", "c"].map(|say| (say, For("limits.memory_bytes"))),
        ),
        (
            "table",
            &["a", "b"].map(|say| (say, For("limits.table_elements"))),
        ),
        (
            "recurse",
            &["a", "b", "c"].map(|say| (say, For("recursed too deeply"))),
        ),
        (
            "trap",
            &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(|say| (say, For(CRASHED))),
        ),
        (
            "result",
            &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(|say| (say, For(BROKE))),
        ),
        (
            "result",
            &[("l", For("limits.output_bytes")), ("m", For("AAAA"))],
        ),
        (
            "result",
            &[
                ("n", For("not valid JSON")),
                ("o", For("not valid JSON")),
                ("p", For("no such thing")),
            ],
        ),
        (
            "result",
            &[(
                "q",
                As(
                    "permanent_failure",
                    "the schema of a question is not valid JSON",
                ),
            )],
        ),
        ("result", &[("r", As("rate_limited", "no such thing"))]),
        ("realloc", &[("a", For(BROKE))]),
        ("realloc_crooked", &[("a", For(BROKE))]),
        ("realloc_same", &[("a", Saying("done"))]),
        (
            "handles",
            &[("a", For("limits.handles")), ("b", For("more than 100000"))],
        ),
        (
            "network",
            &[("a", Saying("010101")), ("b12345", Saying("15"))],
        ),
        ("network", &[("c", Saying("done")), ("d", Saying("done"))]),
        (
            "process",
            &[("a", Saying("0")), ("b", Saying("2")), ("c", Saying("2"))],
        ),
        ("process", &[("d", For(BROKE)), ("e", Saying("0"))]),
        ("surroundings", &[("a", Saying("00")), ("d", Saying("1"))]),
        (
            "surroundings",
            &[("b", For("exit code 1")), ("c", For("exit code 0"))],
        ),
        ("files", &[("r/etc/passwd|", Saying("no directory"))]),
    ];
    let each = rows.iter().flat_map(|(guest, variants)| {
        let guest = *guest;
        variants.iter().map(move |(say, ends)| Misdeed {
            guest,
            say,
            ends: *ends,
        })
    });
    each.collect()
}

/// The guests of the table, loaded.
pub(super) struct Gang {
    pub(super) engine: Engine,
    pub(super) good: Plugin,
    plugins: HashMap<&'static str, Plugin>,
}

impl Gang {
    pub(super) async fn load(pool: Pool) -> Self {
        let engine = engine(pool);
        let mut plugins = HashMap::new();
        for Misdeed { guest, .. } in misdeeds() {
            if !plugins.contains_key(guest) {
                plugins.insert(guest, load(&engine, guest, PATIENT).await.unwrap());
            }
        }
        let good = load(&engine, "good", PATIENT).await.unwrap();
        Self {
            engine,
            good,
            plugins,
        }
    }

    pub(super) fn call(&self, misdeed: &Misdeed) -> Call<'_> {
        let limits = match misdeed.ends {
            Ends::InTime => SHORT,
            _ => PATIENT,
        };
        self.call_within(misdeed, limits)
    }

    pub(super) fn call_within(
        &self,
        misdeed: &Misdeed,
        limits: zeph_core::limit::CallLimits,
    ) -> Call<'_> {
        Call::new(&self.plugins[misdeed.guest], misdeed.say, limits)
    }
}

impl Misdeed {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.guest, self.say)
    }

    #[track_caller]
    pub(super) fn check(&self, result: Result<RawOutput, ToolFailure>) {
        let name = self.name();
        let (category, words) = match self.ends {
            Ends::Saying(text) => {
                let said = result.map(|output| output.to_text());
                assert_eq!(said.as_deref().ok(), Some(text), "{name}: {said:?}");
                return;
            }
            Ends::InTime => ("timeout", "limits."),
            Ends::For(words) => ("permanent_failure", words),
            Ends::As(category, words) => (category, words),
        };
        let failure = result.expect_err(&name);
        assert_eq!(failure.category.label(), category, "{name}: {failure:?}");
        assert!(failure.message.contains(words), "{name}: {failure:?}");
        assert!(
            failure.message.len() < 20_000,
            "{name}: {} bytes",
            failure.message.len()
        );
    }
}

async fn each_ends_and_the_next_call_works(pool: Pool) {
    let gang = Gang::load(pool).await;
    for misdeed in misdeeds() {
        let started = Instant::now();
        let result = gang.call(&misdeed).run().await;
        let took = started.elapsed();
        let is_late = matches!(misdeed.ends, Ends::InTime) && took > SHORT.wall_clock + LATE;
        assert!(!is_late, "{} took {took:?}", misdeed.name());
        misdeed.check(result);
        good(&gang.good).await;
    }
    all_threads_are_free(&gang.engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ends_and_the_next_call_works_with_a_pool() {
    each_ends_and_the_next_call_works(Pool::Prepared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ends_and_the_next_call_works_without_one() {
    each_ends_and_the_next_call_works(Pool::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sibling_in_flight_finishes_untouched() {
    let gang = Gang::load(Pool::Prepared).await;
    let works = load(&gang.engine, "works", PATIENT).await.unwrap();
    let (is_over, mut over) = tokio::sync::watch::channel(false);
    let bad = async {
        for misdeed in misdeeds() {
            misdeed.check(gang.call(&misdeed).run().await);
        }
        is_over.send_replace(true);
    };
    // One is always in flight: the next begins as soon as the last has ended.
    let siblings = async {
        let mut n_done = 0;
        while !*over.borrow_and_update() {
            let answer = Call::new(&works, "b", PATIENT).run().await.unwrap();
            assert_eq!(answer.to_text(), "intact");
            n_done += 1;
        }
        assert!(n_done > 1, "{n_done}");
    };
    tokio::join!(bad, siblings);
}

#[test]
fn every_guest_is_tried() {
    let tried: Vec<&str> = misdeeds().iter().map(|misdeed| misdeed.guest).collect();
    for (name, _) in zeph_selftest::guests::GUESTS {
        let behaves = ["good", "works"].contains(name);
        let is_listed = super::listing::is_tried(name);
        assert!(behaves || is_listed || tried.contains(name), "{name}");
    }
}
