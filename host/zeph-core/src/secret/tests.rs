use super::{SecretUse, value_problem};
use crate::network::Destination;

fn of(text: &str) -> SecretUse {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_use_is_read_as_it_is_written() {
    for (text, host, port, methods) in [
        ("T=api.example.com:authorization", "api.example.com", 443, 0),
        (
            "T=api.example.com:8443:x-api-key",
            "api.example.com",
            8443,
            0,
        ),
        ("T=[::1]:8443:authorization:GET+POST", "[::1]", 8443, 2),
        ("T=127.0.0.1:8443:authorization:GET", "127.0.0.1", 8443, 1),
    ] {
        let read = of(text);
        let destination = Destination::parse(host, port).unwrap();
        assert!(read.covers(&destination, "GET"), "{text}");
        let n_methods = read.methods.as_ref().map_or(0, |some| some.names().count());
        assert_eq!(n_methods, methods, "{text}");
        assert_eq!(read.to_string(), text);
    }
    assert_eq!(
        of("T=API.example.com:Authorization:post,get,get").to_string(),
        "T=api.example.com:authorization:GET+POST"
    );
}

#[test]
fn what_could_lead_elsewhere_is_no_use() {
    for text in [
        "T",
        "=h.example:authorization",
        "T=h.example",
        "T=:authorization",
        "T=*.example.com:authorization",
        "T=h.example:0:authorization",
        "T=h.example:99999:authorization",
        "T=h.example:host",
        "T=h.example:content-length",
        "T=h.example:transfer-encoding",
        "T=h.example:a b",
        "T=h.example:authorization:TRACE",
        "T=h.example:authorization:CONNECT",
        "T=h.example:authorization:",
        "T=h.example/path:authorization",
        "T=user@h.example:authorization",
        "T=[::1:authorization",
        "T T=h.example:authorization",
    ] {
        assert!(text.parse::<SecretUse>().is_err(), "{text}");
    }
}

#[test]
fn two_uses_allow_what_both_allow() {
    let any = of("T=h.example:authorization");
    let get = of("T=h.example:authorization:GET+PUT");
    let post = of("T=h.example:authorization:POST+PUT");
    assert_eq!(any.intersect(&get), Some(get.clone()));
    assert_eq!(
        get.intersect(&post),
        Some(of("T=h.example:authorization:PUT"))
    );
    let patch = of("T=h.example:authorization:PATCH");
    assert_eq!(get.intersect(&patch), None);
    for other in [
        "U=h.example:authorization",
        "T=i.example:authorization",
        "T=h.example:8443:authorization",
        "T=h.example:x-api-key",
    ] {
        assert_eq!(any.intersect(&of(other)), None, "{other}");
    }
    let here = Destination::parse("h.example", 443).unwrap();
    assert!(any.covers(&here, "PATCH") && !get.covers(&here, "PATCH"));
    let mut wider = get.clone();
    wider.widen(&post);
    assert!(wider.covers(&here, "POST") && wider.intersect(&get) == Some(get));
}

#[test]
fn a_value_is_one_line_that_can_be_hidden() {
    assert_eq!(value_problem("Bearer abc.def-123"), None);
    for value in [
        "",
        "short",
        "aaaaaaaaaaaa",
        "with\nline",
        " padded1",
        "übergröße1",
        "tab\tbed12",
    ] {
        assert!(value_problem(value).is_some(), "{value:?}");
    }
    assert!(value_problem(&"abcd".repeat(3000)).is_some());
}
