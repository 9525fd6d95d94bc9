//! Placeholders of secrets: what commands hold in the place of a value, and where the value takes it back.
//!
//! A placeholder is a random text that means nothing anywhere. At the hosts of its secret it becomes the value in the headers of requests,
//! after all checks; at other hosts it stays what it is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderValue};
use tokio_rustls::rustls::crypto::{GetRandomFailed, ring};
use zeph_core::network::{ExitHost, Passage};

use super::NamedValues;

/// How every placeholder begins, so that a person who meets one knows what it is.
const BEGINNING: &str = "zeph-secret-";

/// Random bytes of one.
const RANDOM_BYTES: usize = 24;

/// The placeholders of one configuration, by the names of their secrets.
#[derive(Debug, Default)]
pub(super) struct Placeholders(BTreeMap<String, String>);

/// What becomes what in a request.
#[derive(Clone)]
pub(super) struct Filling {
    /// The name of the secret.
    pub(super) name: String,
    /// What a command writes.
    pub(super) placeholder: String,
    /// What its host gets; none while nothing is stored.
    pub(super) value: Option<String>,
}

impl Placeholders {
    /// Makes one for each secret that `hosts` name.
    ///
    /// Errors: the machine gives no random bytes.
    pub(super) fn new(hosts: &[ExitHost]) -> Result<Self, GetRandomFailed> {
        let mut made = BTreeMap::new();
        let names = hosts.iter().flat_map(|host| match &host.passage {
            Passage::Inspected(inspection) => inspection.placeholders.as_slice(),
            Passage::Tls | Passage::Raw => &[],
        });
        for name in names {
            if !made.contains_key(name) {
                made.insert(name.clone(), placeholder()?);
            }
        }
        Ok(Self(made))
    }

    /// Names and placeholders.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// What to fill in for `names`, whose values are among `values`.
    pub(super) fn fillings(&self, names: &[String], values: &NamedValues) -> Vec<Filling> {
        let filling = |name: &String| {
            Some(Filling {
                name: name.clone(),
                placeholder: self.0.get(name)?.clone(),
                value: values.get(name).cloned(),
            })
        };
        names.iter().filter_map(filling).collect()
    }
}

fn placeholder() -> Result<String, GetRandomFailed> {
    let mut bytes = [0; RANDOM_BYTES];
    ring::default_provider().secure_random.fill(&mut bytes)?;
    let mut text = BEGINNING.to_owned();
    text.extend(bytes.iter().map(|byte| format!("{byte:02x}")));
    Ok(text)
}

/// Puts the values where `headers` hold placeholders.
///
/// Errors: a sentence, when one has no value.
pub(super) fn fill(headers: &mut HeaderMap, fillings: &[Filling]) -> Result<(), String> {
    for value in headers.values_mut() {
        for filling in fillings {
            if let Some(filled) = filling.in_value(value)? {
                *value = filled;
            }
        }
    }
    Ok(())
}

impl Filling {
    /// The value of a header with the secret in it; none where there is no placeholder.
    fn in_value(&self, header: &HeaderValue) -> Result<Option<HeaderValue>, String> {
        let Ok(text) = header.to_str() else {
            return Ok(None);
        };
        if let Some(filled) = self.in_text(text)? {
            return sensitive(&filled);
        }
        // As a name and password are sent.
        let Some((scheme, credentials)) = text.split_once(' ') else {
            return Ok(None);
        };
        let decoded = STANDARD.decode(credentials.trim()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded.filter(|_| scheme.eq_ignore_ascii_case("basic")) {
            None => Ok(None),
            Some(decoded) => match self.in_text(&decoded)? {
                None => Ok(None),
                Some(filled) => sensitive(&format!("{scheme} {}", STANDARD.encode(filled))),
            },
        }
    }

    fn in_text(&self, text: &str) -> Result<Option<String>, String> {
        if !text.contains(&self.placeholder) {
            return Ok(None);
        }
        let Self { name, value, .. } = self;
        match value {
            Some(value) => Ok(Some(text.replace(&self.placeholder, value))),
            None => Err(format!(
                "the secret `{name}` has no value; `zeph-host secret set {name}` sets it"
            )),
        }
    }
}

fn sensitive(text: &str) -> Result<Option<HeaderValue>, String> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "a secret does not fit into a header".to_owned())?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};

    use super::{Filling, fill};

    fn filled(header: &str, value: Option<&str>) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("git"));
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        let filling = Filling {
            name: "T".to_owned(),
            placeholder: "zeph-secret-01".to_owned(),
            value: value.map(str::to_owned),
        };
        fill(&mut headers, &[filling])?;
        assert_eq!(headers[USER_AGENT], "git");
        Ok(headers[AUTHORIZATION].to_str().unwrap().to_owned())
    }

    #[test]
    fn a_placeholder_becomes_the_value_wherever_a_header_holds_it() {
        for (header, expect) in [
            ("zeph-secret-01", "the value"),
            ("token zeph-secret-01", "token the value"),
            ("Bearer zeph-secret-02", "Bearer zeph-secret-02"),
            // user:zeph-secret-01 and user:the value
            (
                "Basic dXNlcjp6ZXBoLXNlY3JldC0wMQ==",
                "Basic dXNlcjp0aGUgdmFsdWU=",
            ),
            ("Basic dXNlcjpwYXNz", "Basic dXNlcjpwYXNz"),
            ("Basic no base64", "Basic no base64"),
        ] {
            assert_eq!(filled(header, Some("the value")).as_deref(), Ok(expect));
        }
        let error = filled("token zeph-secret-01", None).unwrap_err();
        assert!(error.contains("zeph-host secret set T"), "{error}");
        assert!(filled("token other", None).is_ok());
    }
}
