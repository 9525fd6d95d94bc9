//! A thousand hostile calls among a thousand good ones, in one process.

use std::sync::Arc;

use tokio::task::JoinSet;
use zeph_core::limit::CallLimits;

use super::harness::{Call, PATIENT, Pool, SHORT, all_threads_are_free};
use super::misdeeds::{Gang, Misdeed, misdeeds};

/// Calls of each sort.
const N_CALLS: usize = 1_000;

/// Callers of each sort at one time: more than there are threads, so that some always wait.
const N_CALLERS: usize = 8;

/// So little time that a thousand of them take some seconds.
const TINY: CallLimits = CallLimits {
    wall_clock: std::time::Duration::from_millis(40),
    cpu: std::time::Duration::from_millis(15),
    memory_bytes: 8 << 20,
    ..SHORT
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_good_calls_among_a_thousand_hostile_ones_are_right() {
    let gang = Arc::new(Gang::load(Pool::Prepared).await);
    let misdeeds: Arc<[Misdeed]> = misdeeds().into();
    let mut callers = JoinSet::new();
    for caller in 0..N_CALLERS {
        let (gang, misdeeds) = (Arc::clone(&gang), Arc::clone(&misdeeds));
        callers.spawn(async move {
            for n in (caller..N_CALLS).step_by(N_CALLERS) {
                let misdeed = &misdeeds[n % misdeeds.len()];
                // How it ends in so little time is another test's matter; here it only has to end.
                drop(gang.call_within(misdeed, TINY).run().await);
            }
            0
        });
    }
    for caller in 0..N_CALLERS {
        let gang = Arc::clone(&gang);
        callers.spawn(async move {
            let mut n_right = 0;
            for n in (caller..N_CALLS).step_by(N_CALLERS) {
                let text = format!("call {n}");
                let answer = Call::new(&gang.good, &text, PATIENT).run().await.unwrap();
                assert_eq!(answer.to_text(), format!(r#"{{"n":"{text}"}}"#));
                n_right += 1;
            }
            n_right
        });
    }
    let n_right: usize = callers.join_all().await.into_iter().sum();
    assert_eq!(n_right, N_CALLS);
    all_threads_are_free(&gang.engine).await;
}
