//! What a registry wants to know, from `WWW-Authenticate`.

use std::iter::Peekable;
use std::str::Chars;

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// How a registry wants to be told who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token from elsewhere.
    Bearer {
        /// Who issues it.
        realm: String,
        /// For whom.
        service: Option<String>,
    },
}

impl Challenge {
    /// The strongest of those in the header: a token goes before a password.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let found: Vec<Self> = values
            .filter_map(|value| read(value.to_str().ok()?))
            .collect();
        let is_bearer = |challenge: &&Self| matches!(challenge, Self::Bearer { .. });
        let bearer = found.iter().find(is_bearer);
        bearer.or(found.first()).cloned()
    }
}

fn read(value: &str) -> Option<Challenge> {
    let (scheme, parameters) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service) = (None, None);
    let mut chars = parameters.chars().peekable();
    while let Some((name, value)) = parameter(&mut chars) {
        match name.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
    })
}

/// The next `name=value` or `name="value"`.
fn parameter(chars: &mut Peekable<Chars<'_>>) -> Option<(String, String)> {
    while chars.next_if(|char| matches!(char, ',' | ' ')).is_some() {}
    let mut name = String::new();
    loop {
        match chars.next()? {
            '=' => break,
            char => name.push(char),
        }
    }
    let mut value = String::new();
    if chars.next_if_eq(&'"').is_none() {
        while let Some(char) = chars.next_if(|char| !matches!(char, ',' | ' ')) {
            value.push(char);
        }
        return Some((name, value));
    }
    loop {
        match chars.next()? {
            '"' => return Some((name, value)),
            '\\' => value.push(chars.next()?),
            char => value.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::WWW_AUTHENTICATE;
    use http::{HeaderMap, HeaderValue};

    use super::Challenge;

    fn of(values: &[&'static str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(value));
        }
        Challenge::of(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
        })
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let hub = r#"Bearer realm="https://a.example/token",service="r.example",scope="repository:a/b:pull,push""#;
        assert_eq!(
            of(&[hub]),
            bearer("https://a.example/token", Some("r.example"))
        );
        let loose = r#"bearer  Service=r , realm="https://a/\"t\"", error=x"#;
        assert_eq!(of(&[loose]), bearer("https://a/\"t\"", Some("r")));
        assert_eq!(of(&["Basic realm=\"r\""]), Some(Challenge::Basic));
        assert_eq!(of(&["basic"]), Some(Challenge::Basic));
        let both = of(&["Basic realm=\"r\"", "Bearer realm=\"https://a/\""]);
        assert_eq!(both, bearer("https://a/", None));
    }

    #[test]
    fn what_is_no_challenge_is_none() {
        for value in [
            "",
            "Bearer",
            "Bearer realm",
            "Bearer realm=\"x",
            "Negotiate",
            "Bearer =x",
            "Bearer ,,, =",
        ] {
            assert_eq!(of(&[value]), None, "{value}");
        }
        assert_eq!(of(&[]), None);
    }
}
