use std::path::Path;

use proptest::prelude::*;

use super::TurnRecord;

const START: &str = "/a\n\0declare -x A=\"1\"\n\0";

fn parse(text: &str) -> Option<TurnRecord> {
    TurnRecord::parse(text.as_bytes())
}

#[test]
fn a_state_at_the_start_alone_is_a_record() {
    let record = parse(START).expect("it is well formed");
    assert_eq!(record.start_directory, Path::new("/a"));
    assert!(record.end.is_none());
    assert!(record.changed().is_empty());
}

#[test]
fn changes_are_what_differs() {
    let record = parse(&format!(
        "{START}3\0/b\n\0declare -ix B=\"a\\\"\\$\\\\\n\"\ndeclare -x C=$'\\303\\274\\E'\ndeclare -x D\n\0npm start \u{1}/bin/sh\n-c \u{1}\0"
    ));
    let record = record.expect("it is well formed");
    let changed = record.changed();
    assert_eq!(changed["A"], None);
    assert_eq!(changed["B"], Some(b"a\"$\\\n".to_vec()));
    assert_eq!(changed["C"], Some("ü\u{1b}".as_bytes().to_vec()));
    assert_eq!(changed.len(), 3);
    let end = record.end.expect("it ended");
    assert_eq!((end.status, end.directory.as_path()), (3, Path::new("/b")));
    assert_eq!(end.left_running, ["npm start", "/bin/sh -c"]);
}

#[test]
fn what_is_not_of_the_shape_is_no_record() {
    let check = |text: &str| assert_eq!(parse(text), None, "{text:?}");
    check("");
    check("\0");
    check("/a\n\0");
    check("a\n\0\0");
    check("/a\0\0");
    check("/a\n\0declare -x A=1\n\0");
    check("/a\n\0declare -x A=\"1\0");
    check("/a\n\0declare -x A=\"1\"; rm\n\0");
    check("/a\n\0declare -x 1A=\"1\"\n\0");
    check("/a\n\0declare -x A B=\"1\"\n\0");
    check("/a\n\0declare -x A$(id)=\"1\"\n\0");
    check("/a\n\0declare -x A=$'\\x41'\n\0");
    check("/a\n\0declare -x A=$'\\777'\n\0");
    check("/a\n\0export A=\"1\"\n\0");
    check(&format!("{START}1\0"));
    check(&format!("{START}1\0/b\n\0"));
    check(&format!("{START}1\0/b\n\0\0"));
    check(&format!("{START}x\0/b\n\0\0\0"));
    check(&format!("{START}1\0/b\n\0\0\0x\0"));
    check(&format!("{START}1\0/b\n\0\0\0rest"));
    check(&format!("/{}\n\0\0", "a".repeat(5000)));
    check(&format!("/a\n\0declare -x {}=\"\"\n\0", "A".repeat(300)));
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(bytes in proptest::collection::vec(
        prop_oneof![any::<u8>(), Just(0), Just(b'\n'), Just(b'"'), Just(b'\\'), Just(b'$'), Just(b'\''), Just(b'=')], 0..80,
    )) {
        drop(TurnRecord::parse(&bytes));
        drop(TurnRecord::parse(&[b"/a\n\0declare -x A=", bytes.as_slice(), b"\n\0"].concat()));
        drop(TurnRecord::parse(&[b"/a\n\0declare -ax A=(", bytes.as_slice(), b"\n\0"].concat()));
    }
}
