//! What a call belongs to that one host at a time may go on with: another host that takes it over makes the calls from then on.

use crate::long_tasks::LongTaskHold;
use crate::schedules::RunFence;

/// What a call is made for. It begins only while its host still holds that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkHold {
    /// A run of a schedule.
    Run(RunFence),
    /// A task.
    Task(LongTaskHold),
}
