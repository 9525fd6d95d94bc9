//! The methods of HTTP that a grant names.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most bytes of a method's name.
const METHOD_BYTES_MAX: usize = 32;

/// Methods of HTTP, in capitals. `GET` brings `HEAD` with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Methods(BTreeSet<String>);

/// A text that is no method a request can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a method of HTTP; write some of `GET`, `POST`, `PUT`, `PATCH`, `DELETE`, joined by `+`"
)]
pub struct BadMethod(String);

impl Methods {
    /// What only fetches: `GET` and `HEAD`.
    pub fn fetching() -> Self {
        Self(BTreeSet::from(["GET".to_owned()]))
    }

    /// Whether a request of `method` may be made.
    pub fn allows(&self, method: &str) -> bool {
        self.0.contains(method) || (method == "HEAD" && self.0.contains("GET"))
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Those in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::plain(self.0.union(&other.0).cloned().collect())
    }

    /// `GET` says `HEAD` already.
    fn plain(mut names: BTreeSet<String>) -> Self {
        if names.contains("GET") {
            names.remove("HEAD");
        }
        Self(names)
    }

    /// Whether one of them can send something.
    pub fn can_send(&self) -> bool {
        self.0.iter().any(|method| sends(method))
    }

    /// Those in both; `None` when there is none.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let named = self.0.union(&other.0);
        let both = named.filter(|method| self.allows(method) && other.allows(method));
        let both: BTreeSet<_> = both.cloned().collect();
        (!both.is_empty()).then(|| Self::plain(both))
    }
}

/// Whether a request of `method` can change something where it arrives. One with a body can, whatever its method.
pub(super) fn sends(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD")
}

impl TryFrom<Vec<String>> for Methods {
    type Error = BadMethod;

    /// Errors: [`BadMethod`]; an empty list allows nothing and is refused.
    fn try_from(names: Vec<String>) -> Result<Self, BadMethod> {
        let methods: Result<BTreeSet<_>, _> = names.iter().map(|name| method(name)).collect();
        match methods? {
            methods if methods.is_empty() => Err(BadMethod(String::new())),
            methods => Ok(Self::plain(methods)),
        }
    }
}

fn method(text: &str) -> Result<String, BadMethod> {
    let name = text.to_ascii_uppercase();
    let is_name = (1..=METHOD_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        && !matches!(name.as_str(), "CONNECT" | "TRACE" | "TRACK");
    match is_name {
        true => Ok(name),
        false => Err(BadMethod(crate::failure::one_line(text, 60))),
    }
}

impl FromStr for Methods {
    type Err = BadMethod;

    /// Reads what [`Display`](fmt::Display) writes: `GET+POST`.
    fn from_str(text: &str) -> Result<Self, BadMethod> {
        let names: Vec<_> = text.split('+').map(str::to_owned).collect();
        names.try_into()
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().collect();
        f.write_str(&names.join("+"))
    }
}
