use url::Url;
use zeph_plugin::{Category, Content, Output, ToolError};

use super::{Args, read};
use crate::media::MediaType;
use crate::page::Page;

fn page(media: &str, body: impl Into<Vec<u8>>) -> Page {
    let url = Url::parse("https://example.com/a").expect("it is valid");
    Page::of(url, MediaType::parse(media), body.into()).expect("it is text")
}

fn args(json: &str) -> Args {
    serde_json::from_str(json).expect("they are valid")
}

fn text(output: Result<Output, ToolError>) -> String {
    let output = output.expect("the call succeeds");
    match &output.content[..] {
        [Content::Text(text)] => text.clone(),
        other => panic!("one text is expected: {other:?}"),
    }
}

#[test]
fn other_text_is_as_it_is() {
    let ask = r#"{"url": "https://example.com/a"}"#;
    for (media, body) in [
        ("application/json", "{\"a\": [1, 2],\n\"b\": \"<p>\"}"),
        ("text/plain", "<p>no page</p>\n  two\n"),
        ("text/csv", "a,b\n1,2\n"),
        ("application/xml", "<a hidden>b</a>"),
    ] {
        assert_eq!(text(read(page(media, body), &args(ask))), body, "{media}");
    }
}

#[test]
fn a_page_is_its_title_and_its_text() {
    let body = "<title>A title</title><h1>Heading</h1><p>One.</p><p>Two.</p>";
    let plain = text(read(
        page("text/html", body),
        &args(r#"{"url": "u", "whole": true}"#),
    ));
    assert_eq!(plain, "A title\n\nHeading\n\nOne.\n\nTwo.");
    let markdown = text(read(
        page("text/html", body),
        &args(r#"{"url": "u", "whole": true, "format": "markdown"}"#),
    ));
    assert_eq!(markdown, "# A title\n\n# Heading\n\nOne.\n\nTwo.");
}

#[test]
fn long_texts_come_in_parts() {
    let body = "0123456789".repeat(5);
    let first = text(read(
        page("text/plain", body.clone()),
        &args(r#"{"url": "u", "max_length": 20}"#),
    ));
    assert_eq!(
        first,
        "01234567890123456789\n\n[characters 0 to 19 of 50; `start_index=20` continues]"
    );
    let last = text(read(
        page("text/plain", body.clone()),
        &args(r#"{"url": "u", "start_index": 40, "max_length": 20}"#),
    ));
    assert_eq!(last, "0123456789");
    let error = read(
        page("text/plain", body),
        &args(r#"{"url": "u", "start_index": 50}"#),
    )
    .expect_err("it is the end");
    assert_eq!(
        (error.category, error.message.as_str()),
        (
            Category::InvalidParameters,
            "`start_index` is 50, but the text has 50 characters"
        )
    );
}

#[test]
fn a_page_made_by_scripts_says_so() {
    let shown = text(read(
        page("text/html", "<div id=root></div><script src=a.js></script>"),
        &args(r#"{"url": "u"}"#),
    ));
    assert!(shown.contains("made by scripts"), "{shown}");
}

#[test]
fn xhtml_is_read_as_xml() {
    let body = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>Manual</title><script src=\"a.js\"/></head>\
        <body><p>All of<br/>it.</p><textarea/><p><![CDATA[a < b]]></p></body></html>";
    let shown = text(read(
        page("application/xhtml+xml", body),
        &args(r#"{"url": "u", "whole": true}"#),
    ));
    assert_eq!(shown, "Manual\n\nAll of\nit.\n\na < b");
}

#[test]
fn totals_are_structured() {
    let output = read(
        page("text/html; charset=koi8-r", b"<p>\xfe\xc0".to_vec()),
        &args(r#"{"url": "u", "max_length": 1}"#),
    )
    .expect("it is read");
    let facts: serde_json::Value =
        serde_json::from_str(&output.structured.expect("there is one")).expect("it is JSON");
    assert_eq!(
        (
            facts["total_chars"].as_u64(),
            facts["next_index"].as_u64(),
            facts["charset"].as_str()
        ),
        (Some(2), Some(1), Some("KOI8-R"))
    );
}

#[test]
fn hostile_pages_end_in_bounds() {
    for body in [
        "<div>".repeat(20_000),
        format!("<p title='{}'>text</p>", "x".repeat(100_000)),
        "&amp;".repeat(20_000),
        format!(
            "<p>{}</p>",
            "&nLt;&CounterClockwiseContourIntegral;".repeat(2_500)
        ),
        "a".repeat(1_000_000),
        format!("<p>{}", "word ".repeat(20_000)),
        "<".repeat(100_000),
        "<!--".repeat(25_000),
        "<table>".repeat(20_000),
        format!(
            "<p {}>text",
            (0..2_000).map(|n| format!("a{n} ")).collect::<String>()
        ),
        "<a href=x>link</a>".repeat(5_000),
        "<svg><math>".repeat(20_000),
        "\u{0}".repeat(10),
    ] {
        for ask in [
            r#"{"url": "u"}"#,
            r#"{"url": "u", "format": "markdown", "links": true}"#,
        ] {
            let page = page("text/html", body.replace('\0', " "));
            match read(page, &args(ask)) {
                Ok(_) => {}
                Err(error) => assert_eq!(
                    error.category,
                    Category::PermanentFailure,
                    "{}",
                    error.message
                ),
            }
        }
    }
}

#[test]
fn a_page_that_sends_its_readers_on_says_where_to() {
    let on = |content: &str, base: &str| {
        let body = format!("{base}<meta http-equiv=Refresh content=\"{content}\"><p>Moved.</p>");
        let ask = args(r#"{"url": "u", "whole": true}"#);
        text(read(page("text/html", body), &ask))
    };
    for (content, base, expect) in [
        ("0; url=/next?a=1", "", "https://example.com/next?a=1"),
        ("0;URL='b/'", "", "https://example.com/b/"),
        ("5, c", "", "https://example.com/c"),
        (
            "0; url=d",
            "<base href=\"https://other.example/x/\">",
            "https://other.example/x/d",
        ),
    ] {
        let shown = on(content, base);
        let expect = format!("Moved.\n\n[the page sends its readers on to {expect}]");
        assert_eq!(shown, expect, "{content}");
    }
    for content in ["30", "0; url=javascript:alert(1)", "0; url=", "0; url=/a"] {
        assert_eq!(on(content, ""), "Moved.", "{content}");
    }
}
