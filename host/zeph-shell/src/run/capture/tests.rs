use proptest::prelude::*;

use super::StreamKind::{Stderr, Stdout};
use super::{Capture, CapturedOutput, StreamKind};

fn captured(bytes_max: usize, pieces: &[(StreamKind, &[u8])]) -> CapturedOutput {
    let mut capture = Capture::new(bytes_max);
    for (stream, bytes) in pieces {
        capture.push(*stream, bytes);
    }
    capture.finish()
}

#[test]
fn streams_are_apart_and_in_order() {
    let got = captured(
        1000,
        &[(Stdout, b"a\n"), (Stderr, b"b\n"), (Stdout, b"c\n")],
    );
    assert_eq!(got.stdout, "a\nc\n");
    assert_eq!(got.stderr, "b\n");
    assert_eq!(got.text, "a\nb\nc\n");
    assert_eq!(got.n_cut, 0);
}

#[test]
fn a_character_is_whole_though_the_other_stream_came_between() {
    let got = captured(
        1000,
        &[(Stdout, b"x\xc3"), (Stderr, b"!"), (Stdout, b"\xbc")],
    );
    assert_eq!(got.stdout, "xü");
    assert_eq!(got.text, "x!ü");
}

#[test]
fn the_middle_of_a_flood_is_left_out_and_counted() {
    let long: Vec<u8> = (0..10_000_u32)
        .flat_map(|n| format!("{n:07}\n").into_bytes())
        .collect();
    let got = captured(8192, &[(Stdout, &long)]);
    assert!(got.stdout.starts_with("0000000\n0000001\n"));
    assert!(got.stdout.ends_with("0009999\n"));
    let (head, tail) = got.stdout.split_once("[… ").expect("a line says so");
    let (n_cut, tail) = tail.split_once(" bytes omitted …]\n").expect("it counts");
    assert_eq!(n_cut, got.n_cut.to_string());
    // A line end may stand before the notice that was not there.
    let n_kept = head.len() + tail.len();
    let n_missing = long.len() - usize::try_from(got.n_cut).expect("small");
    assert!(n_kept == n_missing || n_kept == n_missing + 1);
    assert_eq!(got.stderr, "");
}

#[test]
fn what_is_kept_of_too_much_is_not_too_much() {
    for n_bytes in [8191, 8192, 8193, 9000, 100_000] {
        let whole = "x".repeat(n_bytes);
        let got = captured(8192, &[(Stdout, whole.as_bytes())]);
        // A mark of the stream counts too.
        let is_whole = n_bytes <= 8192 - 2 * 16;
        assert_eq!(got.text == whole, is_whole, "{n_bytes}");
        assert!(got.text.len() <= 8192, "{n_bytes}: {}", got.text.len());
    }
}

#[test]
fn a_tail_begins_with_a_whole_character() {
    let long = "ü".repeat(10_000);
    for bytes_max in 1000..1010 {
        let got = captured(bytes_max, &[(Stdout, long.as_bytes())]);
        let (_, tail) = got.text.split_once("…]\n").expect("it is cut");
        assert!(tail.chars().all(|character| character == 'ü'), "{tail}");
    }
}

#[test]
fn memory_is_bounded_when_streams_take_turns_byte_by_byte() {
    let mut capture = Capture::new(64 * 1024);
    for idx in 0..400_000 {
        capture.push(if idx % 2 == 0 { Stdout } else { Stderr }, b"x");
    }
    assert!(capture.head.cost() + capture.tail.cost() <= 64 * 1024 + 64);
    let got = capture.finish();
    assert!(got.n_cut > 380_000);
}

#[test]
fn the_buffers_hold_no_more_than_they_may() {
    let mut capture = Capture::new(16 << 20);
    let piece = vec![b'x'; 256 * 1024];
    for _ in 0..300 {
        capture.push(Stdout, &piece);
    }
    let n_held = capture.head.bytes.capacity() + capture.tail.bytes.capacity();
    assert!(n_held < 17 << 20, "{n_held}");
    let got = capture.finish();
    assert!(got.text.capacity() + got.stdout.capacity() <= (32 << 20) + 1000);
}

proptest! {
    #[test]
    fn nothing_is_lost_below_the_limit_and_all_is_counted_above(
        pieces in proptest::collection::vec((any::<bool>(), proptest::collection::vec(b'a'..=b'z', 0..40)), 0..40),
        bytes_max in 0_usize..3000,
    ) {
        let pieces: Vec<(StreamKind, &[u8])> = pieces
            .iter()
            .map(|(is_out, bytes)| (if *is_out { Stdout } else { Stderr }, bytes.as_slice()))
            .collect();
        let all: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let got = captured(bytes_max, &pieces);
        if got.n_cut == 0 {
            prop_assert_eq!(got.text.as_bytes(), all.as_slice());
            prop_assert_eq!(got.stdout.len() + got.stderr.len(), all.len());
        } else {
            prop_assert!(all.len() + 40 * 16 > bytes_max / 2);
            let n_letters = got.text.chars().filter(char::is_ascii_lowercase).count();
            // The notice has letters of its own: `bytes omitted`.
            let n_notice = "bytesleftout".len();
            prop_assert_eq!(n_letters - n_notice + usize::try_from(got.n_cut).expect("small"), all.len());
        }
    }
}
