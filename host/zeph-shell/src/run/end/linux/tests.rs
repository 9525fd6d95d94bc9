use rustix::process::Pid;

use super::parse_stat;

#[test]
fn a_process_cannot_lie_by_its_name() {
    let pid = Pid::from_raw(7).expect("not zero");
    let rest = "5 6 4 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0";
    for name in ["sh", "a) Z 1 1 1", "x\n) (", "\u{fffd}"] {
        let line = format!("7 ({name}) S {rest}\n");
        let process = parse_stat(pid, line.as_bytes()).expect("it is well formed");
        let seen = (process.parent, process.group, process.session);
        assert_eq!(seen, (5, 6, 4), "{name}");
        assert_eq!(process.started, 987);
        assert!(!process.is_dead);
    }
    assert!(parse_stat(pid, b"7 (sh) S 1 2").is_none());
    assert!(parse_stat(pid, b"").is_none());
}
