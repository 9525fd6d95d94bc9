//! What comes back: decoded, and ended in bytes and in time.

use std::time::Duration;

use async_compression::Level;
use async_compression::tokio::write::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use http::Method;
use tokio::io::AsyncWriteExt as _;
use zeph_core::network::EgressLimits;

use super::server::Reply;
use super::{Got, World, get, limits, request, send};
use crate::EgressError;

pub(super) async fn encoded(coding: &str, text: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut encoder = GzipEncoder::new(Vec::new());
            encoder.write_all(text).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new());
            encoder.write_all(text).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
        "br" => {
            let mut encoder = BrotliEncoder::with_quality(Vec::new(), Level::Fastest);
            encoder.write_all(text).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
        _ => {
            let mut encoder = ZstdEncoder::new(Vec::new());
            encoder.write_all(text).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
    }
}

async fn answered(
    limits: EgressLimits,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<Got, EgressError> {
    let world = World::with(limits, &[], move |_| reply()).await;
    get(&world.call(&["example.org"]), "https://example.org/").await
}

/// The error, whether it came before the header or within the body.
async fn failed(
    limits: EgressLimits,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> EgressError {
    match answered(limits, reply).await {
        Ok(got) => got.body.unwrap_err(),
        Err(error) => error,
    }
}

fn hasty() -> EgressLimits {
    EgressLimits {
        header: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        total: Duration::from_secs(1),
        ..limits()
    }
}

#[tokio::test]
async fn bodies_come_without_their_encoding() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let text = "plain text, ".repeat(10_000);
        let body = encoded(coding, text.as_bytes()).await;
        let fields = format!("content-encoding: {coding}\r\n");
        let got = answered(limits(), move || Reply::of("200 OK", &fields, &body))
            .await
            .unwrap();
        assert_eq!(got.text(), text, "{coding}");
        assert!(!got.headers.contains_key("content-encoding"));
        assert!(!got.headers.contains_key("content-length"));
    }
}

/// Empty entries and `identity` are none. Some servers send `deflate` without the header of zlib.
#[tokio::test]
async fn an_encoding_is_read_as_servers_write_it() {
    let text = "plain text, ".repeat(10_000);
    let mut bare = DeflateEncoder::new(Vec::new());
    bare.write_all(text.as_bytes()).await.unwrap();
    bare.shutdown().await.unwrap();
    let gzip = encoded("gzip", text.as_bytes()).await;
    for (coding, body) in [
        ("deflate", bare.into_inner()),
        ("GZIP,", gzip.clone()),
        ("identity, gzip", gzip),
        ("identity,,identity", text.clone().into_bytes()),
        ("deflate", Vec::new()),
    ] {
        let is_empty = body.is_empty();
        let fields = format!("content-encoding: {coding}\r\n");
        let got = answered(limits(), move || Reply::of("200 OK", &fields, &body)).await;
        match is_empty {
            true => drop(got.unwrap().body.unwrap_err()),
            false => assert_eq!(got.unwrap().text(), text, "{coding}"),
        }
    }
}

#[tokio::test]
async fn bombs_end_at_the_limit() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let body = encoded(coding, &vec![0; 32 << 20]).await;
        assert!(body.len() < 400_000, "{coding}: {}", body.len());
        let fields = format!("content-encoding: {coding}\r\n");
        let error = failed(limits(), move || Reply::of("200 OK", &fields, &body)).await;
        let is_told = matches!(
            error,
            EgressError::TooLarge {
                key: "max_body_bytes",
                ..
            }
        );
        assert!(is_told, "{coding}: {error}");
    }
}

#[tokio::test]
async fn one_encoding_is_decoded_and_no_other() {
    for coding in [
        "gzip, gzip",
        "gzip, br",
        "br\r\ncontent-encoding: gzip",
        "deflate, gzip",
        "compress",
        "xz",
    ] {
        let fields = format!("content-encoding: {coding}\r\n");
        let error = failed(limits(), move || Reply::of("200 OK", &fields, "x")).await;
        assert!(
            matches!(error, EgressError::Encoding(_)),
            "{coding}: {error}"
        );
    }
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let fields = format!("content-encoding: {coding}\r\n");
        let error = failed(limits(), move || {
            Reply::of("200 OK", &fields, "this is not it")
        })
        .await;
        assert!(matches!(error, EgressError::Decode(_)), "{coding}: {error}");
    }
}

#[tokio::test]
async fn answers_without_a_body_are_not_decoded() {
    for (status, field) in [
        ("204 No Content", "content-encoding: gzip\r\n"),
        ("304 Not Modified", "content-encoding: gzip\r\n"),
        ("302 Found", "content-encoding: gzip\r\n"),
    ] {
        let head = format!("HTTP/1.1 {status}\r\n{field}\r\n");
        let got = answered(limits(), move || Reply::raw(head.clone()))
            .await
            .unwrap();
        assert_eq!(got.text(), "", "{status}");
    }
    let world = World::new(|_| {
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 99999999\r\n\r\n")
    })
    .await;
    let call = world.call(&["example.org"]);
    let got = send(&call, request(Method::HEAD, "https://example.org/", ""))
        .await
        .unwrap();
    assert_eq!(
        (
            got.text().as_str(),
            got.headers["content-length"].to_str().unwrap()
        ),
        ("", "99999999")
    );
}

