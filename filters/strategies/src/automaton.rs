//! An expression that is only asked whether it matches. Every process that filters compiles it anew, so it is what compiles fastest: a
//! single automaton over bytes that is built as far as texts need it.

use std::error::Error;
use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{Config, NFA, WhichCaptures};
use regex_automata::util::pool::{Pool, PoolGuard};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Hir, Look};

/// Bytes that what was built of an automaton may take; beyond them it is built anew.
const CACHE_BYTES: usize = 2 << 20;

/// Makes what a search needs besides the automaton.
type MakeCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// An expression, compiled.
#[derive(Debug)]
pub struct Automaton {
    dfa: DFA,
    /// Whether it matches at the beginning of a text or nowhere: a search is over as soon as nothing can come of it.
    anchored: Anchored,
    caches: Pool<Cache, MakeCache>,
}

impl Automaton {
    /// Compiles an expression of the program. Classes and `\b` are those of ASCII; what is outside it stands in `(?u:…)`.
    ///
    /// Panics when it is none: for expressions that a test compiles.
    pub fn new(pattern: &str) -> Self {
        Self::compile(pattern).expect("bug: a built-in expression does not compile")
    }

    fn compile(pattern: &str) -> Result<Self, Box<dyn Error>> {
        let syntax = syntax::Config::new().unicode(false).utf8(false);
        Self::of_hir(&syntax::parse_with(pattern, &syntax)?, None)
    }

    /// Makes the automaton of a parsed expression, which holds no `\b` of Unicode.
    ///
    /// Errors: it comes to more than `bytes_max`.
    pub(crate) fn of_hir(hir: &Hir, bytes_max: Option<usize>) -> Result<Self, Box<dyn Error>> {
        let is_anchored = hir.properties().look_set_prefix().contains(Look::Start);
        let nfa = Config::new()
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(bytes_max)
            .utf8(false);
        let nfa = NFA::compiler().configure(nfa).build_from_hir(hir)?;
        let config = DFA::config()
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa)?;
        let of_pool = dfa.clone();
        Ok(Self {
            dfa,
            anchored: match is_anchored {
                true => Anchored::Yes,
                false => Anchored::No,
            },
            caches: Pool::new(Box::new(move || of_pool.create_cache())),
        })
    }

    /// Whether it matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.search().is_match(text)
    }

    /// A search of many texts.
    pub fn search(&self) -> Search<'_> {
        Search {
            automaton: self,
            cache: self.caches.get(),
        }
    }
}

/// A search of many texts, one after the other.
pub struct Search<'a> {
    automaton: &'a Automaton,
    cache: PoolGuard<'a, Cache, MakeCache>,
}

impl Search<'_> {
    /// Whether the expression matches anywhere in a text.
    pub fn is_match(&mut self, text: &str) -> bool {
        let Automaton { dfa, anchored, .. } = self.automaton;
        let input = Input::new(text).earliest(true).anchored(*anchored);
        let found = dfa.try_search_fwd(&mut self.cache, &input);
        // It gives up on no text; if it did, a line too many would be shown.
        found.is_ok_and(|found| found.is_some())
    }
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let search = &mut f.debug_struct("Search");
        search
            .field("automaton", self.automaton)
            .finish_non_exhaustive()
    }
}
