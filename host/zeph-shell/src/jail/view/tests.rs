//! Rules of the full jail.

use zeph_jail::plan::PathAccess::{self, Device, List, Private, Read, Write};

use super::{rule, without_covered};

#[test]
fn a_rule_to_read_what_another_one_lets_be_read_is_left_out() {
    for (given, left) in [
        (
            &[("/etc", Read), ("/etc/ssl", Read), ("/etcetera", Read)] as &[(&str, PathAccess)],
            &["/etc", "/etcetera"] as &[&str],
        ),
        (
            &[("/work", Read), ("/work", Write), ("/work/a", Read)],
            &["/work"],
        ),
        (
            &[("/work", Read), ("/work/a", Write)],
            &["/work", "/work/a"],
        ),
        (
            &[("/tmp", Private), ("/tmp/a", Read), ("/tmp/b", Write)],
            &["/tmp", "/tmp/b"],
        ),
        (
            &[
                ("/", List),
                ("/usr", Read),
                ("/dev", Device),
                ("/dev/a", Read),
            ],
            &["/", "/usr", "/dev", "/dev/a"],
        ),
    ] {
        let rules = given.iter().map(|(path, access)| rule(path, *access));
        let found = without_covered(rules.collect());
        let paths: Vec<&[u8]> = found.iter().map(|rule| rule.path.as_slice()).collect();
        let expect: Vec<&[u8]> = left.iter().map(|path| path.as_bytes()).collect();
        assert_eq!(paths, expect, "{given:?}");
    }
    // That it is the object the host saw is looked at where it stands.
    let mut seen = rule("/etc/ssl", Read);
    seen.object = Some((1, 2));
    let rules = vec![rule("/etc", Read), seen];
    assert_eq!(without_covered(rules.clone()), rules);
}
