//! Groups, loops, branches, tests and functions.

use super::super::syntax::{
    CommandShape, ControlKind, Expansion, ExpansionKind, List, SyntaxCommand, Word, WordPart,
};
use super::super::variables::decides_what_runs;
use super::arithmetic::ArithmeticEnd;
use super::{Reader, Syntax, TextPlace};

impl Reader<'_, '_> {
    /// Reads what a reserved word begins, which has been passed over.
    pub(super) fn compound(&mut self, word: &'static str) -> Result<CommandShape, Syntax> {
        match word {
            "{" => {
                let list = self.nested(Self::list)?;
                self.expect_word("}")?;
                Ok(CommandShape::Group(list))
            }
            "if" => self.branches(),
            "while" | "until" => {
                let condition = self.nested(Self::list)?;
                let body = self.do_group()?;
                let kind = match word {
                    "while" => ControlKind::While,
                    _ => ControlKind::Until,
                };
                Ok(control(kind, Vec::new(), vec![condition, body]))
            }
            "for" => self.for_loop(),
            "select" => {
                let (_, words, body) = self.loop_over_words()?;
                let lists = vec![body];
                Ok(CommandShape::Select { words, lists })
            }
            "case" => self.case(),
            "[[" => self.test(),
            "function" => self.function_after_keyword(),
            "coproc" => self.coprocess(),
            _ => self.fail("a reserved word stands in an unusual place"),
        }
    }

    /// Reads `((…))` or `(…)`.
    pub(super) fn parenthesis(&mut self) -> Result<CommandShape, Syntax> {
        let start = self.at;
        if self.looks_at("((") {
            self.only_bash()?;
        }
        if self.takes("((")
            && let Some(lists) = self.arithmetic(ArithmeticEnd::Parentheses)?
        {
            let word = self.arithmetic_word(start, lists);
            return Ok(control(ControlKind::Arithmetic, vec![word], Vec::new()));
        }
        self.at = start;
        let was_counted = self.is_counted;
        self.is_counted |= self.looks_at("((");
        self.pass('(')?;
        let list = self.nested(Self::list)?;
        if !self.takes(")") {
            return self.fail("a parenthesis is not closed");
        }
        self.no_arithmetic(start)?;
        self.is_counted = was_counted;
        Ok(CommandShape::Subshell(list))
    }

    /// The arithmetic since `start` as a word that becomes a number.
    fn arithmetic_word(&self, start: usize, lists: Vec<List>) -> Word {
        Word {
            parts: vec![WordPart::Expansion(Expansion {
                source: self.since(start).to_owned(),
                lists,
                kind: ExpansionKind::Arithmetic,
                is_one_word: true,
            })],
        }
    }

    fn branches(&mut self) -> Result<CommandShape, Syntax> {
        let mut lists = vec![self.nested(Self::list)?];
        self.expect_word("then")?;
        loop {
            lists.push(self.nested(Self::list)?);
            self.lines()?;
            match self.reserved() {
                Some("elif") => {
                    self.at += 4;
                    lists.push(self.nested(Self::list)?);
                    self.expect_word("then")?;
                }
                Some("else") => self.at += 4,
                _ => {
                    self.expect_word("fi")?;
                    return Ok(control(ControlKind::If, Vec::new(), lists));
                }
            }
        }
    }

    fn do_group(&mut self) -> Result<List, Syntax> {
        self.lines()?;
        self.takes(";");
        self.lines()?;
        let (open, close) = match self.reserved() {
            Some("{") => ("{", "}"),
            _ => ("do", "done"),
        };
        self.expect_word(open)?;
        let list = self.nested(Self::list)?;
        self.expect_word(close)?;
        Ok(list)
    }

    fn for_loop(&mut self) -> Result<CommandShape, Syntax> {
        self.blanks()?;
        let start = self.at;
        if !self.takes("((") {
            let (variable, words, body) = self.loop_over_words()?;
            return Ok(CommandShape::For {
                variable,
                words,
                body,
            });
        }
        self.only_bash()?;
        match self.arithmetic(ArithmeticEnd::Loop)? {
            Some(lists) => {
                let word = self.arithmetic_word(start, lists);
                let body = self.do_group()?;
                Ok(control(ControlKind::ArithmeticFor, vec![word], vec![body]))
            }
            None => self.fail("arithmetic is not understood"),
        }
    }

    fn loop_over_words(&mut self) -> Result<(String, Vec<Word>, List), Syntax> {
        self.blanks()?;
        let variable = self.word()?;
        let Some(variable) = variable.plain().map(str::to_owned) else {
            return self.fail("a loop sets no plain variable");
        };
        if decides_what_runs(&variable) {
            return self.fail("a loop sets a variable that decides what is run");
        }
        self.lines()?;
        let mut words = Vec::new();
        if self.takes_word("in") {
            loop {
                self.blanks()?;
                if matches!(self.peek(), None | Some('\n' | ';')) {
                    break;
                }
                words.push(self.word()?);
            }
        }
        let body = self.do_group()?;
        Ok((variable, words, body))
    }

    /// Passes over a word that is reserved only here.
    fn takes_word(&mut self, expected: &str) -> bool {
        self.peek();
        let is_there = self
            .rest()
            .strip_prefix(expected)
            .is_some_and(|rest| rest.chars().next().is_none_or(super::ends_word));
        if is_there {
            self.at += expected.len();
        }
        is_there
    }

