//! What a session may use up: money, tokens and time. Checked before every request, those for a summary and those of a judge included; a turn
//! whose time is over is cancelled besides.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::usage::SideSpending;

/// The bounds; none where it is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// USD of the session.
    pub max_cost_usd: Option<f64>,
    /// Tokens of all requests and answers of the session.
    pub max_total_tokens: Option<u64>,
    /// How long one turn may take.
    pub max_wall: Option<Duration>,
}

/// What was used up so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// USD.
    pub cost_usd: f64,
    /// Tokens of requests and answers, those from a cache included.
    pub tokens: u64,
    /// Since the turn began.
    pub wall: Duration,
}

/// A bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exhausted {
    /// `agent.max_cost_usd`.
    Cost {
        /// The bound in USD.
        max_usd: f64,
    },
    /// `agent.max_total_tokens`.
    Tokens {
        /// The bound.
        max: u64,
    },
    /// `agent.max_wall_s`.
    Wall {
        /// The bound.
        max: Duration,
    },
}

impl BudgetLimits {
    /// The first bound that `spent` has reached.
    pub fn exhausted(&self, spent: &Spent) -> Option<Exhausted> {
        let cost = self.max_cost_usd.filter(|max| spent.cost_usd >= *max);
        let tokens = self.max_total_tokens.filter(|max| spent.tokens >= *max);
        let wall = self.max_wall.filter(|max| spent.wall >= *max);
        cost.map(|max_usd| Exhausted::Cost { max_usd })
            .or(tokens.map(|max| Exhausted::Tokens { max }))
            .or(wall.map(|max| Exhausted::Wall { max }))
    }
}

/// The budget of a session, for requests that are made beside those of the loop while calls run. Clones are handles to one.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<MeterReading>>);

#[derive(Debug, Default)]
struct MeterReading {
    limits: BudgetLimits,
    spent: Spent,
    read_at: Option<Instant>,
}

impl Meter {
    /// Says what was spent until now.
    pub fn set(&self, limits: BudgetLimits, spent: Spent) {
        *self.lock() = MeterReading {
            limits,
            spent,
            read_at: Some(Instant::now()),
        };
    }

    /// Adds what a request took.
    pub fn add(&self, spending: &SideSpending) {
        let mut reading = self.lock();
        reading.spent.cost_usd += spending.cost.usd();
        reading.spent.tokens = reading.spent.tokens.saturating_add(spending.usage.total());
    }

    /// The first bound that is reached now.
    pub fn exhausted(&self) -> Option<Exhausted> {
        let reading = self.lock();
        let since = reading.read_at.map(|at| at.elapsed()).unwrap_or_default();
        let spent = Spent {
            wall: reading.spent.wall.saturating_add(since),
            ..reading.spent
        };
        reading.limits.exhausted(&spent)
    }

    /// A meter for one call, with a sum of its own.
    pub fn of_call(&self) -> CallMeter {
        CallMeter {
            session: self.clone(),
            spent: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, MeterReading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The budget of a session for one of its calls. Clones are handles to one.
#[derive(Debug, Clone)]
pub struct CallMeter {
    session: Meter,
    spent: Arc<Mutex<SideSpending>>,
}

impl CallMeter {
    /// Adds what a request took.
    pub fn add(&self, spending: &SideSpending) {
        self.session.add(spending);
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += *spending;
    }

    /// The first bound of the session that is reached now.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.session.exhausted()
    }

    /// What the call took.
    pub fn spent(&self) -> SideSpending {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cost { max_usd } => write!(
                f,
                "Stopping: the session has cost as much as `agent.max_cost_usd` allows ({max_usd} USD)."
            ),
            Self::Tokens { max } => write!(
                f,
                "Stopping: the session has used as many tokens as `agent.max_total_tokens` allows ({max})."
            ),
            Self::Wall { max } => write!(
                f,
                "Stopping: the turn has taken as long as `agent.max_wall_s` allows ({} s).",
                max.as_secs()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BudgetLimits, Exhausted, Meter, Spent};
    use crate::usage::{Cost, SideSpending, Usage};

    #[test]
    fn what_is_spent_beside_the_loop_counts() {
        let meter = Meter::default();
        assert_eq!(meter.exhausted(), None);
        let limits = BudgetLimits {
            max_total_tokens: Some(100),
            ..BudgetLimits::default()
        };
        let spent = Spent {
            tokens: 90,
            ..Spent::default()
        };
        meter.set(limits, spent);
        assert_eq!(meter.exhausted(), None);
        let of_call = meter.of_call();
        of_call.add(&SideSpending {
            usage: Usage {
                input: 10,
                ..Usage::default()
            },
            cost: Cost::from_usd(0.5),
            requests: 1,
        });
        assert_eq!(meter.exhausted(), Some(Exhausted::Tokens { max: 100 }));
        assert_eq!(of_call.spent().requests, 1);
    }

    #[test]
    fn a_bound_that_is_reached_is_exhausted() {
        let limits = BudgetLimits {
            max_cost_usd: Some(1.0),
            max_total_tokens: Some(100),
            max_wall: Some(Duration::from_secs(2)),
        };
        let spent = Spent {
            cost_usd: 0.99,
            tokens: 99,
            wall: Duration::from_millis(1_999),
        };
        assert_eq!(limits.exhausted(&spent), None);
        let tokens = Spent {
            tokens: 100,
            ..spent
        };
        assert_eq!(
            limits.exhausted(&tokens),
            Some(Exhausted::Tokens { max: 100 })
        );
        let wall = Spent {
            wall: Duration::from_secs(2),
            ..spent
        };
        assert!(matches!(
            limits.exhausted(&wall),
            Some(Exhausted::Wall { .. })
        ));
        let all = Spent {
            cost_usd: 1.0,
            ..tokens
        };
        assert_eq!(
            limits.exhausted(&all),
            Some(Exhausted::Cost { max_usd: 1.0 })
        );
        assert_eq!(BudgetLimits::default().exhausted(&all), None);
    }
}
