//! Secrets: what is sent with a request, and that nothing of it comes back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use zeph_core::execution::SecretValue;
use zeph_core::network::PrivateHost;
use zeph_core::redact::Redactor;

use super::bodies::encoded;
use super::server::Reply;
use super::{Got, World, get, limits, request, send};
use crate::EgressError;
use crate::secret::{CallSecrets, GrantedSecret};

const VALUE: &str = "Bearer k9-s3cr3t/value+42";

/// What is in every form of it that is not encoded as a whole.
const CREDENTIAL: &str = "k9-s3cr3t/value+42";

fn secrets(granted: &[&str]) -> CallSecrets {
    let granted = granted.iter().map(|text| GrantedSecret {
        granted: text.parse().unwrap(),
        value: VALUE.to_owned(),
    });
    CallSecrets {
        granted: granted.collect(),
        unset: ["U=example.org:x-unset:POST".parse().unwrap()].into(),
        known: Redactor::new(&[SecretValue {
            name: "T".to_owned(),
            value: VALUE.to_owned(),
        }]),
    }
}

fn hosts() -> Vec<zeph_core::network::HostAccess> {
    let hosts = ["example.org", "other.example", "http://git.corp:80"];
    hosts.map(|text| text.parse().unwrap()).to_vec()
}

/// How many of the requests that a server got carried the value.
fn n_sent(world: &World) -> Vec<bool> {
    let requests = world.server.requests();
    let has = |request: &String| request.contains(&format!("authorization: {VALUE}\r\n"));
    requests.iter().map(has).collect()
}

#[tokio::test]
async fn a_secret_is_sent_to_its_host_and_stays_off_wherever_else_a_request_leads() {
    let world = World::new(|line| match line {
        "GET /away" => Reply::to("https://other.example/back"),
        "GET /back" => Reply::to("https://example.org/end"),
        "GET /within" => Reply::to("/end"),
        _ => Reply::text("end"),
    })
    .await;
    let granted = [
        "T=example.org:authorization:GET",
        "T=other.example:authorization",
    ];
    let call = world.call_with(&hosts(), secrets(&granted));
    get(&call, "https://example.org/within").await.unwrap();
    assert_eq!(n_sent(&world), [true, true]);
    get(&call, "https://example.org/away").await.unwrap();
    assert_eq!(
        n_sent(&world)[2..],
        [true, false, false],
        "also on the way back"
    );
    let mut put = request(Method::PUT, "https://example.org/", "x");
    let theirs = "authorization".parse::<http::HeaderName>().unwrap();
    put.headers_mut().insert(theirs, "theirs".parse().unwrap());
    send(&call, put).await.unwrap();
    assert!(world.server.requests()[5].contains("authorization: theirs"));
    let mut ours = request(Method::GET, "https://example.org/", "");
    ours.headers_mut()
        .insert("authorization", "theirs".parse().unwrap());
    send(&call, ours).await.unwrap();
    assert!(n_sent(&world)[6] && !world.server.requests()[6].contains("theirs"));
}

#[tokio::test]
async fn a_secret_goes_in_the_clear_only_where_the_operator_allows_it() {
    for (plain_http, expected) in [(true, true), (false, false)] {
        let private = PrivateHost {
            host: "git.corp".parse().unwrap(),
            ports: vec![80],
            plain_http,
        };
        let world = World::with(limits(), &[private], |_| Reply::text("end")).await;
        world.name("git.corp", &[&["127.0.0.1"]]);
        let call = world.call_with(&hosts(), secrets(&["T=git.corp:80:authorization"]));
        get(&call, "http://git.corp/").await.unwrap();
        assert_eq!(n_sent(&world), [expected]);
    }
}

