use proptest::prelude::*;

use super::Decoder;

fn decode(pieces: &[&[u8]]) -> String {
    let (mut decoder, mut out) = (Decoder::default(), String::new());
    for piece in pieces {
        decoder.push(piece, &mut out);
    }
    decoder.finish(&mut out);
    out
}

#[test]
fn characters_survive_the_borders_of_reads() {
    let check = |pieces: &[&[u8]], expect: &str| assert_eq!(decode(pieces), expect, "{pieces:?}");
    check(&[b"a", b"b"], "ab");
    check(&[b"\xc3", b"\xbc"], "ü");
    check(&[b"x\xf0\x9f", b"\x98", b"\x80y"], "x😀y");
    check(&[b"\xf0\x9f", b"z"], "\u{fffd}z");
    check(&[b"\xf0\x9f"], "\u{fffd}");
    check(&[b"\xff\xc3", b"\xa9\xff"], "\u{fffd}é\u{fffd}");
    check(&[b"\xed\xa0", b"\x80"], "\u{fffd}\u{fffd}\u{fffd}");
    check(&[], "");
}

proptest! {
    #[test]
    fn pieces_read_as_the_whole(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xf0), Just(0x9f), Just(0x98), Just(0xc3)], 0..60),
        size in 1_usize..7,
    ) {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(decode(&pieces), String::from_utf8_lossy(&bytes));
    }
}
