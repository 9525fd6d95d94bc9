//! The history of lines in a file.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::LazyLock;

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};
use regex::Regex;

/// How the file writes a line break, with more backslashes where a line has these characters itself.
static BREAK: LazyLock<Regex> = LazyLock::new(|| pattern(r"<(\\+)n>"));
static LITERAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"<\\(\\+)n>"));

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("bug: the pattern is a constant")
}

/// Lines in a file that only its owner may read: they may hold what calls were made with.
pub(crate) struct LineHistory(FileBackedHistory);

impl LineHistory {
    /// Opens the file, or makes it. It keeps at most `lines_max` lines.
    ///
    /// Errors: it cannot be opened.
    pub(crate) fn open(path: &Path, lines_max: usize) -> io::Result<Self> {
        make_private(path)?;
        let history = FileBackedHistory::with_file(lines_max, path.to_owned());
        history.map(Self).map_err(io::Error::other)
    }
}

/// Makes the file, which only its owner may read, when there is none.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

fn encoded(mut item: HistoryItem) -> HistoryItem {
    item.command_line = BREAK
        .replace_all(&item.command_line, r"<\${1}n>")
        .into_owned();
    item
}

fn decoded(mut item: HistoryItem) -> HistoryItem {
    item.command_line = LITERAL
        .replace_all(&item.command_line, r"<${1}n>")
        .into_owned();
    item
}

/// A line that has the characters of a line break of the file is kept as it was typed.
impl History for LineHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        self.0.save(encoded(item)).map(decoded)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.0.load(id).map(decoded)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.0.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        let found = self.0.search(query)?;
        Ok(found.into_iter().map(decoded).collect())
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.0.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.0.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.0.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.0.session()
    }
}

#[cfg(test)]
mod tests {
    use reedline::{History as _, HistoryItem, SearchDirection, SearchQuery};

    use super::LineHistory;

    #[test]
    fn lines_come_back_as_they_were_typed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let lines = [
            "read path=a",
            "two\nlines",
            r#"bash command='echo "a<\n>b"'"#,
            r"both <\n> and
a break",
            r"<\\n> <\\\n> <n> \n",
        ];
        for _ in 0..2 {
            let mut history = LineHistory::open(&file, 100).unwrap();
            for line in lines {
                history.save(HistoryItem::from_command_line(line)).unwrap();
            }
            history.sync().unwrap();
        }
        let history = LineHistory::open(&file, 100).unwrap();
        let all = SearchQuery::everything(SearchDirection::Forward, None);
        let found = history.search(all).unwrap();
        let found: Vec<&str> = found
            .iter()
            .map(|item| item.command_line.as_str())
            .collect();
        assert_eq!(found, [lines, lines].concat());
    }
}
