use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::{RedactionMark, Redactor, is_hideable};
use crate::execution::SecretValue;
use crate::output::{Content, RawOutput, ResourceBody};

const VALUE: &str = "s3cr3t-v/+alue";

fn redactor(values: &[&str]) -> Redactor {
    let secrets: Vec<SecretValue> = values
        .iter()
        .enumerate()
        .map(|(idx, value)| SecretValue {
            name: format!("S{idx}"),
            value: (*value).to_owned(),
        })
        .collect();
    Redactor::new(&secrets)
}

fn in_pieces(redactor: &Redactor, mark: RedactionMark, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream(mark);
    let (mut given, mut rest) = (Vec::new(), text);
    for cut in cuts {
        let (piece, after) = rest.split_at(cut % (rest.len() + 1));
        given.extend(stream.push(piece));
        rest = after;
    }
    given.extend(stream.push(rest));
    given.extend(stream.finish());
    given
}

#[test]
fn a_value_is_found_in_every_form_that_programs_give_it() {
    let redactor = redactor(&[VALUE]);
    let folded = |text: &str, end: &str| {
        let lines: Vec<&str> = (0..text.len())
            .step_by(5)
            .map(|at| &text[at..text.len().min(at + 5)])
            .collect();
        lines.join(end)
    };
    let encoded = STANDARD.encode(format!("user:{VALUE}"));
    for text in [
        VALUE.to_owned(),
        "s3cr3t-v%2F%2Balue".to_owned(),
        "s3cr3t-v%2f%2balue".to_owned(),
        "%733cr3t%2Dv%2f+alue".to_owned(),
        "s3cr3t-v%252F%252Balue".to_owned(),
        r"s3cr3t-v\/+alue".to_owned(),
        r"s3cr3t-v\u002f\u002Balue".to_owned(),
        r"s3cr3t\x2dv/+alue".to_owned(),
        r"s3cr3t-v\\/+alue".to_owned(),
        "s3cr3t-v&#47;&#x2B;alue".to_owned(),
        "7333637233742d762f2b616c7565".to_owned(),
        "7333637233742D762F2B616C7565".to_owned(),
        encoded.clone(),
        URL_SAFE_NO_PAD.encode(format!("{{\"token\":\"{VALUE}\"}}")),
        encoded.replace('=', "%3D"),
        folded(&encoded, "\n"),
        folded(&encoded, "\r\n  "),
        folded(&encoded, "\\n"),
        folded(VALUE, "\n"),
        folded(VALUE, "\u{1b}[0m\u{1b}[1;31m"),
        folded(VALUE, "\u{9b}31m"),
        folded(VALUE, "\u{1b}]8;;https://x.example/y\u{1b}\\"),
        folded(VALUE, "\u{1b}]8;;\u{7}\u{1b}(B"),
        folded(VALUE, "\u{1b}[2K\u{0}"),
        folded(VALUE, "é\u{8}"),
        folded(VALUE, "\\u001b[0m"),
        folded(&encoded, "\u{1b}[0m\r\n\u{1b}[1m"),
        VALUE.chars().map(|c| format!("{c}\u{0}")).collect(),
        VALUE.chars().map(|c| format!("{c}\u{8}{c}")).collect(),
    ] {
        assert_eq!(redactor.find(text.as_bytes()), Some("S0"), "{text}");
        let clean = redactor.text(&text).into_owned();
        assert_eq!(redactor.find(clean.as_bytes()), None, "{text} → {clean}");
        assert!(clean.contains("[redacted: S0]"), "{text} → {clean}");
    }
}

/// What the clean-up of outputs leaves of a text with colours is found in the text itself.
#[test]
fn colours_around_a_value_stay() {
    let redactor = redactor(&[VALUE]);
    for (text, clean) in [
        (
            "\u{1b}[31ms3cr3t-v/+alue\u{1b}[0m.",
            "\u{1b}[31m[redacted: S0]\u{1b}[0m.",
        ),
        (
            "\u{1b}[31ms3cr\u{1b}[0m3t-v/+alue\u{1b}[0m\n\u{1b}[1mx",
            "\u{1b}[31m[redacted: S0]\u{1b}[0m\n\u{1b}[1mx",
        ),
        ("\u{1b}[1ms3c\u{1b}[0", "\u{1b}[1ms3c\u{1b}[0"),
        (
            "12 £\u{8}\u{8}\u{8}\u{8}\u{1b}]0;x",
            "12 £\u{8}\u{8}\u{8}\u{8}\u{1b}]0;x",
        ),
    ] {
        assert_eq!(redactor.text(text), clean);
    }
}