#[tokio::test]
async fn a_url_with_a_secret_and_a_request_for_one_without_value_are_not_sent() {
    let world = World::new(|line| match line {
        "GET /echo" => Reply::to("https://example.org/?t=k9-s3cr3t%2fvalue%2b42"),
        _ => Reply::text("end"),
    })
    .await;
    let call = world.call_with(&hosts(), secrets(&[]));
    for url in [
        "https://example.org/k9-s3cr3t/value+42",
        "https://other.example/?q=azktczNjcjN0L3ZhbHVlKzQy",
        "https://example.org/?k9-s3cr3t%252Fvalue+42",
    ] {
        let error = get(&call, url).await.unwrap_err();
        assert!(matches!(error, EgressError::Request(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains("`T`") && !said.contains("s3cr3t"), "{said}");
    }
    let unset = send(&call, request(Method::POST, "https://example.org/", "x")).await;
    assert!(unset.unwrap_err().to_string().contains("secret set U"));
    assert_eq!(world.server.requests().len(), 0);
    let echoed = get(&call, "https://example.org/echo").await.unwrap_err();
    assert!(matches!(echoed, EgressError::Redirect { .. }), "{echoed}");
    assert!(
        !format!("{echoed} {echoed:?}").contains("s3cr3t"),
        "{echoed:?}"
    );
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn nothing_of_a_response_holds_a_secret() {
    let in_base64 = STANDARD.encode(format!("user:{CREDENTIAL}"));
    let forms = format!(
        "{VALUE}\n{in_base64}\n{}\n{}\n{}\nend",
        CREDENTIAL.replace('/', "%2F").replace('+', "%2b"),
        CREDENTIAL.replace('/', r"\/"),
        CREDENTIAL.replace('+', "&#43;"),
    );
    let (body, gzipped) = (forms.clone(), encoded("gzip", forms.as_bytes()).await);
    let chunked: String = forms
        .as_bytes()
        .chunks(3)
        .map(|piece| {
            format!(
                "{:x}\r\n{}\r\n",
                piece.len(),
                std::str::from_utf8(piece).unwrap()
            )
        })
        .collect();
    let fields = format!("x-echo: {VALUE}\r\nset-cookie: a={in_base64}\r\n");
    let world = World::new(move |line| match line {
        "GET /plain" => Reply::of("200 OK", &fields, &body),
        "GET /gzip" => Reply::of("200 OK", "content-encoding: gzip\r\n", &gzipped),
        "GET /moved" => {
            let fields = format!("content-encoding: gzip\r\nlocation: /x\r\nx-echo: {VALUE}\r\n");
            Reply::of("302 Found", &fields, &gzipped)
        }
        "GET /coding" => Reply::of("200 OK", &format!("content-encoding: {CREDENTIAL}\r\n"), "x"),
        _ => Reply::raw(format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-echo\r\n\r\n{chunked}0\r\nx-echo: {VALUE}\r\n\r\n"
        )),
    })
    .await;
    let call = world.call_with(&hosts(), secrets(&["T=example.org:authorization"]));
    let is_clean = |got: &Got| {
        let seen = format!("{:?} {}", got.headers, got.text());
        for form in [CREDENTIAL, "s3cr3t", "czNjcjN0", &in_base64[8..20]] {
            assert!(!seen.contains(form), "{form}: {seen}");
        }
    };
    for path in ["plain", "gzip", "chunked"] {
        let got = get(&call, &format!("https://example.org/{path}"))
            .await
            .unwrap();
        is_clean(&got);
        assert!(got.text().ends_with("\nend"), "{}", got.text());
        assert_eq!(got.text().len(), forms.len(), "lengths stay");
    }
    let mut moved = request(Method::GET, "https://example.org/moved", "");
    moved
        .headers_mut()
        .insert("zeph-redirects", "manual".parse().unwrap());
    let moved = send(&call, moved).await.unwrap();
    is_clean(&moved);
    assert_eq!((moved.status, moved.text().as_str()), (302, ""));
    let error = get(&call, "https://example.org/coding").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
    assert!(n_sent(&world).into_iter().all(|is_sent| is_sent));
}
