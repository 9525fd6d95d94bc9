//! Files as an editor has them: what is typed there and not saved is read, and what a tool writes is seen there.
//!
//! The tool runs first, on the disk: its grant, the rules and the guard decide, on the object really opened. Only for a file that it
//! reached is the editor asked. The editor opens a path by its name, so whether a link stood there meanwhile is seen by the directories on
//! the way: whatever is put in the place of one of their entries, and taken away again, changes their times. What was read then is not
//! used, and what was written is told. Searches look at the disk.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use zeph_acp::client::{
    Acknowledged, READ_TEXT_FILE, ReadTextFileRequest, ReadTextFileResponse, WRITE_TEXT_FILE,
    WriteTextFileRequest,
};
use zeph_acp::connection::RequestError;
use zeph_core::category::ErrorCategory;
use zeph_core::execution::Execution;
use zeph_core::output::{Content, RawOutput};
use zeph_core::tool::{Backend, Tool};
use zeph_engine::Cancel;

use super::session::AcpSession;
use crate::agent::attachment::below;
use crate::clock::now_ms;

/// The longest file that goes through the editor, in bytes.
const FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// How long the editor may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Characters of one line, as the tool shows it.
const LINE_CHARS_MAX: usize = 2_000;

/// Lines of a page when the call says nothing.
const LIMIT: usize = 2_000;

/// The files of the editor behind a session.
#[derive(Debug)]
pub(crate) struct EditorFiles(pub(super) Arc<AcpSession>);

/// A call whose file the editor may have open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCall {
    tool: FileTool,
    path: String,
    offset: usize,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileTool {
    Read,
    Write,
    Edit,
}

impl FileCall {
    /// The call, when it is one of the program's own tools for single files.
    pub(crate) fn of(tool: &Tool, arguments: &Map<String, Value>) -> Option<Self> {
        let is_own = matches!(&tool.backend, Backend::Wasm(plugin) if plugin.0 == "file");
        let tool = match tool.qualified_name().as_str() {
            "file__read" if is_own => FileTool::Read,
            "file__write" if is_own => FileTool::Write,
            "file__edit" if is_own => FileTool::Edit,
            _ => return None,
        };
        let number = |name: &str| {
            let number = arguments.get(name).and_then(Value::as_u64)?;
            usize::try_from(number).ok()
        };
        Some(Self {
            tool,
            path: arguments.get("path")?.as_str()?.to_owned(),
            offset: number("offset").unwrap_or(0),
            limit: number("limit").unwrap_or(LIMIT),
        })
    }
}

/// How often a file is asked for again when something else changed in its directories meanwhile.
const ATTEMPTS: usize = 3;

/// How long the clock of a file system may stand still; twice the slowest tick of Linux. A directory that was changed later than that is
/// looked at again, because another change might leave the same time.
const TICK: Duration = Duration::from_millis(20);

/// A regular file that is there, at its own real path, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundFile {
    path: PathBuf,
    file: Looks,
    /// Of the directory it is in, of the one above, and so on up to the granted one.
    way: Vec<Looks>,
}

/// What a file or a directory looks like: another one in its place looks different, and so does a directory in which a name was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Looks {
    device: u64,
    inode: u64,
    /// In seconds and nanoseconds.
    changed: (i64, i64),
}

/// What an editor did with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditorAccess {
    Read,
    Write,
}

impl EditorFiles {
    /// Before an edit: what the user has typed and not saved is saved, by the editor, so that the edit changes that.
    pub(crate) async fn before(&self, call: &FileCall, cancel: &Cancel) {
        let capabilities = self.0.files();
        if call.tool != FileTool::Edit
            || !capabilities.read_text_file
            || !capabilities.write_text_file
        {
            return;
        }
        let read = self.read(call, cancel).await;
        let (Ok(Some((typed, saved))), Some(file)) = (read, self.find(call).await) else {
            return;
        };
        if !is_same(&typed, &saved) {
            drop(self.write(&file, typed, cancel).await);
        }
    }

