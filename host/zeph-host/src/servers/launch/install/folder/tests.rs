use super::*;
use crate::servers::launch::install::command::InstallCommand;

fn command(words: &[&str]) -> InstallCommand {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    InstallCommand::read("npx", &words).unwrap().unwrap()
}

fn folder(root: &Path, words: &[&str]) -> InstallFolder {
    let command = command(words);
    InstallFolder::of(root, &command, &command.packages, false)
}

fn record() -> InstallRecord {
    InstallRecord {
        pin: InstallPin {
            package: "server".to_owned(),
            version: "1.0.0".to_owned(),
            integrity: "sha256:00".to_owned(),
        },
        program: "run".into(),
    }
}

#[tokio::test]
async fn an_installation_counts_once_its_record_is_there() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path(), &["server"]);
    assert_eq!(folder.record(), None);
    folder.begin(None).await.unwrap();
    fs::write(folder.path().join("run"), "half").unwrap();
    assert_eq!(folder.record(), None, "it was killed half way");
    folder.begin(None).await.unwrap();
    assert!(!folder.path().join("run").exists(), "nothing of it is used");
    fs::write(folder.path().join("run"), "whole").unwrap();
    folder.finish(&record()).unwrap();
    assert_eq!(folder.record(), Some(record()));
    fs::remove_file(folder.path().join("run")).unwrap();
    assert_eq!(folder.record(), None, "the cache was emptied");
    fs::write(folder.beside("json"), "{").unwrap();
    assert_eq!(folder.record(), None);
}

#[test]
fn each_question_has_a_folder_of_its_own() {
    let root = Path::new("/cache");
    let all = [
        folder(root, &["server"]),
        folder(root, &["server@1.0.0"]),
        folder(root, &["-p", "server", "run"]),
        folder(root, &["other"]),
    ];
    for (idx, one) in all.iter().enumerate() {
        for other in &all[idx + 1..] {
            assert_ne!(one.path(), other.path());
        }
    }
    // The arguments of the program are none of it.
    assert_eq!(
        folder(root, &["-y", "server", "/tmp"]).path(),
        all[0].path()
    );
}

#[tokio::test]
async fn one_installs_and_the_other_waits() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path(), &["server"]);
    let never = || panic!("nobody else installs");
    let soon = || Instant::now() + Duration::from_secs(30);
    let first = folder.lock(soon(), never).await.unwrap();
    let mut waited = false;
    let late = folder.lock(Instant::now(), || {}).await;
    assert!(late.unwrap_err().contains("another process"));
    let other = folder.clone();
    let waiting = other.lock(soon(), || waited = true);
    let (second, ()) = tokio::join!(waiting, async move { drop(first) });
    second.unwrap();
    assert!(waited);
}