#[test]
fn a_credential_is_found_without_its_scheme() {
    let basic = format!("Basic {}", STANDARD.encode("robot:correct-horse"));
    let redactor = redactor(&["Bearer abcdef-0123", &basic]);
    for (text, clean) in [
        ("is abcdef-0123.", "is [redacted: S0]."),
        ("Bearer abcdef-0123", "[redacted: S0]"),
        ("Bearer+abcdef-0123", "[redacted: S0]"),
        ("robot:correct-horse", "[redacted: S1]"),
        ("pw correct-horse", "pw [redacted: S1]"),
    ] {
        assert_eq!(redactor.text(text), clean);
    }
}

/// A key in PEM, of `n` lines.
fn key(n: usize) -> String {
    let byte = |at: usize| (at * at * 13 + at * 37 + at / 256).to_le_bytes()[0];
    let lines = (0..n)
        .map(|line| STANDARD.encode((0..48).map(|at| byte(line * 48 + at)).collect::<Vec<_>>()));
    let lines: Vec<String> = lines.collect();
    let body = lines.join("\n");
    format!("-----BEGIN PRIVATE KEY-----\n{body}\nQm9keQ==\n-----END PRIVATE KEY-----\n")
}

#[test]
fn a_value_of_several_lines_is_found_in_whatever_lines_it_is_written() {
    let key = key(26);
    let line = key.lines().nth(3).unwrap();
    let account = serde_json::to_string_pretty(&json!({
        "type": "service_account",
        "private_key": key,
        "token_uri": "https://oauth2.example.com/v1/token",
    }))
    .unwrap();
    let of_variable = key.trim_end().replace('\n', "\\n");
    for value in [&key, &key.replace('\n', "\r\n"), &account, &of_variable] {
        let redactor = redactor(&[value]);
        let before = |sign: &str| {
            let lines = key.lines().map(|line| format!("{sign}{line}\n"));
            lines.collect::<String>()
        };
        for text in [
            key.clone(),
            key.replace('\n', "\r\n"),
            key.replace('\n', "\\n"),
            key.replace('\n', " "),
            key.replace('\n', ""),
            before("    "),
            before("+"),
            before("12: "),
            format!("{line}\n"),
            STANDARD.encode(before("  ")),
        ] {
            let clean = redactor.text(&text);
            assert!(!clean.contains(line), "{text} → {clean}");
            assert_eq!(redactor.find(clean.as_bytes()), None, "{text} → {clean}");
            assert!(clean.contains("[redacted: S0]"), "{text} → {clean}");
        }
        for other in [
            "\"type\": \"service_account\",\n",
            "https://oauth2.example.com/v1/token",
            "-----BEGIN PRIVATE KEY-----\n",
        ] {
            assert_eq!(redactor.text(other), other);
        }
    }
    let redactor = redactor(&[
        "hunter2-x\n",
        "apiVersion: v1\nuser: me\npassword: hunter3-x3",
    ]);
    assert_eq!(redactor.text("is hunter2-x."), "is [redacted: S0].");
    assert_eq!(
        redactor.text("apiVersion: v1\n  password: hunter3-x3\n"),
        "apiVersion: v1\n  [redacted: S1]\n"
    );
}

/// However many texts a key of many lines is looked for as.
#[test]
fn what_a_key_of_many_lines_holds_back_is_bounded() {
    let redactor = redactor(&[&key(300)]);
    let mut stream = redactor.stream(RedactionMark::Name);
    let mut given = Vec::new();
    for _ in 0..300 {
        given.extend(stream.push(b"a line of a log\n"));
        assert!(stream.n_held() < 100, "{}", stream.n_held());
    }
    given.extend(stream.finish());
    assert_eq!(given, b"a line of a log\n".repeat(300));
}

