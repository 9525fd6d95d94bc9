use http::header::{HeaderMap, HeaderName, HeaderValue};
use zeph_core::execution::SecretValue;
use zeph_core::network::Destination;
use zeph_core::redact::Redactor;

use super::{GrantedSecret, RequestHop, check_url, clean_headers, headers};

const VALUE: &str = "Bearer s3cr3t+value/1";

fn granted(text: &str) -> GrantedSecret {
    GrantedSecret {
        granted: text.parse().unwrap(),
        value: VALUE.to_owned(),
    }
}

fn known() -> Redactor {
    Redactor::new(&[SecretValue {
        name: "T".to_owned(),
        value: VALUE.to_owned(),
    }])
}

#[test]
fn a_secret_goes_to_its_host_by_its_methods_and_nowhere_else() {
    let secrets = [
        granted("T=api.example.com:authorization:GET+POST"),
        granted("T=api.example.com:8443:x-api-key"),
    ];
    for (destination, method, is_exposed, has_left_origin, expected) in [
        ("api.example.com:443", "GET", false, false, "authorization"),
        ("api.example.com:443", "HEAD", false, false, "authorization"),
        (
            "API.example.com.:443",
            "POST",
            false,
            false,
            "authorization",
        ),
        ("api.example.com:8443", "DELETE", false, false, "x-api-key"),
        ("api.example.com:443", "PUT", false, false, ""),
        ("api.example.com:80", "GET", false, false, ""),
        ("www.api.example.com:443", "GET", false, false, ""),
        ("example.com:443", "GET", false, false, ""),
        ("api.example.com:443", "GET", true, false, ""),
        ("api.example.com:443", "GET", false, true, ""),
    ] {
        let destination = Destination::parse(destination, 443).unwrap();
        let hop = RequestHop {
            destination: &destination,
            method,
            is_exposed,
            has_left_origin,
        };
        let added: Vec<(HeaderName, HeaderValue)> = headers(&secrets, hop).collect();
        let names: Vec<&str> = added.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{destination} {method}");
        assert!(
            added
                .iter()
                .all(|(_, value)| value.is_sensitive() && *value == *VALUE)
        );
    }
    assert!(!format!("{secrets:?}").contains("s3cr3t"));
}

#[test]
fn a_url_that_holds_a_secret_in_any_form_is_refused() {
    let known = known();
    for url in [
        "https://a.example/?t=s3cr3t+value/1",
        "https://a.example/s3cr3t%2Bvalue%2F1",
        "https://a.example/?t=czNjcjN0K3ZhbHVlLzE",
        "https://a.example/#s3cr3t%252Bvalue/1",
        "https://s3cr3t+value%2f1.a.example/",
    ] {
        let refused = check_url(&known, url).unwrap_err();
        assert!(refused.to_string().contains("`T`"), "{refused}");
        assert!(!refused.to_string().contains("s3cr3t"), "{refused}");
    }
    assert!(check_url(&known, "https://a.example/?q=secret").is_ok());
}

#[test]
fn no_header_of_a_response_holds_a_secret() {
    let mut response = HeaderMap::new();
    response.insert("x-echo", HeaderValue::from_static(VALUE));
    response.append(
        "x-echo",
        HeaderValue::from_static("QmVhcmVyIHMzY3IzdCt2YWx1ZS8x"),
    );
    response.insert("content-type", HeaderValue::from_static("text/plain"));
    // A name is lower case, whatever was sent.
    let name = HeaderName::from_bytes(b"X-QmVhcmVyIHMzY3IzdCt2YWx1ZS8x").unwrap();
    response.insert(name, HeaderValue::from_static("1"));
    clean_headers(&known(), &mut response);
    assert_eq!(response["x-echo"], "*".repeat(VALUE.len()));
    assert_eq!(response["content-type"], "text/plain");
    assert!(
        !format!("{response:?}").contains("QmVhcmVy"),
        "{response:?}"
    );
    assert_eq!(response.keys_len(), 2, "{response:?}");
}