    /// After the tool has run on the disk: the page of a read as the editor has it, and the news of what was written for the editor.
    pub(crate) async fn after(
        &self,
        call: &FileCall,
        mut execution: Execution,
        cancel: &Cancel,
    ) -> Execution {
        let is_reached = execution.result.is_ok() || is_beyond_the_disk(call, &execution);
        if !is_reached {
            return execution;
        }
        let capabilities = self.0.files();
        let problem = match call.tool {
            FileTool::Read if capabilities.read_text_file => {
                self.shown(call, &mut execution, cancel).await
            }
            FileTool::Write | FileTool::Edit if capabilities.write_text_file => {
                self.told(call, cancel).await
            }
            _ => return execution,
        };
        match problem {
            // A call that was cancelled tells nothing of the editor.
            Err(problem) if !cancel.is_cancelled() && self.0.tells_of_files() => {
                let note =
                    format!("the editor was passed over, and the file on the disk used: {problem}");
                execution.with_notes(vec![note])
            }
            _ => execution,
        }
    }

    /// Puts the editor's text into the result of a read, where it is another one.
    async fn shown(
        &self,
        call: &FileCall,
        execution: &mut Execution,
        cancel: &Cancel,
    ) -> Result<(), String> {
        let Some((typed, saved)) = self.read(call, cancel).await? else {
            return Ok(());
        };
        if is_same(&typed, &saved) {
            return Ok(());
        }
        match &mut execution.result {
            Ok(raw) => {
                raw.content = vec![Content::Text(page(call, &typed))];
                raw.structured = None;
            }
            Err(_) if typed.lines().nth(call.offset).is_some() => {
                execution.result = Ok(RawOutput::text(page(call, &typed)));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Hands the editor what is on the disk now.
    async fn told(&self, call: &FileCall, cancel: &Cancel) -> Result<(), String> {
        let Some(file) = self.find(call).await else {
            return Ok(());
        };
        match content(&file).await {
            Some(written) => self.write(&file, written, cancel).await,
            None => Ok(()),
        }
    }

    /// The file of a call: below a granted directory, and not hidden.
    async fn find(&self, call: &FileCall) -> Option<FoundFile> {
        let (path, grant) = (call.path.clone(), self.0.host().config().file.clone());
        let found = tokio::task::spawn_blocking(move || {
            let path = below(&path, &grant)?;
            let mut roots = grant.roots.iter().map(|root| root.path.as_path());
            let root = roots.find(|root| path.starts_with(root))?;
            found(&path, root)
        });
        found.await.ok().flatten()
    }

    /// The text of the file of a call, as the editor has it and as it is on the disk; none where there is no such file, or no text.
    async fn read(
        &self,
        call: &FileCall,
        cancel: &Cancel,
    ) -> Result<Option<(String, String)>, String> {
        for _ in 0..ATTEMPTS {
            let Some(file) = self.find(call).await else {
                return Ok(None);
            };
            if file.is_fresh() {
                tokio::time::sleep(TICK).await;
                continue;
            }
            let typed = self.typed(&file, cancel).await?;
            let saved = content(&file).await;
            if !is_still(&file, EditorAccess::Read).await {
                continue;
            }
            return match typed.len() as u64 <= FILE_BYTES_MAX {
                true => Ok(saved.map(|saved| (typed, saved))),
                false => Err(format!("the file is longer than {FILE_BYTES_MAX} bytes")),
            };
        }
        Err("something else changes the directories it is in".to_owned())
    }

    /// What the editor says is in the file.
    async fn typed(&self, file: &FoundFile, cancel: &Cancel) -> Result<String, String> {
        let request = ReadTextFileRequest {
            session_id: self.0.id().to_owned(),
            path: file.path.to_string_lossy().into_owned(),
        };
        let asked = self.0.connection();
        let asked = asked.request::<ReadTextFileResponse>(READ_TEXT_FILE, &request);
        Ok(self.answer(asked, cancel).await?.content)
    }

    /// What the editor answers. One that does not is asked no more: each of its silences would hold up a call.
    async fn answer<T>(
        &self,
        asked: impl Future<Output = Result<T, RequestError>>,
        cancel: &Cancel,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err("the call was cancelled".to_owned()),
            answer = tokio::time::timeout(PATIENCE, asked) => match answer {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(_elapsed) => {
                    self.0.give_up_files();
                    Err("it did not answer in time, and is not asked again in this session".to_owned())
                }
            },
        }
    }

    async fn write(
        &self,
        file: &FoundFile,
        content: String,
        cancel: &Cancel,
    ) -> Result<(), String> {
        if !is_still(file, EditorAccess::Read).await {
            return Err("the path leads to another file now".to_owned());
        }
        let request = WriteTextFileRequest {
            session_id: self.0.id().to_owned(),
            path: file.path.to_string_lossy().into_owned(),
            content,
        };
        let asked = self.0.connection();
        let asked = asked.request::<Acknowledged>(WRITE_TEXT_FILE, &request);
        let Acknowledged = self.answer(asked, cancel).await?;
        match is_still(file, EditorAccess::Write).await {
            true => Ok(()),
            false => Err(
                "while the editor wrote, the path led to another file, which it may have written"
                    .to_owned(),
            ),
        }
    }
}

/// The regular file at a path below `root` that is its own real path.
fn found(path: &Path, root: &Path) -> Option<FoundFile> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let directories = path.ancestors().skip(1);
    let way = directories
        .take_while(|directory| directory.starts_with(root))
        .map(|directory| Some(Looks::of(&std::fs::symlink_metadata(directory).ok()?)));
    let way = way.collect::<Option<Vec<Looks>>>()?;
    let is_plain = metadata.is_file() && path.canonicalize().ok()? == path;
    is_plain.then(|| FoundFile {
        path: path.to_owned(),
        file: Looks::of(&metadata),
        way,
    })
}

impl Looks {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

impl FoundFile {
    /// Whether a change right now might leave no trace on the way.
    fn is_fresh(&self) -> bool {
        let now = Duration::from_millis(u64::try_from(now_ms()).unwrap_or_default());
        let is_fresh = |looks: &Looks| {
            let seconds = u64::try_from(looks.changed.0).unwrap_or_default();
            let nanos = u32::try_from(looks.changed.1).unwrap_or_default();
            now.saturating_sub(Duration::new(seconds, nanos)) <= TICK
        };
        self.way.iter().any(is_fresh)
    }

