//! What one guest may use, and the reason it was stopped.

use std::fmt;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;
use zeph_core::capability::LimitName;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::limit::CallLimits;

use crate::cancel::Cancel;
use crate::engine::{CORE_PARTS_MAX, MEMORIES_MAX};

/// The most any call may have, whatever the configuration and its grants say: higher values count as these.
///
/// Time: a day, far from what a clock can hold. Memory: what one 32-bit memory can address and the engine reserves for it. Table
/// elements: the pool of a server keeps room for as many in each table, address space that is not used. Output and log
/// lines are held in the host as a whole. Host calls: more than fit into a day. Handles: each may be a descriptor of the
/// host; no more than 512 of them are files.
pub const LIMITS_MAX: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(24 * 60 * 60),
    cpu: Duration::from_secs(24 * 60 * 60),
    memory_bytes: 4 << 30,
    table_elements: 250_000,
    output_bytes: 256 << 20,
    log_bytes: 64 << 20,
    host_calls: 1_000_000_000_000,
    handles: 4_096,
};

/// The most that a grant can raise a limit to, in the unit of its name. See [`LIMITS_MAX`].
pub fn ceiling(name: LimitName) -> u64 {
    match name {
        LimitName::WallClockSecs => LIMITS_MAX.wall_clock.as_secs(),
        LimitName::CpuSecs => LIMITS_MAX.cpu.as_secs(),
        LimitName::MemoryBytes => LIMITS_MAX.memory_bytes,
        LimitName::TableElements => LIMITS_MAX.table_elements,
        LimitName::OutputBytes => LIMITS_MAX.output_bytes,
        LimitName::LogBytes => LIMITS_MAX.log_bytes,
        LimitName::HostCalls => LIMITS_MAX.host_calls,
        LimitName::Handles => LIMITS_MAX.handles.into(),
    }
}

/// `limits`, none of them above [`LIMITS_MAX`].
pub(crate) fn within_max(limits: CallLimits) -> CallLimits {
    let CallLimits {
        wall_clock,
        cpu,
        memory_bytes,
        table_elements,
        output_bytes,
        log_bytes,
        host_calls,
        handles,
    } = limits;
    CallLimits {
        wall_clock: wall_clock.min(LIMITS_MAX.wall_clock),
        cpu: cpu.min(LIMITS_MAX.cpu),
        memory_bytes: memory_bytes.min(LIMITS_MAX.memory_bytes),
        table_elements: table_elements.min(LIMITS_MAX.table_elements),
        output_bytes: output_bytes.min(LIMITS_MAX.output_bytes),
        log_bytes: log_bytes.min(LIMITS_MAX.log_bytes),
        host_calls: host_calls.min(LIMITS_MAX.host_calls),
        handles: handles.min(LIMITS_MAX.handles),
    }
}

/// Why the host ended a guest. It travels as the error of the trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestStop {
    WallClock(Duration),
    Cpu(Duration),
    Memory(u64),
    Table(u64),
    HostCalls(u64),
    Cancelled,
}

impl fmt::Display for GuestStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WallClock(limit) => write!(
                f,
                "the call took longer than {} s (`limits.wall_clock_secs`)",
                limit.as_secs_f64()
            ),
            Self::Cpu(limit) => write!(
                f,
                "the call used more than {} s of processor time (`limits.cpu_secs`)",
                limit.as_secs_f64()
            ),
            Self::Memory(limit) => write!(
                f,
                "the call wanted more than {limit} bytes of memory (`limits.memory_bytes`)"
            ),
            Self::Table(limit) => write!(
                f,
                "the call wanted more than {limit} table elements (`limits.table_elements`)"
            ),
            Self::HostCalls(limit) => write!(
                f,
                "the call made more than {limit} host calls (`limits.host_calls`)"
            ),
            Self::Cancelled => f.write_str("the call was cancelled"),
        }
    }
}

impl std::error::Error for GuestStop {}

impl GuestStop {
    /// Time limits may pass on a quieter machine; the others would be hit again.
    pub(crate) fn failure(self) -> ToolFailure {
        let category = match self {
            Self::WallClock(_) | Self::Cpu(_) => ErrorCategory::Timeout,
            Self::Cancelled => ErrorCategory::Cancelled,
            Self::Memory(_) | Self::Table(_) | Self::HostCalls(_) => {
                ErrorCategory::PermanentFailure
            }
        };
        // Other arguments may want less.
        ToolFailure::new(category, ErrorPhase::Execution, self.to_string()).arguable()
    }
}

