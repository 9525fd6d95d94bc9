//! Isolation between calls: cancelling one, one beside another, many at once, and what is left when they are over.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_engine::Listener;

use crate::lab::{GuestCall, Lab, PATIENT, SHORT, THREADS};
use crate::{CheckResult, How, Probe};

pub(crate) const PROBES: &[Probe] = &[
    Probe {
        name: "cancelling",
        tried: "a loop, bulk copies, a wait, floods: each cancelled in the middle",
        how: How::Own(|lab| Box::pin(cancelled(lab))),
    },
    Probe {
        name: "calls beside it",
        tried: "a call that works while others loop, take memory, recurse, trap and flood",
        how: How::Own(|lab| Box::pin(beside(lab))),
    },
    Probe {
        name: "many at once",
        tried: "100 hostile calls mixed with 100 good ones",
        how: How::Own(|lab| Box::pin(mixed(lab))),
    },
    Probe {
        name: "what is left",
        tried: "memory, threads and instances after rounds of all that takes them",
        how: How::Own(|lab| Box::pin(left(lab))),
    },
];

/// Much longer than a cancelled call may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls without an end, but for a limit that is far away.
const ENDLESS: [(&str, &str); 6] = [
    ("spin", "a"),
    ("spin", "c"),
    ("spin_drop", "a"),
    ("wait", "a"),
    ("flood", "a"),
    ("flood", "d"),
];

async fn cancelled(lab: &Lab) -> CheckResult {
    for (guest, say) in ENDLESS {
        let (sender, mut begun) = mpsc::channel(1);
        let limits = zeph_core::limit::CallLimits {
            host_calls: u64::MAX,
            ..PATIENT
        };
        let call = GuestCall {
            listener: Some(Listener::new(sender)),
            ..GuestCall::new(guest, say, limits)
        };
        let cancel = call.cancel.clone();
        let ended = async {
            let call = lab.call(call);
            tokio::pin!(call);
            tokio::select! {
                biased;
                ended = &mut call => return ended,
                // The guest says that it has begun.
                _ = begun.recv() => cancel.cancel(),
            }
            timeout(PATIENCE, call).await.ok().flatten()
        };
        let ended = ended.await;
        if label(ended.as_ref()) != "cancelled" {
            return CheckResult::broken(format!(
                "`{guest}` {say} ended as {} when cancelled",
                label(ended.as_ref())
            ));
        }
    }
    CheckResult::Holds
}

fn label(ended: Option<&Result<RawOutput, ToolFailure>>) -> &'static str {
    match ended {
        None => "nothing",
        Some(Ok(_)) => "a success",
        Some(Err(failure)) => failure.category.label(),
    }
}

async fn beside(lab: &Lab) -> CheckResult {
    let works = lab.call(GuestCall::new("works", "b", PATIENT));
    let others = async {
        for (guest, say) in HOSTILE {
            drop(lab.call(GuestCall::new(guest, say, SHORT)).await);
        }
    };
    let (ended, ()) = tokio::join!(works, others);
    match ended {
        Some(Ok(output)) if output.to_text() == "intact" => CheckResult::Holds,
        Some(Err(failure)) => CheckResult::broken(format!("it ended with `{}`", failure.message)),
        _ => CheckResult::broken("it did not do its work"),
    }
}

/// One of each kind that ends at once.
const HOSTILE: [(&str, &str); 10] = [
    ("spin", "a"),
    ("memory", "a"),
    ("recurse", "a"),
    ("trap", "a"),
    ("result", "a"),
    ("result", "m"),
    ("table", "a"),
    ("handles", "a"),
    ("network", "a"),
    ("surroundings", "b"),
];

async fn mixed(lab: &Lab) -> CheckResult {
    let bad = async {
        for round in 0..100 {
            let (guest, say) = HOSTILE[1 + round % (HOSTILE.len() - 1)];
            drop(lab.call(GuestCall::new(guest, say, PATIENT)).await);
        }
    };
    let good = async {
        for _ in 0..100 {
            lab.good().await?;
        }
        Ok::<(), ToolFailure>(())
    };
    match tokio::join!(good, bad) {
        (Ok(()), ()) => CheckResult::Holds,
        (Err(failure), ()) => {
            CheckResult::broken(format!("a good call ended with `{}`", failure.message))
        }
    }
}

/// Most bytes by which rounds after the first may leave the process larger. An allocator keeps some for later.
const GROWTH_BYTES_MAX: u64 = 48 << 20;

async fn left(lab: &Lab) -> CheckResult {
    let round = async || {
        for (guest, say) in HOSTILE {
            drop(lab.call(GuestCall::new(guest, say, SHORT)).await);
        }
        drop(lab.call(GuestCall::new("memory", "c", PATIENT)).await);
        drop(lab.load("list_error", PATIENT).await);
    };
    // The first round makes what is kept on purpose: pages of the pool, threads that wait for more work.
    round().await;
    let before = process();
    for _ in 0..3 {
        round().await;
    }
    let after = process();
    // All at once: each needs an instance and a thread.
    let calls = (0..THREADS).map(|_| lab.call(GuestCall::new("works", "a", PATIENT)));
    for ended in all(calls).await {
        if label(ended.as_ref()) != "a success" {
            return CheckResult::broken("an instance was not given back");
        }
    }
    match (before, after) {
        (Some(before), Some(after)) => {
            let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
            if grown > GROWTH_BYTES_MAX {
                return CheckResult::broken(format!("{grown} bytes of memory were not given back"));
            }
            if after.n_threads > before.n_threads + THREADS as usize {
                let (before, after) = (before.n_threads, after.n_threads);
                return CheckResult::broken(format!("{before} threads became {after}"));
            }
            CheckResult::Holds
        }
        _ => CheckResult::unavailable("this system does not say what a process uses in `/proc`"),
    }
}

async fn all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(move |context| {
        pending.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        match pending.is_empty() {
            true => std::task::Poll::Ready(std::mem::take(&mut done)),
            false => std::task::Poll::Pending,
        }
    })
    .await
}

/// What this process uses, as Linux tells.
struct ProcessUse {
    resident_bytes: u64,
    n_threads: usize,
}

fn process() -> Option<ProcessUse> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(ProcessUse {
        resident_bytes: field("VmRSS:")? * 1024,
        n_threads: usize::try_from(field("Threads:")?).ok()?,
    })
}