#[tokio::test]
async fn informational_answers_are_passed_over_and_end_in_time() {
    let got = answered(limits(), || {
        Reply::raw(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        )
    });
    assert_eq!(got.await.unwrap().text(), "ok");
    let error = failed(hasty(), || {
        Reply::raw("").then_for_ever("HTTP/1.1 100 Continue\r\n\r\n", Duration::from_millis(5))
    })
    .await;
    assert!(matches!(error, EgressError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn slow_answers_end_in_time() {
    let pause = Duration::from_millis(50);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    type Case = (&'static str, fn() -> Reply, &'static str);
    let cases: [Case; 5] = [
        (
            "silence",
            || Reply::raw("").then_for_ever("", Duration::from_secs(1)),
            "header_timeout_secs",
        ),
        (
            "a header",
            || {
                Reply::raw("HTTP/1.1 200 OK\r\n")
                    .then_for_ever("x: y\r\n", Duration::from_millis(50))
            },
            "header_timeout_secs",
        ),
        (
            "a body in drops",
            || {
                Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n")
                    .then_for_ever("x", Duration::from_millis(50))
            },
            "timeout_secs",
        ),
        (
            "a body that stops",
            || {
                Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\nx")
                    .then_for_ever("", Duration::from_secs(1))
            },
            "idle_timeout_secs",
        ),
        (
            "chunks",
            || {
                Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                    .then_for_ever("1\r\nx\r\n", Duration::from_millis(50))
            },
            "timeout_secs",
        ),
    ];
    for (what, reply, expected) in cases {
        let error = failed(hasty(), reply).await;
        let EgressError::TimedOut { key, .. } = error else {
            panic!("{what}: {error}");
        };
        assert_eq!(key, expected, "{what}");
    }
    // Slow within an encoding, and slow trailers.
    let body = encoded("gzip", b"0123456789").await;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len() + 9
    );
    let half = [head.as_bytes(), &body[..body.len() / 2]].concat();
    let error = failed(hasty(), move || {
        Reply::raw(half.clone()).then_for_ever("", Duration::from_secs(1))
    })
    .await;
    assert!(matches!(error, EgressError::TimedOut { .. }), "{error}");
    let error = failed(hasty(), move || {
        Reply::raw(format!("{chunked}1\r\nx\r\n0\r\n")).then_for_ever("x: y\r\n", pause)
    })
    .await;
    assert!(
        matches!(
            error,
            EgressError::TimedOut { .. } | EgressError::Http { .. }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn large_answers_end() {
    let endless = failed(limits(), || {
        Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").then_for_ever(
            &format!("10000\r\n{}\r\n", "x".repeat(0x10000)),
            Duration::ZERO,
        )
    })
    .await;
    assert!(matches!(endless, EgressError::TooLarge { .. }), "{endless}");
    let announced = failed(limits(), || {
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n")
    })
    .await;
    assert!(
        matches!(announced, EgressError::TooLarge { .. }),
        "{announced}"
    );
    let until_the_end = failed(limits(), || {
        Reply::raw(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2 << 20)))
    })
    .await;
    assert!(
        matches!(until_the_end, EgressError::TooLarge { .. }),
        "{until_the_end}"
    );
    for reply in [
        || {
            Reply::raw("HTTP/1.1 200 OK\r\n")
                .then_for_ever(&format!("x: {}\r\n", "y".repeat(1_000)), Duration::ZERO)
        },
        || {
            Reply::raw(format!(
                "HTTP/1.1 200 OK\r\n{}\r\n",
                "x: y\r\n".repeat(1_000)
            ))
        },
    ] {
        let error = failed(limits(), reply).await;
        assert!(matches!(error, EgressError::Http { .. }), "{error}");
    }
}

#[tokio::test]
async fn answers_that_are_not_whole_fail() {
    for raw in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nsho",
        "HTTP/1.1 200",
        "not HTTP at all\r\n\r\n",
        "",
    ] {
        let error = failed(limits(), move || Reply::raw(raw)).await;
        assert!(
            matches!(error, EgressError::Http { .. }),
            "{raw:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_call_has_so_many_requests_at_one_time() {
    let few = EgressLimits {
        connections: 1,
        ..hasty()
    };
    let world = World::with(few, &[], |_| Reply::text("ok")).await;
    let call = world.call(&["example.org"]);
    let fetched = |call: &super::CallExit| {
        let prepared = call.prepare(
            request(Method::GET, "https://example.org/", ""),
            super::Patience::default(),
        );
        prepared.unwrap().send()
    };
    let world = &world;
    let held = fetched(&call).await.unwrap();
    drop(held);
    // What is over is counted no more, also where it is still held.
    let first = fetched(&call).await.unwrap();
    drop(first);
    assert!(fetched(&call).await.is_ok());
    assert!(world.server.requests().len() == 3);
}

#[tokio::test]
async fn the_limit_of_a_header_holds_however_it_arrives() {
    for (n_bytes, is_taken) in [(60 * 1024, true), (66 * 1024, false), (200 * 1024, false)] {
        let fields = format!("x-long: {}\r\n", "a".repeat(n_bytes));
        match answered(limits(), move || Reply::of("200 OK", &fields, "x")).await {
            Ok(_) => assert!(is_taken, "{n_bytes}"),
            Err(error) => assert!(!is_taken, "{n_bytes}: {error}"),
        }
    }
}

#[tokio::test]
async fn another_protocol_is_no_answer() {
    let error = failed(limits(), || {
        Reply::raw(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n<p>",
        )
    })
    .await;
    assert!(matches!(error, EgressError::Upgrade(_)), "{error}");
}
