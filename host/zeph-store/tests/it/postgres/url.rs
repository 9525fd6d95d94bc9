//! URLs: what is refused, and that nothing shown holds a password.

use zeph_store::{Location, ServerUrl};

use crate::setup::told;

const SECRET: &str = "s3cr3t";

#[test]
fn a_url_is_shown_without_its_password() {
    let cases = [
        (
            "postgres://ann:s3cr3t@db.example/zeph",
            "postgres://ann@db.example:5432/zeph",
        ),
        (
            "postgres://ann@db/zeph?password=s3cr3t&sslmode=require",
            "postgres://ann@db:5432/zeph",
        ),
        (
            "postgresql://ann:s3cr3t@a:1,b:2/zeph",
            "postgres://ann@a:1,b:2/zeph",
        ),
        ("postgres://[::1]:5433/zeph", "postgres://[::1]:5433/zeph"),
    ];
    for (text, expected) in cases {
        let url: ServerUrl = text.parse().unwrap();
        assert_eq!(url.to_string(), expected);
        let location = Location::Server(Box::new(url));
        let shown = format!("{location:?} {location}");
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn a_bad_url_is_told_without_its_password() {
    let cases = [
        (
            "mysql://ann:s3cr3t@db/zeph",
            "has to begin with `postgres://`",
        ),
        ("postgres:///zeph", "names no host"),
        ("postgres://ann:x@s3cr3t@db/zeph", "write `@`"),
        ("postgres://ann:s3cr3t@db:99999/zeph", "port"),
        (
            "postgres://ann:s3cr3t@db/zeph?sslmode=prefer",
            "falls back to clear text",
        ),
        (
            "postgres://ann:s3cr3t@db/zeph?sslmode=s3cr3t",
            "`sslmode` is one of",
        ),
        ("postgres://ann:s3cr3t@db/zeph?colour=s3cr3t", "colour"),
        (
            "postgres://ann:s3cr3t@db/zeph?channel_binding=require",
            "sslmode=verify-full",
        ),
    ];
    for (text, expected) in cases {
        let error = text.parse::<ServerUrl>().unwrap_err();
        let told = told(&error);
        assert!(told.contains(expected), "{text}: {told}");
        assert!(!told.contains(SECRET), "{text}: {told}");
    }
}
