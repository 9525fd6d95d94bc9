//! How long a response may be used again without asking its server: what it says itself, and nothing that is guessed.
//!
//! The part of RFC 9111 that a cache of one user needs. Both ends of a lifetime are the server's, so no clock is read.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, COOKIE, DATE, EXPIRES, PRAGMA, PROXY_AUTHORIZATION, RANGE,
    SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};

/// Whether the answers to one call may be used again, and until when.
#[derive(Debug, Default)]
pub(crate) struct Freshness(Mutex<FreshnessState>);

#[derive(Debug, Default)]
struct FreshnessState {
    until: Option<Instant>,
    /// Requests without an answer that may be used again.
    n_open: usize,
}

impl Freshness {
    /// A request is about to be sent.
    pub(crate) fn begin(&self) {
        self.state().n_open += 1;
    }

    /// An answer came that may be used for `lifetime`.
    pub(crate) fn answered(&self, lifetime: Duration) {
        let until = Instant::now() + lifetime;
        let mut state = self.state();
        state.until = Some(state.until.map_or(until, |known| known.min(until)));
        state.n_open = state.n_open.saturating_sub(1);
    }

    /// An answer broke off.
    pub(crate) fn spoil(&self) {
        self.state().n_open = usize::MAX / 2;
    }

    /// Until when all answers may be used; none when one may not.
    pub(crate) fn until(&self) -> Option<Instant> {
        let state = self.state();
        state.until.filter(|_| state.n_open == 0)
    }

    fn state(&self) -> MutexGuard<'_, FreshnessState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Headers of a request that make its answer one for this request alone.
const PERSONAL: [HeaderName; 4] = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, RANGE];

/// The longest lifetime that counts: a year, as the RFC has it.
const LIFETIME_MAX: u64 = 31_536_000;

/// Whether the answer to such a request may be used again at all.
pub(super) fn is_general(method: &Method, headers: &HeaderMap) -> bool {
    let is_conditional = |name: &HeaderName| name.as_str().starts_with("if-");
    let is_alone = |name: &HeaderName| PERSONAL.contains(name) || is_conditional(name);
    *method == Method::GET && !headers.keys().any(is_alone) && !forbids(headers)
}

/// How long the response may be used from its arrival on; none when it may not.
pub(super) fn lifetime(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_for_one = headers.contains_key(SET_COOKIE) || directives(headers).any(is_private);
    let varies = texts(headers, &VARY).any(|value| value.split(',').any(|name| name.trim() == "*"));
    if status != StatusCode::OK || is_for_one || varies || forbids(headers) {
        return None;
    }
    let age = match headers.get(AGE) {
        None => 0,
        Some(age) => age.to_str().ok()?.trim().parse().ok()?,
    };
    let lifetime = match max_age(headers) {
        Some(seconds) => seconds?,
        None => dated(headers)?,
    };
    let left = lifetime.min(LIFETIME_MAX).saturating_sub(age);
    (left > 0).then(|| Duration::from_secs(left))
}

/// The smallest `max-age`; the inner value is none when one cannot be read.
fn max_age(headers: &HeaderMap) -> Option<Option<u64>> {
    let ages = directives(headers).filter(|(name, _)| name.eq_ignore_ascii_case("max-age"));
    ages.map(|(_, value)| value.trim_matches('"').parse().ok())
        .min()
}

/// From `Date` to `Expires`, in seconds.
fn dated(headers: &HeaderMap) -> Option<u64> {
    let date = |name: &HeaderName| {
        let mut values = texts(headers, name);
        let value = values.next().filter(|_| values.next().is_none())?;
        httpdate::parse_http_date(value).ok()
    };
    let lifetime = date(&EXPIRES)?.duration_since(date(&DATE)?).ok()?;
    Some(lifetime.as_secs())
}

/// Whether it must not be kept, or not used without asking.
fn forbids(headers: &HeaderMap) -> bool {
    let forbids = |(name, _): (&str, &str)| {
        name.eq_ignore_ascii_case("no-store") || name.eq_ignore_ascii_case("no-cache")
    };
    let is_old = !headers.contains_key(CACHE_CONTROL)
        && texts(headers, &PRAGMA).any(|value| value.to_ascii_lowercase().contains("no-cache"));
    let is_unreadable = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .any(|value| value.to_str().is_err());
    is_old || is_unreadable || directives(headers).any(forbids)
}

fn is_private((name, _): (&str, &str)) -> bool {
    name.eq_ignore_ascii_case("private")
}

/// The directives of `Cache-Control`, each with its value. Quoted lists come apart at their commas, which only adds directives.
fn directives(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    texts(headers, &CACHE_CONTROL)
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .map(|directive| match directive.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None => (directive, ""),
        })
}

fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests;
