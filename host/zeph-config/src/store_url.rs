//! The URL of a server, which may contain a password: what is shown of it never does.

use std::fmt;

/// What the URL of a PostgreSQL server begins with.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Options that may be shown. What is not known to be harmless is not.
const SHOWN_OPTIONS: [&str; 8] = [
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
];

/// What stands for what is not shown.
const HIDDEN: &str = "***";

/// The URL of a PostgreSQL server. Its `Debug` and `Display` hide the password; [`Self::text`] is the URL itself.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL when it looks like one of PostgreSQL. Whether it is right shows when it is used.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut schemes = SCHEMES.iter();
        let is_one = schemes.any(|scheme| text.starts_with(scheme));
        is_one.then(|| Self(text.to_owned()))
    }

    /// The URL with its password.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A value of `store.url` without a password, whatever it is.
pub(crate) fn shown(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    parts(text).unwrap_or_else(|| HIDDEN.to_owned())
}

/// The URL without its password; nothing when it is not written as one should be, because then anything may be the password.
fn parts(text: &str) -> Option<String> {
    let scheme = SCHEMES.iter().find(|scheme| text.starts_with(**scheme))?;
    let rest = &text[scheme.len()..];
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (user, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    let is_plain = |text: &str, more: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        text.chars().all(is_plain)
    };
    let (user, password) = user
        .split_once(':')
        .map_or((user, ""), |(user, _)| (user, HIDDEN));
    if !is_plain(user, "-._%")
        || !is_plain(rest, "-._%:,[]/")
        || query.contains(['@', '?', '/']) && !is_plain(query, "-._%=&,/")
    {
        return None;
    }
    let colon = if password.is_empty() { "" } else { ":" };
    let at = if user.is_empty() && password.is_empty() {
        ""
    } else {
        "@"
    };
    let options: Vec<String> = query
        .split('&')
        .filter(|option| !option.is_empty())
        .map(option)
        .collect();
    let mark = if options.is_empty() { "" } else { "?" };
    Some(format!(
        "{scheme}{user}{colon}{password}{at}{rest}{mark}{}",
        options.join("&")
    ))
}

fn option(text: &str) -> String {
    let (name, _) = text.split_once('=').unwrap_or((text, ""));
    match SHOWN_OPTIONS.contains(&name) {
        true => text.to_owned(),
        false => HIDDEN.to_owned(),
    }
}

/// The key whose value is not shown as it is.
pub(crate) const KEY: &str = "store.url";

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let cases = [
            ("", ""),
            (
                "postgres://ann:s3cr3t@db:5432/zeph?sslmode=require",
                "postgres://ann:***@db:5432/zeph?sslmode=require",
            ),
            (
                "postgres://ann@db/zeph?password=s3cr3t&sslmode=disable",
                "postgres://ann@db/zeph?***&sslmode=disable",
            ),
            ("postgresql://:s3cr3t@a,b/z", "postgresql://:***@a,b/z"),
            ("postgres://db/zeph", "postgres://db/zeph"),
            (
                "postgres://ann:x@s3cr3t@db/zeph",
                "postgres://ann:***@db/zeph",
            ),
            (
                "postgres://ann:x/s3cr3t@db/zeph",
                "postgres://ann:***@db/zeph",
            ),
            ("postgres://ann:x?s3cr3t@db/zeph", "***"),
            ("postgres://ann:x?s3cr3t&sslmode=s3cr3t@db/zeph", "***"),
            ("mysql://ann:s3cr3t@db", "***"),
            ("s3cr3t", "***"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
            assert!(!shown(text).contains("s3cr3t"));
        }
        let url = StoreUrl::new("postgres://ann:s3cr3t@db/zeph").unwrap();
        assert_eq!(
            format!("{url:?} {url}"),
            "StoreUrl(postgres://ann:***@db/zeph) postgres://ann:***@db/zeph"
        );
    }
}
