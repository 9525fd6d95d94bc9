use encoding_rs::Encoding;

use super::{Decoded, decode};
use crate::media::Kind;

fn html(bytes: &[u8], label: Option<&str>) -> Decoded {
    decode(bytes.to_vec(), label, Kind::Html)
}

fn encoded(text: &str, label: &str) -> Vec<u8> {
    let encoding = Encoding::for_label(label.as_bytes()).expect("a label of the standard");
    let (bytes, _, is_lossy) = encoding.encode(text);
    assert!(!is_lossy, "`{text}` cannot be written in {label}");
    bytes.into_owned()
}

/// A charset and a text that needs it.
const ZOO: [(&str, &str); 18] = [
    ("windows-1252", "naïve “café” – 5 €"),
    ("iso-8859-1", "déjà vu für Größe"),
    ("iso-8859-2", "Žluťoučký kůň, łódź"),
    ("iso-8859-5", "Съешь ещё этих булок"),
    ("iso-8859-7", "Ξεσκεπάζω την ψυχοφθόρα"),
    ("iso-8859-8", "דג סקרן שט בים"),
    ("iso-8859-9", "pijamalı hasta yağız şoföre"),
    ("iso-8859-15", "œuvre à 5 €"),
    ("windows-1251", "Широкая электрификация южных"),
    ("windows-1250", "Příliš žluťoučký"),
    ("windows-1256", "نص حكيم له سر"),
    ("koi8-r", "Чушь: гид вёз"),
    ("shift_jis", "いろはにほへと ちりぬるを"),
    ("euc-jp", "色は匂へど 散りぬるを"),
    ("gbk", "我能吞下玻璃而不伤身体"),
    ("gb18030", "天地玄黄 宇宙洪荒"),
    ("big5", "我能吞下玻璃而不傷身體"),
    ("euc-kr", "키스의 고유조건은 입술끼리"),
];

#[test]
fn a_header_names_the_charset() {
    for (label, text) in ZOO {
        let page = format!("<p>{text}</p>");
        let decoded = html(&encoded(&page, label), Some(label));
        assert_eq!(decoded.text, page, "{label}");
    }
}

#[test]
fn a_page_names_its_charset() {
    for (label, text) in ZOO {
        for meta in [
            format!("<meta charset={label}>"),
            format!("<META CHARSET='{label}' />"),
            format!("<meta http-equiv=\"Content-Type\" content=\"text/html; charset={label}\">"),
            format!("<meta content='text/html;charset={label}' http-equiv='content-type'>"),
            format!(
                "<!-- <meta charset=utf-16> --><meta name=a content=b><meta charset=\"{label}\">"
            ),
        ] {
            let page = format!("<html><head>{meta}<title>{text}</title>");
            let decoded = html(&encoded(&page, label), None);
            assert_eq!(decoded.text, page, "{label}: {meta}");
        }
    }
}

#[test]
fn a_byte_order_mark_counts_more_than_labels() {
    let text = "<meta charset=shift_jis><p>Größe 漢字";
    for (mark, bytes) in [
        (
            &b"\xff\xfe"[..],
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
        ),
        (
            b"\xfe\xff",
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ),
        (b"\xef\xbb\xbf", text.as_bytes().to_vec()),
    ] {
        let decoded = html(&[mark, &bytes].concat(), Some("iso-8859-1"));
        assert_eq!(decoded.text, text);
    }
}

#[test]
fn utf_16_without_a_mark_needs_a_header() {
    let bytes: Vec<u8> = "<p>plain"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(html(&bytes, Some("utf-16le")).text, "<p>plain");
}

#[test]
fn a_wrong_label_is_noticed() {
    for label in [
        "iso-8859-1",
        "windows-1252",
        "us-ascii",
        "no-such-charset",
        "utf-16-or-so",
    ] {
        assert_eq!(
            html("<p>Größe ✓".as_bytes(), Some(label)).text,
            "<p>Größe ✓",
            "{label}"
        );
    }
    assert_eq!(
        html(b"<p>caf\xe9", Some("utf-8")).text,
        "<p>café",
        "no letter of it is UTF-8"
    );
    assert_eq!(html(b"<p>caf\xe9", None).text, "<p>café");
    let page = encoded("<meta charset=koi8-r><p>Чушь", "koi8-r");
    assert_eq!(
        html(&page, Some("utf-8")).text,
        "<meta charset=koi8-r><p>Чушь",
        "the page knows better"
    );
}

#[test]
fn damaged_utf_8_stays_utf_8() {
    let mut bytes = "<p>Größe größer am größten".as_bytes().to_vec();
    bytes.push(0xc3);
    assert_eq!(
        html(&bytes, Some("utf-8")).text,
        "<p>Größe größer am größten\u{fffd}"
    );
    assert_eq!(html(&bytes, None).charset, "UTF-8");
}

#[test]
fn other_text_is_not_searched_for_labels() {
    let decoded = decode(
        b"{\"a\":\"<meta charset=koi8-r> \xc3\xa9\"}".to_vec(),
        None,
        Kind::Json,
    );
    assert_eq!(decoded.text, "{\"a\":\"<meta charset=koi8-r> é\"}");
    let xml = encoded(
        "<?xml version='1.0' encoding='iso-8859-2'?><a>łódź</a>",
        "iso-8859-2",
    );
    assert!(decode(xml, None, Kind::Text).text.ends_with("<a>łódź</a>"));
}
