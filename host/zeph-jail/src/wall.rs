//! The steps of the inner stage, in their order.

mod check;
mod descriptors;
mod guard;
mod landlock;
mod made;
mod outlet;
mod places;
mod process;
mod watch;

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::FromRawFd as _;

use zeph_jail::plan::{PLAN_BYTES_MAX, Plan, Stage};
use zeph_jail::{READY, REFUSED};

/// A step that failed: what it was, and what the system said.
struct Failure {
    step: &'static str,
    reason: String,
}

fn failed(step: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure {
        step,
        reason: error.to_string(),
    }
}

/// Reads the plan, closes every door, and becomes the command. Comes back never.
#[expect(clippy::exit, reason = "the reserved code tells that nothing ran")]
pub(crate) fn close_and_become_the_command() {
    let Some(plan) = wait_for_plan() else {
        std::process::exit(REFUSED);
    };
    // Opened before descriptors are closed; it closes by itself when the command begins.
    let mut status = descriptors::taken(plan.status);
    let failure = close(&plan, &mut status);
    drop(writeln!(status, "{}: {}", failure.step, failure.reason));
    std::process::exit(REFUSED);
}

/// Does every step; comes back only with the one that failed.
fn close(plan: &Plan, status: &mut File) -> Failure {
    match every_door(plan, status) {
        Err(failure) => failure,
        Ok(told) => process::become_command(plan, &told),
    }
}

/// Returns variables that the command gets besides those of the plan.
fn every_door(plan: &Plan, status: &mut File) -> Result<Vec<Vec<u8>>, Failure> {
    if plan.stage != Stage::Inside {
        guard::stay_behind(plan, status)?;
    }
    for cgroup in &plan.cgroups {
        let mut procs = descriptors::taken(*cgroup);
        procs
            .write_all(b"0")
            .map_err(failed("entering the cgroup"))?;
    }
    process::give_up_privileges()?;
    process::limit_resources(&plan.limits)?;
    check::all_places(&plan.checks)?;
    places::hand_over(&plan.places, status).map_err(failed("handing over places"))?;
    process::enter(&plan.directory).map_err(failed("entering the directory"))?;
    let mut told = match &plan.outlet {
        Some(outlet) => outlet::open(outlet).map_err(failed("opening the way out"))?,
        None => Vec::new(),
    };
    told.extend(plan.made.as_ref().and_then(made::variable));
    landlock::restrict(plan)?;
    if let Some(watch) = &plan.watch {
        watch::begin(watch).map_err(failed("telling of paths"))?;
    }
    descriptors::keep_only(&plan.files, status).map_err(failed("closing descriptors"))?;
    process::filter_calls(&plan.filter)?;
    status
        .write_all(&[READY])
        .map_err(failed("telling that all is ready"))?;
    Ok(told)
}

/// Reads the plan from the descriptor that the first argument names. With a second argument it is written later: the other end of
/// the pipe of that number says when, and ends without a word when there is nothing to do.
fn wait_for_plan() -> Option<Plan> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<i32>());
    let plan = inherited(numbers.next()?.ok()?)?;
    if let Some(number) = numbers.next() {
        inherited(number.ok()?)?.read_exact(&mut [0]).ok()?;
    }
    read_plan(plan)
}

fn read_plan(mut file: File) -> Option<Plan> {
    file.rewind().ok()?;
    let limit = PLAN_BYTES_MAX as u64 + 1;
    let length = file.metadata().map_or(0, |about| about.len().min(limit));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Plan::decode(&bytes).ok()
}

#[expect(unsafe_code, reason = "descriptors of the host are only numbers here")]
fn inherited(number: i32) -> Option<File> {
    if number < 3 {
        return None;
    }
    // SAFETY: the host that starts this program passes a descriptor under this number, and nothing else here owns it.
    Some(unsafe { File::from_raw_fd(number) })
}
