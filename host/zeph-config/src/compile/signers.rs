//! `[plugins.trust]`: who may vouch for plugins.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use zeph_core::failure::one_line;
use zeph_core::signer::{OfferPattern, SignaturePolicy, Signer, SignerKey, UnsignedRule};

use super::super::raw::{RawPluginTrust, RawSigner, RawUnsigned};
use super::Compiling;

const SIGNERS: &str = "plugins.trust.signers";

impl Compiling<'_> {
    /// The policy. A signer that is not right stops the start: a key that is passed over would look like one that nobody named.
    pub(super) fn signatures(&mut self, raw: &RawPluginTrust) -> SignaturePolicy {
        let mut signers: Vec<Signer> = Vec::new();
        for (idx, raw) in raw.signers.iter().enumerate() {
            match signer(raw) {
                Ok(signer) if signers.iter().any(|known| known.name == signer.name) => {
                    let message = format!(
                        "two signers are called `{}`; a second key gets a second name, such as `{0}-2027`",
                        signer.name
                    );
                    self.merged.problem(SIGNERS, &message);
                }
                Ok(signer) => signers.push(signer),
                Err(problem) => {
                    let message = format!("[{idx}]: {problem}");
                    self.merged.problem(SIGNERS, &message);
                }
            }
        }
        SignaturePolicy {
            unsigned: match raw.unsigned {
                RawUnsigned::Allow => UnsignedRule::Allow,
                RawUnsigned::Ask => UnsignedRule::Ask,
                RawUnsigned::Refuse => UnsignedRule::Refuse,
            },
            signers,
        }
    }
}

fn signer(raw: &RawSigner) -> Result<Signer, String> {
    if let Some(problem) = Signer::name_problem(&raw.name) {
        return Err(problem);
    }
    let of_this = |problem: String| format!("`{}`: {problem}", raw.name);
    let key: Result<SignerKey, _> = raw.key.parse();
    let offers: Result<Vec<OfferPattern>, _> = raw.offers.iter().map(|text| text.parse()).collect();
    Ok(Signer {
        name: raw.name.clone(),
        key: key.map_err(|error| of_this(format!("`key`: {error}")))?,
        offers: offers.map_err(|error| of_this(format!("`offers`: {error}")))?,
        expires_at_ms: expires(&raw.expires).map_err(of_this)?,
        is_revoked: raw.revoked,
    })
}

/// The first moment at which it has expired, in Unix milliseconds.
fn expires(text: &str) -> Result<Option<i64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let date = text
        .parse::<Date>()
        .ok()
        .filter(|_| text.len() == "2027-12-31".len());
    let moment = match date {
        Some(date) => date
            .tomorrow()
            .and_then(|next| next.to_zoned(TimeZone::UTC))
            .map(|next| next.timestamp()),
        None => text.parse::<Timestamp>(),
    };
    match moment {
        Ok(moment) => Ok(Some(moment.as_millisecond())),
        Err(_) => Err(format!(
            "`expires`: `{}` is neither a date (2027-12-31) nor a time (2027-12-31T12:00:00Z)",
            one_line(text, 80)
        )),
    }
}
