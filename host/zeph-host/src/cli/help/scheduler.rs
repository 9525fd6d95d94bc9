//! Help of `zeph-host scheduler`.

macro_rules! scheduler_examples {
    () => {
        r#"Examples:
  zeph-host scheduler
  zeph-host call schedule_periodic name=backup cron='0 3 * * *' tool=bash \
    arguments='{"command":"make backup"}'
  zeph-host scheduler list --json
  zeph-host scheduler cancel backup
  zeph-host scheduler adopt /home/ann/old"#
    };
}

pub(crate) const SCHEDULER_EXAMPLES: &str = scheduler_examples!();

pub(crate) const SCHEDULER_LONG: &str = concat!(
    scheduler_examples!(),
    r#"

Without a command, it runs the tasks of this directory when they are due, until it is ended.
`zeph-host run`, `serve` and `acp` do the same while they run, `acp` for the directories of its
sessions; each run is made by one of them. Tasks are scheduled with the tools `schedule_periodic`
and `schedule_deferred`, which are offered when `tools.scheduler.enabled` is set.

A run has the authority of the caller that scheduled it. The rules decide anew each time, and
nobody can be asked: a call that no rule allows is refused, its last run says which command
approves it, and the next run then makes it. `--allow` of the host that runs it does not count. A
run whose host was killed is recorded as of unknown end, and is made again only if its tool is
idempotent.

A task runs in the directory where it was scheduled; in a store on a server, of that machine or
replica. When the directory was moved, or the machine or replica has another name, `adopt` takes
its tasks over."#
);