#[test]
fn other_text_stays_as_it_is() {
    let redactor = redactor(&[VALUE, "1", "--------", "aaaaaaaaaaaa"]);
    for text in [
        "",
        "1 -------- aaaaaaaaaaaa",
        "s3cr3t-v/+alu",
        "100% \\ &amp; \n\n\\u00",
        "%",
        "\\",
        "&",
        "\r",
    ] {
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)), "{text}");
    }
    assert!(Redactor::new(&[]).is_empty() && !is_hideable("1234567"));
}

#[test]
fn a_value_that_is_a_part_of_its_mark_is_not_left_in_it() {
    let redactor = redactor(&["redacted"]);
    assert_eq!(redactor.text("it was redacted"), "it was ********");
}

#[test]
fn every_part_of_an_output_is_looked_at() {
    let redactor = redactor(&[VALUE, "1234567890"]);
    let mut raw = RawOutput {
        content: vec![
            Content::Text(format!("a {VALUE}{VALUE}")),
            Content::Resource {
                uri: format!("https://h.example/{VALUE}"),
                media_type: None,
                body: ResourceBody::Text(VALUE.to_owned()),
            },
            Content::Resource {
                uri: String::new(),
                media_type: None,
                body: ResourceBody::Bytes(format!("\0{VALUE}\0").into_bytes()),
            },
            Content::Link {
                uri: VALUE.to_owned(),
                name: VALUE.to_owned(),
                media_type: None,
                description: Some(VALUE.to_owned()),
            },
        ],
        structured: Some(json!({ VALUE: [1_234_567_890, { "deep": VALUE }] })),
        locations: Vec::new(),
    };
    redactor.clean_output(&mut raw);
    let left = format!("{raw:?}");
    assert!(
        !left.contains(VALUE) && !left.contains("1234567890"),
        "{left}"
    );
    assert_eq!(
        raw.content[0],
        Content::Text("a [redacted: S0][redacted: S0]".to_owned())
    );
    let Content::Resource {
        body: ResourceBody::Bytes(data),
        ..
    } = &raw.content[2]
    else {
        panic!("{left}");
    };
    assert_eq!(data.len(), VALUE.len() + 2);
}

#[test]
fn the_head_of_a_text_ends_in_no_value() {
    let redactor = redactor(&[VALUE]);
    let long = format!("é{VALUE}").repeat(100_000);
    assert_eq!(redactor.head(&long, 9), "é[redacte");
    assert_eq!(redactor.head("é", 9), "é");
    let cut = format!("{}{VALUE}", "x".repeat(super::CHUNK_BYTES - 3));
    assert!(!redactor.head(&cut, super::CHUNK_BYTES).contains("s3c"));
}

#[test]
fn what_begins_no_value_is_given_out_at_once() {
    let redactor = redactor(&[VALUE]);
    let mut stream = redactor.stream(RedactionMark::Name);
    for line in ["step 1\n", "step 2\r\n", "\n", "  at 100 ~\n"] {
        assert_eq!(stream.push(line.as_bytes()), line.as_bytes());
    }
    assert_eq!(
        redactor.text(&format!("{VALUE}\n{VALUE}\r\n  end")),
        "[redacted: S0]\n[redacted: S0]\r\n  end"
    );
    assert_eq!(stream.push(b"is s3cr3t-\n"), b"is ");
    assert_eq!(stream.push(b" v/+alue\n"), b"[redacted: S0]\n");
}

#[test]
fn what_is_held_back_is_bounded() {
    let redactor = redactor(&["abcabcabcabc"]);
    let mut stream = redactor.stream(RedactionMark::Length);
    // Each piece ends one secret and begins the next.
    for _ in 0..1_000 {
        stream.push(b"abcabcabc");
        assert!(stream.n_held() < 1_000, "{}", stream.n_held());
    }
    let mut stream = redactor.stream(RedactionMark::Length);
    stream.push(b"abcabc");
    for endless in [&b"\n"[..], b"\n ", b"%", b"\\", b"&#0000"] {
        for _ in 0..1_000 {
            stream.push(endless);
            assert!(stream.n_held() < 2_000, "{}", stream.n_held());
        }
    }
    for endless in [
        &b"\x1b[0m"[..],
        b"\x1b]8;;a",
        b"\0",
        b"x\x08",
        b"\x1b[1",
        b"\xc2",
    ] {
        stream.push(b"abcabc");
        for _ in 0..4_000 {
            stream.push(endless);
            assert!(stream.n_held() < 6_000, "{}", stream.n_held());
        }
        stream.finish();
    }
}

