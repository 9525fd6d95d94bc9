use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Judge, Sight, open};

/// The kernel gives up a path with `..` in it when anything on the machine is renamed in the same moment, as other programs do all the time.
#[test]
fn what_is_renamed_elsewhere_meanwhile_changes_no_judgement() {
    const RENAMES: usize = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let (work, busy) = (dir.path().join("work"), dir.path().join("busy"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&busy).unwrap();
    fs::write(busy.join("a"), "").unwrap();
    let judge = Judge {
        sight: Sight::Root(Some(open(Path::new("/")).unwrap())),
        home: None,
        hidden: Vec::new(),
        readable: Vec::new(),
        writable: Vec::new(),
    };
    let is_over = AtomicBool::new(false);
    let wrong = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..RENAMES {
                fs::rename(busy.join("a"), busy.join("b")).unwrap();
                fs::rename(busy.join("b"), busy.join("a")).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let path = work.join("../none");
        let mut looks = std::iter::from_fn(|| {
            let goes_on = !is_over.load(Ordering::Relaxed);
            goes_on.then(|| judge.is_writable(&path))
        });
        looks.find(Option::is_some)
    });
    assert_eq!(wrong, None);
}
