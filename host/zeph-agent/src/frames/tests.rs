use bytes::Bytes;
use proptest::prelude::*;

use super::{Frames, Framing};

fn read(framing: Framing, pieces: &[&[u8]]) -> Vec<String> {
    let mut frames = Frames::new(framing);
    let mut found = Vec::new();
    for piece in pieces {
        frames.push(&Bytes::copy_from_slice(piece));
        while let Some(frame) = frames.next().unwrap() {
            found.push(frame);
        }
    }
    found.extend(frames.last().unwrap());
    found
}

const EVENTS: &str = "\u{feff}event: a\r\ndata: {\"x\":\r\ndata:  1}\r\n\r\n: ping\n\nid: 7\nwhat\nodd: field\ndata:[DONE]\n\ndata: cut";

#[test]
fn events_are_their_data_and_an_unfinished_one_is_none() {
    let frames = read(Framing::Events, &[EVENTS.as_bytes()]);
    assert_eq!(frames, ["{\"x\":\n 1}", "[DONE]"]);
}

#[test]
fn lines_and_documents() {
    let lines = read(
        Framing::Lines,
        &[b"{\"a\":1}\r\n\n{\"b\"", b":2}\n{\"c\":3}"],
    );
    assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    let whole = read(Framing::Whole, &[b"{\n\"a\"", b":1}\n"]);
    assert_eq!(whole, ["{\n\"a\":1}\n"]);
    assert!(read(Framing::Whole, &[b" \n"]).is_empty());
}

#[test]
fn what_is_not_utf_8_is_an_error() {
    let mut frames = Frames::new(Framing::Events);
    frames.push(&Bytes::from_static(b"data: \xff\n\n"));
    frames.next().unwrap_err();
}

proptest! {
    /// Where the network cuts an answer into pieces, within a character even, changes nothing.
    #[test]
    fn pieces_do_not_matter(cuts in prop::collection::vec(0..EVENTS.len(), 0..6)) {
        let mut cuts = cuts;
        cuts.extend([0, EVENTS.len()]);
        cuts.sort_unstable();
        let bytes = EVENTS.as_bytes();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(Framing::Events, &pieces), read(Framing::Events, &[bytes]));
    }
}
