//! An expression that is only asked whether it matches. Every process that filters compiles it anew, so it is what compiles fastest: a
//! single automaton over bytes that is built as far as texts need it.

use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{Config, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Input, hybrid};

/// Bytes that what was built of an automaton may take; beyond them it is built anew.
const CACHE_BYTES: usize = 2 << 20;

/// Makes what a search needs besides the automaton.
type MakeCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// An expression, compiled.
#[derive(Debug)]
pub(crate) struct Automaton {
    dfa: DFA,
    caches: Pool<Cache, MakeCache>,
}

impl Automaton {
    /// Compiles an expression of the program. Classes and `\b` are those of ASCII; what is outside it stands in `(?u:…)`.
    pub(crate) fn new(pattern: &str) -> Self {
        let dfa = Self::compile(pattern).expect("bug: a built-in expression does not compile");
        let of_pool = dfa.clone();
        Self {
            dfa,
            caches: Pool::new(Box::new(move || of_pool.create_cache())),
        }
    }

    fn compile(pattern: &str) -> Result<DFA, Box<hybrid::BuildError>> {
        let nfa = Config::new()
            .which_captures(WhichCaptures::None)
            .utf8(false);
        let config = DFA::config()
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true);
        DFA::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(nfa)
            .configure(config)
            .build(pattern)
            .map_err(Box::new)
    }

    /// Whether it matches anywhere in a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        let found = self.dfa.try_search_fwd(&mut self.caches.get(), &input);
        // It gives up on no text; if it did, a line too many would be shown.
        found.is_ok_and(|found| found.is_some())
    }
}