    /// Whether nothing else stood at the path since, as far as `now` shows. Who writes a file may put another one in its place, and
    /// changes its directory by that; but then the file is not the one that was there, unchanged.
    fn has_stayed(&self, now: &Self, access: EditorAccess) -> bool {
        let is_on_the_way = match access {
            EditorAccess::Read => self.file.id() == now.file.id() && self.way == now.way,
            EditorAccess::Write => {
                let ids = |file: &Self| file.way.iter().map(Looks::id).collect::<Vec<_>>();
                ids(self) == ids(now) && self.way.get(1..) == now.way.get(1..)
            }
        };
        let is_untouched = self.file == now.file;
        let is_renamed = self.way.first() != now.way.first();
        is_on_the_way && !(is_untouched && is_renamed)
    }
}

/// Whether the path led to the file all the time.
async fn is_still(file: &FoundFile, access: EditorAccess) -> bool {
    let (path, then) = (file.path.clone(), file.clone());
    let stayed = tokio::task::spawn_blocking(move || {
        let root = path.ancestors().nth(then.way.len())?;
        Some(then.has_stayed(&found(&path, root)?, access))
    });
    stayed.await.ok().flatten().unwrap_or(false)
}

/// What is on the disk, when it is text of a length that can be sent.
async fn content(file: &FoundFile) -> Option<String> {
    let path = file.path.clone();
    let read = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
        let is_short = bytes.len() as u64 <= FILE_BYTES_MAX;
        String::from_utf8(bytes).ok().filter(|_| is_short)
    });
    read.await.ok().flatten()
}

/// Whether a read reached its file and found it too short on the disk: the editor may have more lines. No other failure says this, in
/// whatever words its path is.
fn is_beyond_the_disk(call: &FileCall, execution: &Execution) -> bool {
    let Err(failure) = &execution.result else {
        return false;
    };
    let offset = failure.message.strip_prefix("`offset` ");
    let rest = offset.map(|text| text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ','));
    call.tool == FileTool::Read
        && failure.category == ErrorCategory::InvalidParameters
        && rest.is_some_and(|rest| rest.starts_with(" is beyond the end: `"))
}