/// The running totals of one guest.
pub(crate) struct Limiter {
    limits: CallLimits,
    cancel: Cancel,
    deadline: Instant,
    cpu_at_start: Duration,
    /// The thread whose processor time counts.
    thread: ThreadId,
    /// Whether it leaves its thread at the next tick.
    yields: bool,
    memory_bytes: u64,
    table_elements: u64,
    host_calls: u64,
}

impl Limiter {
    /// Starts counting. Must be made on the thread that will run the guest: processor time is that thread's.
    pub(crate) fn start(limits: CallLimits, cancel: Cancel, deadline: Instant) -> Self {
        Self {
            limits,
            cancel,
            deadline,
            cpu_at_start: thread_cpu(),
            thread: thread::current().id(),
            yields: false,
            memory_bytes: 0,
            table_elements: 0,
            host_calls: 0,
        }
    }

    /// Has the guest leave this thread at the first tick and continue on another. Processor time is counted per thread and starts over
    /// there, so the guest may exceed its limit by up to two ticks.
    pub(crate) fn yielding_once(mut self) -> Self {
        self.yields = true;
        self
    }

    /// Whether it leaves its thread now.
    pub(crate) fn takes_yield(&mut self) -> bool {
        std::mem::take(&mut self.yields)
    }

    /// Begins to count anew what passes: time and host calls. What a guest holds, its memory and tables, it still holds. Must be
    /// called on the thread that will run the guest.
    pub(crate) fn restart(&mut self, deadline: Instant) {
        self.deadline = deadline;
        self.cpu_at_start = thread_cpu();
        self.thread = thread::current().id();
        self.host_calls = 0;
    }

    /// What is left of the time the call may take.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Linear memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The bounds of the call.
    pub(crate) fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Called at every tick in which the guest runs.
    pub(crate) fn on_tick(&mut self) -> Result<(), GuestStop> {
        if self.cancel.is_cancelled() {
            return Err(GuestStop::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(GuestStop::WallClock(self.limits.wall_clock));
        }
        let thread = thread::current().id();
        if thread != self.thread {
            (self.thread, self.cpu_at_start) = (thread, thread_cpu());
        }
        if thread_cpu().saturating_sub(self.cpu_at_start) > self.limits.cpu {
            return Err(GuestStop::Cpu(self.limits.cpu));
        }
        Ok(())
    }

    /// Called whenever the guest enters the host.
    pub(crate) fn on_host_call(&mut self) -> Result<(), GuestStop> {
        self.host_calls += 1;
        if self.host_calls > self.limits.host_calls {
            return Err(GuestStop::HostCalls(self.limits.host_calls));
        }
        // A guest that does nothing but host calls may see few ticks of its own: look at the clock now and then.
        if self.host_calls.is_multiple_of(256) {
            self.on_tick()?;
        }
        Ok(())
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if fails_anyway(desired, maximum) {
            return Ok(true);
        }
        let most = self.limits.memory_bytes;
        let grown = grown(self.memory_bytes, (current, desired), most);
        self.memory_bytes = grown.ok_or(GuestStop::Memory(most))?;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if fails_anyway(desired, maximum) {
            return Ok(true);
        }
        let most = self.limits.table_elements;
        let grown = grown(self.table_elements, (current, desired), most);
        self.table_elements = grown.ok_or(GuestStop::Table(most))?;
        Ok(true)
    }

    // Without a pool the same component is refused as with one.
    fn instances(&self) -> usize {
        CORE_PARTS_MAX as usize
    }

    fn tables(&self) -> usize {
        CORE_PARTS_MAX as usize
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }
}

/// What is held after growing, counted over all that grows; none when that is more than `most`.
fn grown(held: u64, (current, desired): (usize, usize), most: u64) -> Option<u64> {
    let added = desired.saturating_sub(current) as u64;
    let wanted = held.saturating_add(added);
    (wanted <= most).then_some(wanted)
}

/// Whether growing will fail because the guest reaches its own declared maximum. Nothing is taken then;
/// the engine announces a growth before it looks at the maximum.
fn fails_anyway(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_some_and(|maximum| desired > maximum)
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
