//! Every misdeed can be cancelled in the middle and before its start, and ends when its caller goes away.

use tokio::time::timeout;

use super::harness::{ENDLESS, LATE, Pool, all_threads_are_free, good};
use super::misdeeds::{Ends, Gang, Misdeed, misdeeds};

/// Those that never end by themselves.
fn endless() -> impl Iterator<Item = Misdeed> {
    let misdeeds = misdeeds().into_iter();
    misdeeds.filter(|misdeed| matches!(misdeed.ends, Ends::InTime))
}

/// Whether the guest gets as far as to say that it has begun.
fn begins(misdeed: &Misdeed) -> bool {
    misdeed.guest != "spin_realloc"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_cancelled_in_the_middle() {
    let gang = Gang::load(Pool::Prepared).await;
    for misdeed in endless().filter(begins) {
        let name = misdeed.name();
        let (call, mut begun) = gang.call_within(&misdeed, ENDLESS).heard();
        let cancel = call.cancel.clone();
        let cancelled = async {
            begun
                .recv()
                .await
                .expect("the guest says that it has begun");
            cancel.cancel();
        };
        let both = async { tokio::join!(call.run(), cancelled).0 };
        let ended = timeout(LATE, both).await.expect(&name);
        assert_eq!(
            ended.expect_err(&name).category.label(),
            "cancelled",
            "{name}"
        );
        good(&gang.good).await;
    }
    all_threads_are_free(&gang.engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_cancelled_before_its_start_or_at_once() {
    let gang = Gang::load(Pool::Prepared).await;
    for misdeed in misdeeds() {
        let name = misdeed.name();
        let before = gang.call_within(&misdeed, ENDLESS);
        before.cancel.cancel();
        let ended = timeout(LATE, before.run()).await.expect(&name);
        assert_eq!(
            ended.expect_err(&name).category.label(),
            "cancelled",
            "{name}"
        );
    }
    for misdeed in endless() {
        let name = misdeed.name();
        let call = gang.call_within(&misdeed, ENDLESS);
        let cancel = call.cancel.clone();
        // Wherever it is by then: waiting for a thread, making its instance, taking its arguments.
        let both = async { tokio::join!(call.run(), async { cancel.cancel() }).0 };
        let ended = timeout(LATE, both).await.expect(&name);
        assert_eq!(
            ended.expect_err(&name).category.label(),
            "cancelled",
            "{name}"
        );
    }
    good(&gang.good).await;
    all_threads_are_free(&gang.engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ends_when_its_caller_goes_away() {
    let gang = Gang::load(Pool::Prepared).await;
    for misdeed in endless().filter(begins) {
        let (call, mut begun) = gang.call_within(&misdeed, ENDLESS).heard();
        tokio::select! {
            ended = call.run() => panic!("{} ended: {ended:?}", misdeed.name()),
            _ = begun.recv() => {}
        }
    }
    good(&gang.good).await;
    all_threads_are_free(&gang.engine).await;
}
