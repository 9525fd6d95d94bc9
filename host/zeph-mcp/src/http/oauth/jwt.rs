//! Access tokens: JSON Web Tokens (RFC 7519), signed with one of a few asymmetric algorithms (RFC 7518, RFC 8037).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Subject;
use super::jwk::PublicKey;

/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Longest subject.
const SUBJECT_BYTES_MAX: usize = 255;

/// How far the clocks of the server and of this machine may lie apart, in seconds.
const LEEWAY_SECS: f64 = 10.0;

/// Last moment that can be named, in seconds: the year 2286.
const LATEST_SECS: f64 = 9_999_999_999.0;

/// Why an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum AccessTokenError {
    #[error("it is not a JSON Web Token")]
    Malformed,
    #[error("its algorithm is not accepted")]
    Algorithm,
    #[error("its key is unknown")]
    UnknownKey,
    #[error("the keys of the authorization server cannot be fetched")]
    NoKeys,
    #[error("its signature is wrong")]
    Signature,
    #[error("it is of another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
    #[error("its subject is missing or not usable")]
    Subject,
}

/// The algorithms that are accepted. Whatever a token names besides, such as `none` or `HS256`, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// How a token is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

#[derive(Deserialize)]
struct RawHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<serde_json::Value>,
}

/// A token that is not verified yet.
#[derive(Debug)]
pub(super) struct Token<'t> {
    pub(super) header: Header,
    /// What is signed: header and claims, as they were sent.
    signed: &'t str,
    claims: &'t str,
    signature: Vec<u8>,
}

/// What a token says.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audience>,
    exp: Option<f64>,
    nbf: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl<'t> Token<'t> {
    /// Takes a token apart. Nothing it says is true yet.
    ///
    /// Errors: it is malformed, or of an algorithm that is not accepted.
    pub(super) fn read(text: &'t str) -> Result<Self, AccessTokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(AccessTokenError::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(AccessTokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(AccessTokenError::Malformed)?;
        Ok(Self {
            header: Header::read(header)?,
            signed,
            claims,
            signature: decoded(signature)?,
        })
    }

    /// What the token says, if it was signed with `key`.
    ///
    /// Errors: it was not, or says nothing.
    pub(super) fn verified(&self, key: &PublicKey) -> Result<Claims, AccessTokenError> {
        let is_signed = key.has_signed(
            self.header.algorithm,
            self.signed.as_bytes(),
            &self.signature,
        );
        match is_signed {
            true => json(self.claims),
            false => Err(AccessTokenError::Signature),
        }
    }
}

impl Header {
    fn read(text: &str) -> Result<Self, AccessTokenError> {
        let raw: RawHeader = json(text)?;
        // What is critical and not understood must not be passed over; nothing is understood.
        if raw.crit.is_some() {
            return Err(AccessTokenError::Malformed);
        }
        let kind = raw.typ.map(|kind| kind.to_ascii_lowercase());
        let kind = kind
            .as_deref()
            .map(|kind| kind.trim_start_matches("application/"));
        if !matches!(kind, None | Some("jwt" | "at+jwt")) {
            return Err(AccessTokenError::Malformed);
        }
        let algorithm = serde_json::from_value(raw.alg.into());
        Ok(Self {
            algorithm: algorithm.map_err(|_| AccessTokenError::Algorithm)?,
            key_id: raw.kid,
        })
    }
}

impl Claims {
    /// Whom the token speaks for, if it is of this issuer, for this audience, and valid now.
    ///
    /// Errors: which of these does not hold.
    pub(super) fn check(
        &self,
        issuer: &str,
        audience: &str,
        now_ms: i64,
    ) -> Result<Subject, AccessTokenError> {
        if self.iss.as_deref() != Some(issuer) {
            return Err(AccessTokenError::Issuer);
        }
        if !self.is_for(audience) {
            return Err(AccessTokenError::Audience);
        }
        let expires_at_ms = self.check_time(now_ms)?;
        let subject = self.sub.as_deref().filter(|subject| is_usable(subject));
        let subject = subject.ok_or(AccessTokenError::Subject)?;
        Ok(Subject {
            caller_id: format!("oauth:{issuer}|{subject}"),
            expires_at_ms,
        })
    }

    fn is_for(&self, audience: &str) -> bool {
        match &self.aud {
            Some(Audience::One(one)) => one == audience,
            Some(Audience::Several(several)) => several.iter().any(|one| one == audience),
            None => false,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "seconds of a calendar"
    )]
    fn check_time(&self, now_ms: i64) -> Result<i64, AccessTokenError> {
        let now = now_ms as f64 / 1_000.0;
        let end = self.exp.ok_or(AccessTokenError::Expired)?;
        if now >= end + LEEWAY_SECS {
            return Err(AccessTokenError::Expired);
        }
        if self.nbf.is_some_and(|begin| now < begin - LEEWAY_SECS) {
            return Err(AccessTokenError::Early);
        }
        Ok((end.min(LATEST_SECS) * 1_000.0) as i64)
    }
}

/// Whether a subject can stand in records, on one line.
fn is_usable(subject: &str) -> bool {
    let is_plain = zeph_core::failure::one_line(subject, SUBJECT_BYTES_MAX) == subject;
    !subject.is_empty() && subject.len() <= SUBJECT_BYTES_MAX && is_plain
}

fn decoded(text: &str) -> Result<Vec<u8>, AccessTokenError> {
    let decoded = URL_SAFE_NO_PAD.decode(text);
    decoded.map_err(|_| AccessTokenError::Malformed)
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, AccessTokenError> {
    serde_json::from_slice(&decoded(text)?).map_err(|_| AccessTokenError::Malformed)
}

#[cfg(test)]
mod tests;
