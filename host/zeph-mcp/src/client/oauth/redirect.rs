//! The URL that the browser is sent back to, and what it says.

use std::fmt;

use subtle::ConstantTimeEq as _;
use url::Url;

use super::LoginError;
use super::error::foreign;

/// Longest URL that is read.
pub(super) const REDIRECT_BYTES_MAX: usize = 8 * 1024;

/// The answer of an authorization server to one login. `Debug` does not show the code.
#[derive(Clone, PartialEq, Eq)]
pub struct Redirect {
    pub(super) code: String,
    pub(super) state: String,
    pub(super) issuer: Option<String>,
}

impl fmt::Debug for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redirect(…)")
    }
}

impl Redirect {
    /// Reads the URL `text`, which must be `expected` with the answer to the login with `state`.
    ///
    /// Errors: `Redirect` for another place, another or no state, a parameter that stands twice; `Refused` with what the authorization
    ///         server reports; `Unsupported` never.
    pub(super) fn read(text: &str, expected: &Url, state: &str) -> Result<Self, LoginError> {
        if text.len() > REDIRECT_BYTES_MAX {
            return Err(LoginError::Redirect("it is too long"));
        }
        let url = Url::parse(text.trim()).map_err(|_| LoginError::Redirect("it is not a URL"))?;
        let is_ours = url.origin() == expected.origin() && url.path() == expected.path();
        if !is_ours {
            return Err(LoginError::Redirect("it leads to another place"));
        }
        let said = parameter(&url, "state")?.unwrap_or_default();
        if !bool::from(said.as_bytes().ct_eq(state.as_bytes())) {
            return Err(LoginError::Redirect("its `state` is another one"));
        }
        if let Some(error) = parameter(&url, "error")? {
            let described = parameter(&url, "error_description")?;
            return Err(LoginError::Refused(foreign(&described.unwrap_or(error))));
        }
        let code = parameter(&url, "code")?.filter(|code| !code.is_empty());
        Ok(Self {
            code: code.ok_or(LoginError::Redirect("it has no `code`"))?,
            state: said,
            issuer: parameter(&url, "iss")?,
        })
    }

    /// The value in it that nobody may read.
    pub fn secret(&self) -> &str {
        &self.code
    }
}

/// The one value of a parameter.
fn parameter(url: &Url, name: &str) -> Result<Option<String>, LoginError> {
    let mut values = url.query_pairs().filter(|(key, _)| key == name);
    let first = values.next().map(|(_, value)| value.into_owned());
    match values.next() {
        None => Ok(first),
        Some(_) => Err(LoginError::Redirect("a parameter stands in it twice")),
    }
}
