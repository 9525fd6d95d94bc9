//! A selector, or where it is wrong and why.

use cssparser::{BasicParseErrorKind, Delimiter, ParseErrorKind};
use scraper::Selector;
use scraper::selector::Parser;
use selectors::parser::SelectorParseErrorKind;
use zeph_plugin::ToolError;

use crate::text::clean;

/// Bytes of a selector. Matching takes time in proportion to them.
const BYTES_MAX: usize = 4096;

/// Reads a selector.
///
/// Errors: `invalid_parameters`, with the character it is wrong at and what is wrong there.
pub(super) fn parse(text: &str) -> Result<Selector, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::invalid_parameters(
            "`select` is empty; write a CSS selector, such as `h1`",
        ));
    }
    if text.len() > BYTES_MAX {
        return Err(ToolError::invalid_parameters(format!(
            "`select` has {} bytes; the limit is {BYTES_MAX}",
            text.len()
        )));
    }
    Selector::parse(text).map_err(|_| problem(text))
}

/// Reads it once more, for the place, which scraper's error does not have.
fn problem(text: &str) -> ToolError {
    let mut input = cssparser::Parser::new(text);
    let mut location = input.current_source_location();
    let reason = loop {
        let parsed = input.parse_until_before(Delimiter::Comma, |input| {
            let parsed = selectors::parser::Selector::parse(&Parser, input);
            let parsed = parsed.and_then(|_| Ok(input.expect_exhausted()?));
            // Whoever calls this reads on to the comma.
            if parsed.is_err() {
                location = input.current_source_location();
            }
            parsed
        });
        match parsed {
            Err(error) => break reason(&error.kind),
            Ok(()) if input.next().is_err() => break "something unexpected",
            Ok(()) => {}
        }
    };
    let (line, column) = (location.line + 1, location.column);
    let place = match line {
        1 => format!("character {column}"),
        line => format!("line {line}, character {column}"),
    };
    let shown = clean(text);
    ToolError::invalid_parameters(format!(
        "`{shown}` is not a CSS selector: {reason} near {place}"
    ))
}

fn reason(kind: &ParseErrorKind<SelectorParseErrorKind>) -> &'static str {
    match kind {
        ParseErrorKind::Basic(kind) => basic(kind),
        ParseErrorKind::Custom(kind) => custom(kind),
    }
}

fn basic(kind: &BasicParseErrorKind) -> &'static str {
    match kind {
        BasicParseErrorKind::EndOfInput => "it ends too early",
        BasicParseErrorKind::TooManyNestedBlocks => "too many brackets inside each other",
        _ => "something unexpected",
    }
}

fn custom(kind: &SelectorParseErrorKind) -> &'static str {
    use SelectorParseErrorKind as Kind;
    match kind {
        Kind::EmptySelector | Kind::DanglingCombinator => "a selector is missing",
        Kind::UnsupportedPseudoClassOrElement => {
            "a pseudo-class or pseudo-element that is not supported"
        }
        Kind::ClassNeedsIdent => "a class without a name",
        Kind::PseudoElementExpectedColon
        | Kind::PseudoElementExpectedIdent
        | Kind::NoIdentForPseudo => "a pseudo-class without a name",
        Kind::NoQualifiedNameInAttributeSelector | Kind::InvalidQualNameInAttr => {
            "an attribute without a name"
        }
        Kind::BadValueInAttr => "the value of an attribute that needs quotes",
        Kind::ExpectedNamespace => "a namespace that is not known",
        _ => "something unexpected",
    }
}