    fn case(&mut self) -> Result<CommandShape, Syntax> {
        let is_doubtful = self.is_doubtful_case();
        self.blanks()?;
        let mut words = vec![self.word()?];
        let mut lists = Vec::new();
        let mut is_exhaustive = false;
        self.lines()?;
        if !self.takes_word("in") {
            return self.fail("`case` without `in`");
        }
        loop {
            self.lines()?;
            if self.takes_word("esac") {
                return Ok(control(ControlKind::Case { is_exhaustive }, words, lists));
            }
            if !self.takes("(") && is_doubtful {
                return self.fail("a pattern of `case` may end the substitution it stands in");
            }
            loop {
                self.blanks()?;
                let pattern = self.word()?;
                // Bash writes the command anew there, without the parenthesis before the pattern.
                if self.place == TextPlace::Substitution && pattern.plain() == Some("esac") {
                    return self.fail("a pattern of `case` may end it");
                }
                is_exhaustive |= pattern.plain() == Some("*");
                words.push(pattern);
                self.blanks()?;
                if self.takes(")") {
                    break;
                }
                if !self.takes("|") {
                    return self.fail("a pattern of `case` is not understood");
                }
            }
            lists.push(self.nested(Self::list)?);
            let _is_ended = self.takes(";;&") || self.takes(";;") || self.takes(";&");
        }
    }

    /// Whether some versions of bash do not see this `case`, which has been passed over, so that the `)` of a pattern ends the substitution:
    /// behind `time` and `!`, and where parentheses are counted.
    fn is_doubtful_case(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let before = before.strip_suffix("case").unwrap_or(before).trim_end();
        let is_behind = ["time", "!", "-p", "--"]
            .iter()
            .any(|word| before.ends_with(word));
        self.is_counted || self.place == TextPlace::Substitution && is_behind
    }

    /// Reads a test up to `]]`. Which word is which operator does not matter, only what the words run.
    ///
    /// Behind `=~` and in patterns bash counts parentheses, and all between them is one word.
    fn test(&mut self) -> Result<CommandShape, Syntax> {
        let was_counted = self.is_counted;
        let words = self.test_words()?;
        self.is_counted = was_counted;
        Ok(CommandShape::Test(words))
    }

    fn test_words(&mut self) -> Result<Vec<Word>, Syntax> {
        let mut words = Vec::new();
        let mut depth = 0_usize;
        loop {
            while let Some(c @ (' ' | '\t')) = self.peek() {
                self.pass(c)?;
            }
            if self.takes_word("]]") {
                return match depth {
                    0 => Ok(words),
                    _ => self.fail("a parenthesis is not closed"),
                };
            }
            match self.peek() {
                None => return self.fail("a test is not closed"),
                Some('\n' | '<' | '>' | '&' | '|' | '(' | ')') if !self.is_bash() => {
                    self.only_bash()?;
                }
                Some('\n') => self.line_end()?,
                Some('#' | ';') => return self.fail("a test is not understood"),
                Some('<' | '>') if self.looks_at("<(") || self.looks_at(">(") => {
                    words.push(self.word()?);
                }
                Some('&') if !self.takes("&&") => return self.fail("a test is not understood"),
                Some('&') => {}
                Some('(') => {
                    self.pass('(')?;
                    self.is_counted = true;
                    depth += 1;
                }
                Some(')') => {
                    self.pass(')')?;
                    depth = depth.saturating_sub(1);
                }
                Some(c @ ('|' | '<' | '>')) => self.pass(c)?,
                Some(_) => words.push(self.word()?),
            }
        }
    }

    fn function_after_keyword(&mut self) -> Result<CommandShape, Syntax> {
        self.blanks()?;
        let name = self.word()?.plain().map(str::to_owned);
        self.blanks()?;
        let start = self.at;
        if self.takes("(") {
            self.blanks()?;
            if !self.takes(")") {
                // The body is a group in parentheses.
                self.at = start;
            }
        }
        self.lines()?;
        let body = self.nested(Self::command)?;
        Ok(CommandShape::Function(name, Box::new(body)))
    }

    /// Reads a function from the parenthesis after its name.
    pub(super) fn function_after_name(&mut self, name: &Word) -> Result<SyntaxCommand, Syntax> {
        self.pass('(')?;
        self.blanks()?;
        if !self.takes(")") {
            return self.fail("a parenthesis stands inside a command");
        }
        self.lines()?;
        let body = self.nested(Self::command)?;
        Ok(SyntaxCommand {
            shape: CommandShape::Function(name.plain().map(str::to_owned), Box::new(body)),
            redirects: Vec::new(),
        })
    }

    fn coprocess(&mut self) -> Result<CommandShape, Syntax> {
        self.blanks()?;
        let start = self.at;
        let name = match self.reserved() {
            None => self.word().ok(),
            Some(_) => None,
        };
        self.blanks()?;
        let is_before = self.peek() == Some('(') || self.reserved().is_some_and(|word| word != "!");
        let name = name.filter(|_| is_before);
        if name.is_none() {
            self.at = start;
        }
        let name = name.map(|name| name.fixed_text());
        let body = Box::new(self.nested(Self::command)?);
        // Bash writes the command anew there, with the name that it gives the coprocess, and runs that: `COPROC`.
        let is_simple = matches!(body.shape, CommandShape::Simple { .. });
        if is_simple && self.place == TextPlace::Substitution {
            return self.fail("the name of a coprocess may be run as a program");
        }
        Ok(CommandShape::Coprocess { name, body })
    }
}

fn control(kind: ControlKind, words: Vec<Word>, lists: Vec<List>) -> CommandShape {
    CommandShape::Control { kind, words, lists }
}