/// Editors may hand lines out with other ends than the file has.
fn is_same(typed: &str, saved: &str) -> bool {
    typed == saved || typed.lines().eq(saved.lines())
}

/// A page of a text that is not saved, as the tool shows one.
fn page(call: &FileCall, text: &str) -> String {
    let mut lines = text.lines().enumerate().skip(call.offset);
    let mut page = String::new();
    for (index, line) in lines.by_ref().take(call.limit) {
        let shown: String = line.chars().take(LINE_CHARS_MAX).collect();
        page.push_str(&format!("{:>4}\t{shown}\n", index + 1));
    }
    let n_left = lines.count();
    if n_left > 0 {
        let next = call.offset + call.limit;
        page.push_str(&format!(
            "… {n_left} more lines; continue with offset={next}\n"
        ));
    }
    page.push_str("[as it is in the editor, with changes that are not saved]");
    page
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use super::{EditorAccess, FileCall, FileTool, FoundFile, found, is_same, is_still, page};

    #[test]
    fn a_page_has_the_numbers_of_its_lines() {
        let call = FileCall {
            tool: FileTool::Read,
            path: "a".to_owned(),
            offset: 1,
            limit: 1,
        };
        assert_eq!(
            page(&call, "one\ntwo\nthree\n"),
            "   2\ttwo\n… 1 more lines; continue with offset=2\n[as it is in the editor, with changes that are not saved]"
        );
        assert!(is_same("a\r\nb", "a\nb\n"));
        assert!(!is_same("a\nb", "a\nc"));
    }

    #[test]
    fn a_link_is_no_file_of_the_editor() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(found(&file, &folder).unwrap().path, file);
        assert_eq!(found(&link, &folder), None);
        assert_eq!(found(&folder, &folder), None);
    }

    /// A tree `a/b/file` that was not changed lately, and what is outside of it.
    fn settled(top: &Path) -> (PathBuf, FoundFile) {
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        let file = top.join("a/b/file");
        std::fs::write(&file, "x").unwrap();
        std::fs::write(top.join("secret"), "outside").unwrap();
        let root = top.join("a");
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let now = found(&file, &root).unwrap();
            if !now.is_fresh() {
                return (file, now);
            }
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_link_that_stood_there_for_a_moment_is_seen() {
        type Swap = fn(&Path);
        let swaps: [(&str, Swap); 2] = [
            ("the file", |top| {
                let file = top.join("a/b/file");
                std::fs::rename(&file, top.join("a/b/aside")).unwrap();
                symlink(top.join("secret"), &file).unwrap();
                std::fs::remove_file(&file).unwrap();
                std::fs::rename(top.join("a/b/aside"), &file).unwrap();
            }),
            ("a directory above", |top| {
                let (b, aside) = (top.join("a/b"), top.join("a/aside"));
                std::fs::rename(&b, &aside).unwrap();
                symlink(top, &b).unwrap();
                std::fs::remove_file(&b).unwrap();
                std::fs::rename(&aside, &b).unwrap();
            }),
        ];
        for (what, swap) in swaps {
            let folder = tempfile::tempdir().unwrap();
            let top = folder.path().canonicalize().unwrap();
            let (_, then) = settled(&top);
            for access in [EditorAccess::Read, EditorAccess::Write] {
                assert!(is_still(&then, access).await, "{what}");
            }
            swap(&top);
            assert!(!is_still(&then, EditorAccess::Read).await, "{what}");
        }
    }

    #[tokio::test]
    async fn an_editor_saves_in_place_or_by_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (file, then) = settled(&top);
        std::fs::write(&file, "saved").unwrap();
        assert!(is_still(&then, EditorAccess::Write).await);
        let (file, then) = settled(&top);
        std::fs::write(top.join("a/b/new"), "saved").unwrap();
        std::fs::rename(top.join("a/b/new"), &file).unwrap();
        assert!(is_still(&then, EditorAccess::Write).await);
        assert!(!is_still(&then, EditorAccess::Read).await);
    }
}
