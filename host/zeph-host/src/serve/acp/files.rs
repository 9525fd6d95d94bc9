//! Files as an editor has them: what is typed there and not saved is read, and what a tool writes is seen there.
//!
//! The tool runs first, on the disk: its grant, the rules and the guard decide, on the object really opened. Only for a file that it
//! reached is the editor asked. A path that leads elsewhere before or after the editor answered is not used. Searches look at the disk.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use zeph_acp::client::{
    Acknowledged, READ_TEXT_FILE, ReadTextFileRequest, ReadTextFileResponse, WRITE_TEXT_FILE,
    WriteTextFileRequest,
};
use zeph_core::execution::Execution;
use zeph_core::output::Content;
use zeph_core::tool::{Backend, Tool};

use super::session::AcpSession;
use crate::agent::attachment::below;

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

/// A regular file that is there, at its own real path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundFile {
    path: PathBuf,
}

impl EditorFiles {
    /// Before an edit: what the user has typed and not saved is saved, by the editor, so that the edit changes that.
    pub(crate) async fn before(&self, call: &FileCall) {
        let capabilities = self.0.client().capabilities.fs;
        if call.tool != FileTool::Edit
            || !capabilities.read_text_file
            || !capabilities.write_text_file
        {
            return;
        }
        let Some(file) = self.find(call).await else {
            return;
        };
        let (Ok(typed), Some(saved)) = (self.read(&file).await, content(&file).await) else {
            return;
        };
        if !is_same(&typed, &saved) {
            drop(self.write(&file, typed).await);
        }
    }

    /// After the tool has run on the disk: the page of a read as the editor has it, and the news of what was written for the editor.
    pub(crate) async fn after(&self, call: &FileCall, mut execution: Execution) -> Execution {
        if execution.result.is_err() {
            return execution;
        }
        let capabilities = self.0.client().capabilities.fs;
        let problem = match call.tool {
            FileTool::Read if capabilities.read_text_file => self.shown(call, &mut execution).await,
            FileTool::Write | FileTool::Edit if capabilities.write_text_file => {
                self.told(call).await
            }
            _ => return execution,
        };
        match problem {
            Err(problem) if self.0.tells_of_files() => {
                let note =
                    format!("the editor was passed over, and the file on the disk used: {problem}");
                execution.with_notes(vec![note])
            }
            _ => execution,
        }
    }

    /// Puts the editor's text into the result of a read, where it is another one.
    async fn shown(&self, call: &FileCall, execution: &mut Execution) -> Result<(), String> {
        let Some(file) = self.find(call).await else {
            return Ok(());
        };
        let typed = self.read(&file).await?;
        let Some(saved) = content(&file).await else {
            return Ok(());
        };
        let Ok(raw) = &mut execution.result else {
            return Ok(());
        };
        if is_same(&typed, &saved) {
            return Ok(());
        }
        raw.content = vec![Content::Text(page(call, &typed))];
        raw.structured = None;
        Ok(())
    }

    /// Hands the editor what is on the disk now.
    async fn told(&self, call: &FileCall) -> Result<(), String> {
        let Some(file) = self.find(call).await else {
            return Ok(());
        };
        match content(&file).await {
            Some(written) => self.write(&file, written).await,
            None => Ok(()),
        }
    }

    /// The file of a call: below a granted directory, and not hidden.
    async fn find(&self, call: &FileCall) -> Option<FoundFile> {
        let (path, grant) = (call.path.clone(), self.0.host().config().file.clone());
        let found = tokio::task::spawn_blocking(move || found(&below(&path, &grant)?));
        found.await.ok().flatten()
    }

    async fn read(&self, file: &FoundFile) -> Result<String, String> {
        let request = ReadTextFileRequest {
            session_id: self.0.id().to_owned(),
            path: file.path.to_string_lossy().into_owned(),
        };
        let asked = self.0.connection();
        let asked = asked.request::<ReadTextFileResponse>(READ_TEXT_FILE, &request);
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let answer = answer.map_err(|_| "it did not answer in time".to_owned())?;
        let text = answer.map_err(|error| error.to_string())?.content;
        match is_still(file).await {
            true if text.len() as u64 <= FILE_BYTES_MAX => Ok(text),
            true => Err(format!("the file is longer than {FILE_BYTES_MAX} bytes")),
            false => Err("the path leads to another file now".to_owned()),
        }
    }

    async fn write(&self, file: &FoundFile, content: String) -> Result<(), String> {
        if !is_still(file).await {
            return Err("the path leads to another file now".to_owned());
        }
        let request = WriteTextFileRequest {
            session_id: self.0.id().to_owned(),
            path: file.path.to_string_lossy().into_owned(),
            content,
        };
        let asked = self.0.connection();
        let asked = asked.request::<Acknowledged>(WRITE_TEXT_FILE, &request);
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(Acknowledged)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_elapsed) => Err("it did not answer in time".to_owned()),
        }
    }
}

/// The regular file at a path that is its own real path.
fn found(path: &Path) -> Option<FoundFile> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let is_plain = metadata.is_file() && path.canonicalize().ok()? == path;
    is_plain.then(|| FoundFile {
        path: path.to_owned(),
    })
}

/// Whether the path still leads to the file. One that an editor has replaced since is that too, if nothing leads away from its place.
async fn is_still(file: &FoundFile) -> bool {
    let path = file.path.clone();
    let now = tokio::task::spawn_blocking(move || found(&path)).await;
    now.is_ok_and(|now| now.is_some_and(|now| now.path == file.path))
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
    use super::{FileCall, FileTool, found, is_same, page};

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
        assert_eq!(found(&file).unwrap().path, file);
        assert_eq!(found(&link), None);
        assert_eq!(found(&folder), None);
    }
}
