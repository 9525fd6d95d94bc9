//! What an answer took, in one way of counting for all providers, and what it cost.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens of one request. The four parts of the sum do not overlap, whatever the provider's own numbers include.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the request, without those of a cache.
    pub input: u64,
    /// Of the request, read from a cache.
    pub cache_read: u64,
    /// Of the request, written to a cache.
    pub cache_write: u64,
    /// Of the answer, reasoning included.
    pub output: u64,
    /// The part of `output` that is reasoning, where the provider says so.
    pub reasoning: u64,
    /// The part of the sum that no provider reported: about that, by its bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// All of them.
    pub fn total(&self) -> u64 {
        let request = self.prompt();
        request.saturating_add(self.output)
    }

    /// What stands before its numbers where people read them: `~` when they are estimated, in part.
    pub fn mark(&self) -> &'static str {
        if self.estimated > 0 { "~" } else { "" }
    }

    /// Those of the request, cached or not: what the context of the model holds.
    pub fn prompt(&self) -> u64 {
        let cached = self.cache_read.saturating_add(self.cache_write);
        self.input.saturating_add(cached)
    }
}

impl Usage {
    /// What is left of it without `part`.
    pub(crate) fn without(self, part: Self) -> Self {
        Self {
            input: self.input.saturating_sub(part.input),
            cache_read: self.cache_read.saturating_sub(part.cache_read),
            cache_write: self.cache_write.saturating_sub(part.cache_write),
            output: self.output.saturating_sub(part.output),
            reasoning: self.reasoning.saturating_sub(part.reasoning),
            estimated: self.estimated.saturating_sub(part.estimated),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            estimated: self.estimated.saturating_add(other.estimated),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

/// What was used up beside the requests of a conversation, for one of its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideSpending {
    /// Tokens.
    pub usage: Usage,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Requests to models.
    pub requests: u64,
}

impl SideSpending {
    /// What one request took.
    pub fn of_request(usage: Usage, cost: Option<Cost>) -> Self {
        Self {
            usage,
            cost: cost.unwrap_or_default(),
            requests: 1,
        }
    }

    /// Whether there was none.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for SideSpending {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost += other.cost;
        self.requests = self.requests.saturating_add(other.requests);
    }
}

/// Prices in USD per million tokens (`price_input` and its like). Nothing can be said about the cost without the first two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of the request.
    pub input: Option<f64>,
    /// Of the answer.
    pub output: Option<f64>,
    /// Of what a cache holds; the price of the request where there is none.
    pub cache_read: Option<f64>,
    /// Of what is written to a cache; the price of the request where there is none.
    pub cache_write: Option<f64>,
}

impl Prices {
    /// What `usage` costs; `None` when a price is missing.
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let (input, output) = (self.input?, self.output?);
        let parts = [
            (usage.input, input),
            (usage.cache_read, self.cache_read.unwrap_or(input)),
            (usage.cache_write, self.cache_write.unwrap_or(input)),
            (usage.output, output),
        ];
        let costs = parts.map(|(tokens, price)| Cost::of(tokens, price));
        Some(costs.into_iter().fold(Cost::default(), Add::add))
    }
}

/// An amount of money, exact to 10⁻¹² USD, so that sums do not drift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

const PICO: f64 = 1e12;

impl Cost {
    /// An amount in USD; negative ones are nothing.
    pub fn from_usd(usd: f64) -> Self {
        Self(rounded(usd * PICO))
    }

    /// In USD.
    #[expect(clippy::cast_precision_loss, reason = "for people, and for limits")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / PICO
    }

    /// What is left of it without `part`.
    pub(crate) fn without(self, part: Self) -> Self {
        Self(self.0.saturating_sub(part.0))
    }

    fn of(tokens: u64, usd_per_million: f64) -> Self {
        let per_token = rounded(usd_per_million * (PICO / 1e6));
        Self(per_token.saturating_mul(tokens))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is no amount is none"
)]
fn rounded(amount: f64) -> u64 {
    amount.round() as u64
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.usd())
    }
}

#[cfg(test)]
mod tests;
