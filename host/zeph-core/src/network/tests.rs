use proptest::prelude::*;

use super::{Destination, Host, HostAccess, HostPattern, PrivateHost};

fn destination(text: &str) -> Destination {
    Destination::parse(text, 443).unwrap()
}

#[test]
fn what_is_read_as_one_host() {
    for (text, host) in [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ。org", "example.org"),
        ("exa\u{ad}mple.org", "example.org"),
        ("my_bucket.example.org", "my_bucket.example.org"),
        ("localhost", "localhost"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("0X7F000001", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
        ("[::FFFF:7f00:1]", "[::ffff:127.0.0.1]"),
    ] {
        let read: Host = text.parse().unwrap();
        assert_eq!(read.to_string(), host, "{text}");
        assert_eq!(read.name().is_none(), read.address().is_some());
    }
}

#[test]
fn what_is_no_host() {
    let long = format!("{}.org", "a".repeat(64));
    let longer = ["a".repeat(60).as_str(); 5].join(".");
    let huge = "ü".repeat(100_000);
    for text in [
        "",
        ".",
        "..",
        "a..b",
        "example.org..",
        ".example.org",
        "-a.org",
        "a-.org",
        "a b",
        "a\0b",
        "example.org\n",
        "\texample.org",
        "a\u{7f}",
        "a\u{85}b",
        "127.0.0.1%00",
        "%31",
        "exa%6dple.org",
        "[fe80::1%eth0]",
        "fe80::1%1",
        "[example.org]",
        "[127.0.0.1]",
        "[::1",
        "::1]",
        "[]",
        "[[::1]]",
        "a[b]",
        "example.org:80",
        "user@example.org",
        "example.org/",
        "a\\b",
        "a?b",
        "a#b",
        "a,b",
        "a!b",
        "a*b",
        "*",
        "*.a",
        "256.0.0.1",
        "1.2.3.4.5",
        "0x1ffffffff",
        "4294967296",
        "08.0.0.1",
        "example.1",
        "a.0x7f",
        "1:2",
        ":::",
        "::1::",
        "xn--a",
        "\u{202e}a.org",
        &long,
        &longer,
        &huge,
    ] {
        assert!(text.parse::<Host>().is_err(), "{text:?}");
    }
}

#[test]
fn what_a_destination_is() {
    for (text, shown) in [
        ("example.org", "example.org:443"),
        ("example.org:8443", "example.org:8443"),
        ("[::1]", "[::1]:443"),
        ("[::1]:1", "[::1]:1"),
        ("0x7f.1:65535", "127.0.0.1:65535"),
    ] {
        assert_eq!(destination(text).to_string(), shown);
    }
    for text in [
        "", ":", ":80", "a:", "a:0", "a:00080", "a:+80", "a:-1", "a: 80", "a:80 ", "a:65536",
        "a:8o", "a:80:80", "::1", "::1:80", "[::1]80", "[::1]:", "u@a", "u:p@a", "@a", "a@",
        "a:80@b", "a:８０",
    ] {
        assert!(Destination::parse(text, 443).is_err(), "{text}");
    }
    let error = Destination::parse("user:hunter2@example.org", 443).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn what_a_pattern_matches() {
    for (pattern, yes, no) in [
        (
            "example.org",
            &["example.org", "example.org.", "EXAMPLE.org"][..],
            &["a.example.org", "example.org:80", "example.com"][..],
        ),
        ("example.org:8443", &["example.org:8443"], &["example.org"]),
        (
            "*.example.org",
            &["a.example.org", "a.b.example.org"],
            &[
                "example.org",
                "aexample.org",
                "a.example.org:80",
                "example.org.evil.net",
            ],
        ),
        (
            "*.amazonaws.com",
            &["sts.amazonaws.com"],
            &["s3.amazonaws.com", "anyone.s3.amazonaws.com"],
        ),
        (
            "*.me.github.io",
            &["a.me.github.io"],
            &["me.github.io", "other.github.io"],
        ),
        (
            "*",
            &["example.org", "a.example.co.uk", "me.github.io"],
            &[
                "com",
                "co.uk",
                "github.io",
                "localhost",
                "10.0.0.1",
                "8.8.8.8",
                "[2606::1]",
                "example.org:80",
            ],
        ),
        (
            "*:8443",
            &["example.org:8443"],
            &["example.org", "127.0.0.1:8443"],
        ),
        (
            "[::1]:8443",
            &["[::1]:8443", "[0::1]:8443"],
            &["[::1]", "[::ffff:127.0.0.1]:8443"],
        ),
        (
            "127.1:80",
            &["127.0.0.1:80", "2130706433:80"],
            &["127.0.0.2:80"],
        ),
        ("localhost:8443", &["localhost:8443"], &["a.localhost:8443"]),
        (
            "*.bücher.example",
            &["a.xn--bcher-kva.example"],
            &["a.bucher.example"],
        ),
    ] {
        let read: HostPattern = pattern.parse().unwrap();
        assert_eq!(read, read.to_string().parse().unwrap(), "{pattern}");
        for text in yes {
            assert!(read.matches(&destination(text)), "{pattern} {text}");
        }
        for text in no {
            assert!(!read.matches(&destination(text)), "{pattern} {text}");
        }
    }
}

#[test]
fn what_is_no_pattern() {
    for text in [
        "",
        "*.",
        "**",
        "*.*",
        "*.*.org",
        "a*.example.org",
        "*example.org",
        "a.*.org",
        "*.com",
        "*.co.uk",
        "*.github.io",
        "*.localhost",
        "*.corp",
        "*.1.2.3.4",
        "*.[::1]",
        "*.::1",
        "::1",
        "*:0",
        "*:",
        "https://a.org",
        "a.org/x",
        "u@a.org",
        "a.org:443:443",
        " a.org",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text}");
    }
    let error = "https://a.org/x".parse::<HostPattern>().unwrap_err();
    assert!(error.to_string().contains("it is a URL"), "{error}");
}

#[test]
fn patterns_hold_others() {
    for (outer, inner, holds) in [
        ("*", "example.org", true),
        ("*", "*.example.org", true),
        ("*", "127.0.0.1", false),
        ("*", "localhost", false),
        ("*.example.org", "*.a.example.org", true),
        ("*.a.example.org", "*.example.org", false),
        ("*.example.org", "example.org", false),
        ("*.amazonaws.com", "*.x.s3.amazonaws.com", false),
        ("*.example.org", "a.example.org:80", false),
        ("a.example.org", "a.example.org", true),
        ("*:*", "a.example.org", true),
        ("*:*", "localhost:8443", true),
        ("*:*", "[::1]:8443", true),
        ("*:*", "*.example.org:8443", true),
        ("*:*", "*", true),
        ("*", "*:*", false),
        ("a.example.org", "*:*", false),
    ] {
        let (one, other): (HostPattern, HostPattern) =
            (outer.parse().unwrap(), inner.parse().unwrap());
        assert_eq!(one.covers(&other), holds, "{outer} {inner}");
        let both = one.intersect(&other);
        assert_eq!(both, other.intersect(&one), "{outer} {inner}");
        assert!(!holds || both == Some(other), "{outer} {inner}");
    }
}

/// What a manifest may say opens nothing by itself.
#[test]
fn whatever_is_granted_is_nothing_when_granted() {
    let pattern: HostPattern = "*:*".parse().unwrap();
    for host in ["example.org", "localhost:8443", "[::1]:443", "10.0.0.1"] {
        assert!(!pattern.matches(&destination(host)), "{host}");
    }
    assert_eq!(pattern.to_string(), "*:*");
    assert_eq!(
        "http://*:*:GET".parse::<HostAccess>().unwrap().to_string(),
        "http://*:*:GET"
    );
}

/// Whatever a manifest may say of hosts comes back from its text, in whose name the scheme does not stand.
#[test]
fn every_pattern_is_read_as_it_was_written() {
    let hosts = ["*", "a.example.org", "*.example.org", "[::1]"];
    let ports = ["", ":80", ":443", ":8443"];
    let named = hosts
        .iter()
        .flat_map(|host| ports.map(|port| format!("{host}{port}")));
    let texts: Vec<String> = named.chain(["*:*".to_owned()]).collect();
    for (text, plain_http) in texts.iter().flat_map(|text| [(text, false), (text, true)]) {
        let default_port = HostAccess::default_port(plain_http);
        let pattern = HostPattern::parse(text, default_port).unwrap();
        let written = pattern.to_string();
        assert_eq!(written.parse(), Ok(pattern.clone()), "{text}: {written}");
        let json = serde_json::to_string(&pattern).unwrap();
        let read: HostPattern = serde_json::from_str(&json).unwrap();
        assert_eq!(read, pattern, "{text}: {json}");
    }
}

#[test]
fn what_access_is_written_like() {
    for (text, shown) in [
        ("example.org", "example.org"),
        ("example.org:443", "example.org"),
        ("example.org:get", "example.org:GET"),
        (
            "example.org:8443:POST+GET+HEAD",
            "example.org:8443:GET+POST",
        ),
        ("http://example.org", "http://example.org"),
        ("http://example.org:8080:GET", "http://example.org:8080:GET"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("[fe80::abcd]", "[fe80::abcd]"),
        ("*:GET", "*:GET"),
    ] {
        let access: HostAccess = text.parse().unwrap();
        assert_eq!(access.to_string(), shown);
        assert_eq!(access, shown.parse().unwrap());
    }
    for text in [
        "example.org:CONNECT",
        "example.org:GET+",
        "example.org:",
        "https://a.org",
        "http://",
        "a.org:GET/x",
    ] {
        assert!(text.parse::<HostAccess>().is_err(), "{text}");
    }
}

#[test]
fn access_is_what_both_sides_say() {
    for (one, other, both) in [
        ("*", "example.org:GET", Some("example.org:GET")),
        ("*:GET", "example.org", Some("example.org:GET")),
        ("*.a.org:GET+POST", "x.a.org:POST+PUT", Some("x.a.org:POST")),
        ("a.org:GET", "a.org:POST", None),
        ("a.org:GET", "a.org:HEAD", Some("a.org:HEAD")),
        ("http://a.org:443", "a.org", None),
    ] {
        let (one, other): (HostAccess, HostAccess) = (one.parse().unwrap(), other.parse().unwrap());
        let shown = one.intersect(&other).map(|both| both.to_string());
        assert_eq!(shown.as_deref(), both);
        assert_eq!(one.intersect(&other), other.intersect(&one));
    }
    let all: HostAccess = "a.org".parse().unwrap();
    assert!(all.can_send() && all.allows_method("PROPFIND"));
    let fetching = all.fetching().unwrap();
    assert!(
        !fetching.can_send() && fetching.allows_method("HEAD") && !fetching.allows_method("POST")
    );
    assert_eq!("a.org:POST".parse::<HostAccess>().unwrap().fetching(), None);
}

#[test]
fn a_private_host_opens_its_own_ports() {
    let private = PrivateHost {
        host: "git.corp".parse().unwrap(),
        ports: vec![8443],
        plain_http: false,
    };
    assert!(private.opens(&destination("GIT.corp.:8443")));
    assert!(!private.opens(&destination("git.corp")));
    assert!(!private.opens(&destination("a.git.corp:8443")));
}

#[test]
fn capabilities_keep_their_form_in_the_store() {
    use crate::capability::Capability;
    for (json, shown) in [
        (
            r#"{"kind":"host","name":"api.example.com"}"#,
            "host api.example.com",
        ),
        (
            r#"{"kind":"host","name":"api.example.com:8443","methods":["GET","POST"]}"#,
            "host api.example.com:8443:GET+POST",
        ),
        (
            r#"{"kind":"host","name":"a.org:80","plain_http":true}"#,
            "host http://a.org",
        ),
    ] {
        let capability: Capability = serde_json::from_str(json).unwrap();
        assert_eq!(capability.to_string(), shown);
        assert_eq!(serde_json::to_string(&capability).unwrap(), json);
    }
}

proptest! {
    /// The oracle is the parser of browsers: what is taken is the host that a browser would reach, and nothing else.
    #[test]
    fn every_host_is_the_one_of_a_url(text in "[-_.:%a-zA-Z0-9\u{ff10}-\u{ff19}。üßİ\\[\\]x]{1,24}") {
        let url = url::Url::parse(&format!("https://{text}/"));
        if let Ok(host) = text.parse::<Host>() {
            let is_bare = host.address().is_some_and(|address| address.is_ipv6()) && !text.starts_with('[');
            let of_url = match (is_bare, &url) {
                (true, _) => format!("[{}]", text.parse::<std::net::Ipv6Addr>().unwrap()).parse::<Host>().unwrap(),
                (false, Ok(url)) => url.host_str().unwrap().parse().unwrap(),
                (false, Err(error)) => panic!("{text}: {error}"),
            };
            prop_assert_eq!(&of_url, &host);
            prop_assert_eq!(host.to_string().parse::<Host>().unwrap(), host);
        }
    }

    /// An address is recognised in each spelling.
    #[test]
    fn every_spelling_of_an_address_is_the_address(bits: u32, form in 0..5) {
        let address = std::net::Ipv4Addr::from(bits);
        let [a, b, c, d] = address.octets();
        let text = match form {
            0 => format!("{address}"),
            1 => format!("{bits}"),
            2 => format!("{bits:#x}"),
            3 => format!("{a:#o}.{b}.{:#x}", u16::from_be_bytes([c, d])).replace("0o", "0"),
            _ => format!("{a}.0x{b:X}.{c}.{d}."),
        };
        prop_assert_eq!(text.parse::<Host>().unwrap().address(), Some(address.into()));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}") {
        drop(text.parse::<Host>());
        drop(text.parse::<HostAccess>());
        drop(Destination::parse(&text, 443));
    }
}