/// A way to escape the characters that `picked` picks.
fn escaped(text: &str, layer: u8, picked: &[bool]) -> String {
    let mut picked = picked.iter().cycle();
    let mut escaped = String::new();
    for character in text.chars() {
        let pick = *picked.next().unwrap_or(&false);
        let code = u32::from(character);
        match layer {
            0 if pick || character == '%' => {
                let mut space = [0; 4];
                for byte in character.encode_utf8(&mut space).bytes() {
                    escaped.push_str(&match code % 2 {
                        0 => format!("%{byte:02X}"),
                        _ => format!("%{byte:02x}"),
                    });
                }
            }
            1 if pick || matches!(character, '"' | '\\') => {
                let mut space = [0; 2];
                for unit in character.encode_utf16(&mut space) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            2 if pick || character == '&' => escaped.push_str(&format!("&#{code};")),
            // Not before the value, where a colour stays, and not inside of another one.
            3 if pick && !escaped.is_empty() && !text.contains('\u{1b}') => {
                escaped.push_str(&format!("\u{1b}[{};1m{character}", code % 90));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn secret() -> impl Strategy<Value = String> {
    "[!-~é€😀]{4}[!-~]{6,40}".prop_filter("can be hidden", |value| is_hideable(value))
}

proptest! {
    #[test]
    fn no_escape_and_no_border_of_pieces_hides_a_value(
        value in secret(),
        is_hex: bool,
        layers in prop::collection::vec((0..4_u8, prop::collection::vec(any::<bool>(), 1..9)), 0..=2),
        cuts in prop::collection::vec(0..60_usize, 0..9),
    ) {
        let redactor = redactor(&[&value]);
        let mut inner = match is_hex {
            true => value.bytes().map(|byte| format!("{byte:02x}")).collect(),
            false => value,
        };
        for (layer, picked) in &layers {
            inner = escaped(&inner, *layer, picked);
        }
        let text = format!("\u{1}<\u{2}{inner}\u{3}>\u{4}");
        let given = in_pieces(&redactor, RedactionMark::Name, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8(given).unwrap(), "\u{1}<\u{2}[redacted: S0]\u{3}>\u{4}");
        let given = in_pieces(&redactor, RedactionMark::Length, text.as_bytes(), &cuts);
        prop_assert_eq!(given.len(), text.len());
    }

    #[test]
    fn no_place_in_base64_hides_a_value(
        value in secret(),
        before in "[a-z]{0,7}",
        after in "[a-z]{0,7}",
        is_url: bool,
        n_columns in 4..80_usize,
        cuts in prop::collection::vec(0..60_usize, 0..9),
    ) {
        let redactor = redactor(&[&value]);
        let whole = format!("{before}{value}{after}");
        let encoded = match is_url {
            true => URL_SAFE_NO_PAD.encode(whole),
            false => STANDARD.encode(whole),
        };
        let lines: Vec<&str> = (0..encoded.len())
            .step_by(n_columns)
            .map(|at| &encoded[at..encoded.len().min(at + n_columns)])
            .collect();
        let given = in_pieces(&redactor, RedactionMark::Name, lines.join("\n").as_bytes(), &cuts);
        let given = String::from_utf8(given).unwrap();
        prop_assert!(given.contains("[redacted: S0]"), "{}", given);
        let left = given.replace("[redacted: S0]", "").replace(['\n', '='], "");
        // A character at each end depends on more than the value.
        prop_assert!(left.len() <= (before.len() + after.len()) * 4 / 3 + 4, "{}", given);
    }

    #[test]
    fn text_without_a_value_passes_in_whatever_pieces(
        text in r#"([a-z%\\&;#u0-9 \n\r"]|é|%41|\\u0041|&amp;|\x1b\[1m|\x1b|\x00){0,200}"#,
        cuts in prop::collection::vec(0..60_usize, 0..9),
    ) {
        let redactor = redactor(&[VALUE, "Bearer uu00%41&amp;"]);
        prop_assume!(redactor.find(text.as_bytes()).is_none());
        let given = in_pieces(&redactor, RedactionMark::Name, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8(given).unwrap(), text);
    }
}
