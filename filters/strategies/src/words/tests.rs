use proptest::prelude::*;

use super::{Case, Hit, Words};

/// Every place of every word, looked for one by one.
fn plain(words: &[(&str, Case)], text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (word_idx, (word, case)) in words.iter().enumerate() {
        for start in 0..text.len() {
            let end = start + word.len();
            let there = text.as_bytes().get(start..end);
            let is_there = there.is_some_and(|there| match case {
                Case::Any => there.eq_ignore_ascii_case(word.as_bytes()),
                Case::Exact => there == word.as_bytes(),
            });
            if is_there {
                hits.push(Hit {
                    word_idx,
                    start,
                    end,
                });
            }
        }
    }
    sorted(hits)
}

fn sorted(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.start, hit.word_idx));
    hits
}

fn check(words: &[(&str, Case)], text: &str) {
    let made = Words::new(words.iter().copied());
    let mut found = Vec::new();
    made.each(text.as_bytes(), |hit| {
        found.push(hit);
        0
    });
    assert_eq!(made.is_any_in(text), !found.is_empty(), "{words:?}");
    assert_eq!(sorted(found), plain(words, text), "{words:?} in {text:?}");
}

#[test]
fn words_are_found_at_the_edges_and_inside_each_other() {
    let any = |word| (word, Case::Any);
    let exact = |word| (word, Case::Exact);
    check(&[any("error"), any("fail")], "error fail FAILerrorr");
    check(&[exact("sk-"), exact("sk-ant-"), any("AWS")], "sk-ant-aws");
    check(&[any("abcabcabc"), any("abcabc")], "xabcabcabcabcabcx");
    check(
        &[any("错误"), exact("Ошибка"), any("\nE: ")],
        "错误\nE: Ошибка",
    );
    check(&[any("abc")], "ABC");
    check(&[any("abcd")], "abc");
    check(&[exact("[a]"), exact("{a}")], "{a}[a]");
    check(&[], "nothing");
}

/// Those of three bytes are looked for at every second place, with what follows them.
#[test]
fn words_of_three_bytes_are_found_with_what_may_follow_them() {
    let words = [
        ("sk-", Case::Exact, &b"abAB_"[..]),
        ("aws", Case::Any, &b"_s"[..]),
        ("error", Case::Any, &b""[..]),
        ("k-a", Case::Exact, &b"a-"[..]),
    ];
    let made = Words::with_next(words);
    let text = "sk-a AWS_ xsk-A error sk-sk-_ awss sk-a- awsSK-";
    for n in 0..8 {
        let text = "x".repeat(n) + text;
        let mut found = Vec::new();
        made.each(text.as_bytes(), |hit| {
            found.push(hit);
            0
        });
        let is_followed = |hit: &Hit| {
            let (_, case, next) = words[hit.word_idx];
            let behind = text.as_bytes().get(hit.end);
            let is_next = |byte: &u8| match case {
                Case::Any => next
                    .to_ascii_lowercase()
                    .contains(&byte.to_ascii_lowercase()),
                Case::Exact => next.contains(byte),
            };
            next.is_empty() || behind.is_some_and(is_next)
        };
        let plain_words = words.map(|(word, case, _)| (word, case));
        let mut wanted = plain(&plain_words, &text);
        wanted.retain(is_followed);
        found.retain(is_followed);
        assert_eq!(sorted(found), wanted, "{text}");
        assert_eq!(wanted.len(), 9, "{wanted:?}");
    }
}

#[test]
fn words_before_the_place_wanted_are_passed_over() {
    let text = "error\n".repeat(100) + "fatal error";
    let words = Words::new([
        ("error", Case::Any),
        ("atal", Case::Any),
        ("\nerr", Case::Exact),
    ]);
    for (wanted, n) in [
        (0, 201),
        (1, 201),
        (5, 201),
        (6, 200),
        (590, 5),
        (text.len(), 1),
    ] {
        let mut starts = Vec::new();
        words.each(text.as_bytes(), |hit| {
            starts.push(hit.start);
            wanted
        });
        assert_eq!(starts.len(), n, "{wanted}: {starts:?}");
        assert!(starts[1..].iter().all(|start| *start >= wanted));
    }
}

proptest! {
    #[test]
    fn every_word_is_found(
        words in prop::collection::vec(("[abcA:é]{3,9}", any::<bool>()), 1..12),
        n_bytes_min in 3..6_usize,
        text in "[abcABC:é]{0,200}",
    ) {
        let words: Vec<(&str, Case)> = (words.iter())
            .filter(|(word, _)| word.len() >= n_bytes_min)
            .map(|(word, is_exact)| (word.as_str(), if *is_exact { Case::Exact } else { Case::Any }))
            .collect();
        check(&words, &text);
    }
}
