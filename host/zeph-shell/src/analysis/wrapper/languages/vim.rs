//! The editors of the family of vim: commands in their arguments that do more than edit.

use super::super::super::value::Value;
use super::valued;

/// Options behind which commands stand.
const COMMANDS: &[&str] = &["-c", "--cmd"];

/// Options that name a file with commands.
const FILES: &[&str] = &["-S", "-u", "-U", "-l"];

/// Words that are whole options: keys are read from a file or written to one, or another editor is given commands.
const KEYS: &[&str] = &["-s", "-w", "-W"];

/// Options of vim that only say how text is shown, read and written, with their short forms. `no` may stand before them.
const SETTINGS: &[&str] = &[
    "ai",
    "autoindent",
    "bin",
    "binary",
    "bomb",
    "bri",
    "cc",
    "cindent",
    "colorcolumn",
    "compatible",
    "cp",
    "cul",
    "cursorline",
    "enc",
    "encoding",
    "endofline",
    "eol",
    "et",
    "expandtab",
    "fenc",
    "ff",
    "fileencoding",
    "fileformat",
    "filetype",
    "fixendofline",
    "fixeol",
    "ft",
    "hls",
    "hlsearch",
    "ic",
    "ignorecase",
    "incsearch",
    "is",
    "list",
    "magic",
    "nomodeline",
    "more",
    "noml",
    "nu",
    "number",
    "paste",
    "relativenumber",
    "report",
    "rnu",
    "ruler",
    "scs",
    "shiftround",
    "shiftwidth",
    "shm",
    "shortmess",
    "showcmd",
    "showmode",
    "si",
    "smartcase",
    "smartindent",
    "softtabstop",
    "spell",
    "sr",
    "sts",
    "sw",
    "swapfile",
    "swf",
    "syntax",
    "tabstop",
    "term",
    "textwidth",
    "tgc",
    "termguicolors",
    "ts",
    "tw",
    "ul",
    "undolevels",
    "wb",
    "wrap",
    "writebackup",
    "backup",
    "bk",
    "lazyredraw",
    "lz",
    "hidden",
    "hid",
    "wildmenu",
    "wmnu",
    "bg",
    "background",
];

/// Whether arguments hold a command that does more than edit, or lead to one.
pub(super) fn leads(name: &str, arguments: &[Value]) -> bool {
    let texts = || arguments.iter().map(|word| word.text.as_str());
    let runs = |text: &str| !is_edit(text);
    let is_file = |text: &str| !["NONE", "NORC", "DEFAULTS"].contains(&text);
    // In Ex mode `-s` only makes it silent.
    let is_ex = name == "ex" || texts().any(|text| is_letters(text) && text.contains(['e', 'E']));
    let has_keys = texts().any(|text| KEYS.contains(&text) && !(is_ex && text == "-s"));
    let is_remote = texts().any(|text| text.starts_with("--remote-"));
    has_keys
        || is_remote
        || valued(arguments, FILES, is_file)
        || texts().any(|text| text.starts_with('+') && runs(text.trim_start_matches('+')))
        || valued(arguments, COMMANDS, runs)
}

fn is_letters(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.len() > 1
}

/// Whether a command only edits, saves and leaves.
pub(super) fn is_edit(command: &str) -> bool {
    const WORDS: [&str; 17] = [
        "", "w", "wq", "wqa", "wa", "q", "q!", "qa", "qa!", "wq!", "x", "d", "sort", "retab", "j",
        "noh", "undo",
    ];
    let is_range = |c: char| c.is_ascii_digit() || ":%,.$+- ".contains(c);
    let command = command.trim().trim_start_matches(is_range);
    let is_substitution = command.starts_with("s/") || command.starts_with("s#");
    let is_removal = command.starts_with("g/") && command.ends_with("/d");
    let is_plain = !command.contains(['|', '\n', '!', '`']) && !command.contains("\\=");
    WORDS.contains(&command) || is_plain && (is_substitution || is_removal || is_setting(command))
}

/// Whether a command only says how text is shown, read and written.
fn is_setting(command: &str) -> bool {
    let is_shown = ["syntax ", "colorscheme "]
        .iter()
        .any(|word| command.starts_with(word));
    let is_known = |setting: &str| {
        let name = setting.split(['=', '+', '-', '^', ':']).next();
        let name = name.unwrap_or_default().trim_end_matches(['&', '?', '<']);
        SETTINGS.contains(&name)
            || name
                .strip_prefix("no")
                .is_some_and(|rest| SETTINGS.contains(&rest))
    };
    let settings = ["set ", "se ", "setlocal ", "setl "];
    let of = settings.iter().find_map(|word| command.strip_prefix(word));
    is_shown || of.is_some_and(|settings| settings.split_whitespace().all(is_known))
}
