use serde_json::{Value, json};
use url::Url;
use zeph_plugin::{Category, Content, ToolError};

use super::{Args, read, selector};
use crate::media::MediaType;
use crate::page::Page;

const PAGE: &str = "<!doctype html><title>Prices</title><h1>Prices &amp; more</h1><ul id=list>\
    <li class=item><a href='/a?x=1&amp;y=2' title=''>Apples</a> <b>2.50</b></li>\
    <li class=item><a href='/b'>Bread</a><!-- cheap --><i hidden>SECRET</i></li>\
    <li class=item style='display:none'><a>SECRET</a></li></ul>\
    <script type='application/ld+json'>{\"a\":1}</script><p>one</p><p>two\u{200b}</p>";

fn scraped(page: &str, arguments: Value) -> Result<(String, Value), ToolError> {
    let url = Url::parse("https://example.com/").expect("it is valid");
    let page = Page::of(
        url,
        MediaType::parse("text/html; charset=utf-8"),
        page.as_bytes().to_vec(),
    )?;
    let args: Args = serde_json::from_value(arguments).expect("they are valid");
    let output = read(page, &args)?;
    let Some(Content::Text(text)) = output.content.first() else {
        panic!("a text comes first")
    };
    let structured =
        serde_json::from_str(&output.structured.expect("there is one")).expect("it is JSON");
    Ok((text.clone(), structured))
}

fn matches(select: &str, extract: &str) -> Value {
    let (_, structured) = scraped(
        PAGE,
        json!({"url": "u", "select": select, "extract": extract}),
    )
    .expect("something matches");
    structured["matches"].clone()
}

#[test]
fn elements_are_returned_as_asked() {
    for (select, extract, expected) in [
        ("h1", "text", json!(["Prices & more"])),
        ("li.item", "text", json!(["- Apples 2.50", "- Bread"])),
        (
            "li:nth-child(2) > a",
            "html",
            json!(["<a href=\"/b\">Bread</a>"]),
        ),
        ("#list a", "attr:href", json!(["/a?x=1&y=2", "/b"])),
        ("a[title]", "attr:TITLE", json!([""])),
        ("title, p", "text", json!(["Prices", "one", "two"])),
        (
            "script[type='application/ld+json']",
            "text",
            json!(["{\"a\":1}"]),
        ),
        ("li:has(b)", "text", json!(["- Apples 2.50"])),
        (
            "li:not(:first-child):not([style])",
            "html",
            json!(["<li class=\"item\"><a href=\"/b\">Bread</a></li>"]),
        ),
    ] {
        assert_eq!(matches(select, extract), expected, "{select} {extract}");
    }
}

#[test]
fn all_are_counted() {
    let (text, structured) =
        scraped(PAGE, json!({"url": "u", "select": "p", "limit": 1})).expect("it matches");
    assert_eq!(text, "one\n\n[1 of 2 matches; `limit` shows more]");
    assert_eq!(
        (&structured["total"], &structured["hidden"]),
        (&json!(2), &json!(0))
    );
    let (text, structured) =
        scraped(PAGE, json!({"url": "u", "select": "li"})).expect("it matches");
    assert_eq!(
        text,
        "- Apples 2.50\n- Bread\n\n[1 further match is hidden on the page and left out]"
    );
    assert_eq!(structured["hidden"], json!(1));
}

#[test]
fn texts_hidden_in_what_matches_count_as_hidden() {
    let page = "<table><tr style='color:white'><th>one<th><b style='color:red'>two</b><th></table>";
    let (text, structured) =
        scraped(page, json!({"url": "u", "select": "th"})).expect("it matches");
    assert_eq!(
        (&structured["matches"], &structured["hidden"]),
        (&json!(["two", ""]), &json!(1))
    );
    assert!(text.contains("1 further match is hidden"), "{text}");
}

#[test]
fn rows_have_a_tab_for_each_column() {
    let page = "<table><tr><th rowspan=2>a<th>b<tr><td>1<tr><td><td>2<tr></table>";
    let matches = |extract: &str| {
        let arguments = json!({"url": "u", "select": "tr", "extract": extract});
        scraped(page, arguments).expect("it matches").1["matches"].clone()
    };
    assert_eq!(matches("text"), json!(["a\tb", "\t1", "\t2", ""]));
    assert_eq!(matches("html")[1], json!("<tr><td>1</td></tr>"));
}

#[test]
fn nothing_found_says_what() {
    for (select, extract, part) in [
        ("h7", "text", "no element matches `h7`"),
        (
            "p",
            "attr:href",
            "2 elements match `p`, but none has an attribute `href`",
        ),
        (
            "i",
            "text",
            "1 element matches `i`, but the page hides what matches",
        ),
    ] {
        let error = scraped(
            PAGE,
            json!({"url": "u", "select": select, "extract": extract}),
        )
        .expect_err("nothing is found");
        assert_eq!(error.category, Category::PermanentFailure);
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[test]
fn a_wrong_selector_says_where() {
    for (select, reason, place) in [
        ("div > > p", "missing", 7),
        ("div >", "missing", 6),
        ("p..x", "a class without a name", 3),
        // What is wrong inside of brackets is told at their end.
        ("a[=x]", "an attribute without a name", 6),
        ("p:hover", "", 2),
        ("p::before", "", 2),
        ("h1, h2 {", "", 8),
        ("123", "", 1),
        ("ns|p", "", 3),
    ] {
        let error = selector::parse(select).expect_err("it is wrong");
        assert_eq!(error.category, Category::InvalidParameters);
        let message = error.message;
        let found = message.rsplit_once("near character ");
        let found: Option<usize> = found.and_then(|(_, place)| place.parse().ok());
        let is_there = |found| found + 1 >= place && found <= select.len() + 1;
        assert!(found.is_some_and(is_there), "{select:?}: {message}");
        assert!(message.contains(reason), "{select:?}: {message}");
    }
    for select in ["", "a[href=", &format!("p{}", ", p".repeat(5_000))] {
        assert!(selector::parse(select).is_err(), "{select:?}");
    }
    let error = selector::parse("h1,\nh2 {").expect_err("it is wrong");
    assert!(
        error.message.contains("near line 2, character"),
        "{}",
        error.message
    );
}

#[test]
fn a_wrong_extract_says_what_there_is() {
    for extract in ["", "attr", "attr:", "inner", "Text"] {
        let error = scraped(PAGE, json!({"url": "u", "select": "p", "extract": extract}))
            .expect_err("it is wrong");
        assert_eq!(error.category, Category::InvalidParameters);
        assert!(error.message.contains("`attr:NAME`"), "{}", error.message);
    }
}

#[test]
fn what_is_no_page_is_refused() {
    let url = Url::parse("https://example.com/x.json").expect("it is valid");
    let page =
        Page::of(url, MediaType::parse("application/json"), b"{}".to_vec()).expect("it is text");
    let args: Args =
        serde_json::from_value(json!({"url": "u", "select": "p"})).expect("they are valid");
    let error = read(page, &args).expect_err("it is no page");
    assert_eq!(
        error.message,
        "`https://example.com/x.json` is application/json, not HTML; `fetch` returns it as it is"
    );
}
