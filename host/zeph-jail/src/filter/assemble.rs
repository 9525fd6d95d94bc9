//! Instructions of the filter. The accumulator holds one word of the call at a time: its number or half an argument.

/// Loads the word at `k` of `struct seccomp_data`.
const LOAD: u16 = 0x20;
/// Jumps when the accumulator equals `k`.
const EQUAL: u16 = 0x15;
/// Jumps when the accumulator is at least `k`.
const AT_LEAST: u16 = 0x35;
/// Jumps when the accumulator has a bit of `k`.
const HAS: u16 = 0x45;
/// Keeps the bits of `k`.
const KEEP: u16 = 0x54;
/// Answers `k`.
const ANSWER: u16 = 0x06;

const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const THIS_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_ARCHITECTURE: u32 = 0xc000_00b7;

/// The newest call this filter knows (`removexattrat`, Linux 6.13); later ones are answered "not there".
const NEWEST: u32 = 466;

/// Where the low half of an argument stands. The high half is never looked at: the kernel drops it from every argument that
/// is judged here, so judging it would open a hole.
fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// A filter in the making.
pub(super) struct Program {
    code: Vec<[u8; 8]>,
}

/// One step of judging the arguments of a call.
pub(super) enum Step {
    /// Looks at another argument.
    Argument(u32),
    /// Keeps these bits of it.
    Keep(u32),
    /// Ends well if it equals this.
    AllowEqual(u32),
    /// Ends well if it has none of these bits.
    AllowWithout(u32),
    /// Ends badly unless it equals this.
    RefuseUnless(u32),
    /// Ends badly if it equals this.
    RefuseEqual(u32),
    /// Ends badly if it has one of these bits.
    RefuseWith(u32),
}

impl Program {
    /// Begins with what is refused whatever the number says.
    pub(super) fn start() -> Self {
        let mut program = Self { code: Vec::new() };
        program.add(LOAD, 0, 0, ARCHITECTURE);
        program.add(EQUAL, 1, 0, THIS_ARCHITECTURE);
        program.add(ANSWER, 0, 0, KILL_PROCESS);
        program.add(LOAD, 0, 0, NUMBER);
        // This covers the second x86-64 numbering too, which begins at 2^30.
        program.add(AT_LEAST, 0, 1, NEWEST + 1);
        program.answer_error(libc::ENOSYS);
        program
    }

    /// Refuses a call with `error`.
    pub(super) fn refuse(&mut self, number: i64, error: i32) {
        self.add(EQUAL, 0, 1, call(number));
        self.answer_error(error);
    }

    /// Judges the arguments of a call step by step. What no step decided is refused or allowed as `otherwise` says.
    pub(super) fn judge(&mut self, number: i64, steps: &[Step], otherwise: Otherwise) {
        let jump = self.code.len();
        self.add(EQUAL, 0, 0, call(number));
        for step in steps {
            match *step {
                Step::Argument(index) => self.add(LOAD, 0, 0, argument(index)),
                Step::Keep(bits) => self.add(KEEP, 0, 0, bits),
                Step::AllowEqual(value) => {
                    self.add(EQUAL, 0, 1, value);
                    self.add(ANSWER, 0, 0, ALLOW);
                }
                Step::AllowWithout(bits) => {
                    self.add(HAS, 1, 0, bits);
                    self.add(ANSWER, 0, 0, ALLOW);
                }
                Step::RefuseUnless(value) => {
                    self.add(EQUAL, 1, 0, value);
                    self.answer_error(libc::EPERM);
                }
                Step::RefuseEqual(value) => {
                    self.add(EQUAL, 0, 1, value);
                    self.answer_error(libc::EPERM);
                }
                Step::RefuseWith(bits) => {
                    self.add(HAS, 0, 1, bits);
                    self.answer_error(libc::EPERM);
                }
            }
        }
        match otherwise {
            Otherwise::Allow => self.add(ANSWER, 0, 0, ALLOW),
            Otherwise::Refuse => self.answer_error(libc::EPERM),
        }
        let length = self.code.len() - jump - 1;
        let length = u8::try_from(length).unwrap_or_else(|_| panic!("bug: a judgement too long"));
        // The false branch of the first jump leads past the judgement.
        self.code[jump][3] = length;
    }

    /// Allows the rest.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.add(ANSWER, 0, 0, ALLOW);
        self.code.concat()
    }

    fn answer_error(&mut self, error: i32) {
        self.add(ANSWER, 0, 0, ERRNO | error.unsigned_abs());
    }

    fn add(&mut self, code: u16, if_true: u8, if_false: u8, k: u32) {
        let [code_low, code_high] = code.to_ne_bytes();
        let [k0, k1, k2, k3] = k.to_ne_bytes();
        self.code
            .push([code_low, code_high, if_true, if_false, k0, k1, k2, k3]);
    }
}

/// What becomes of a call that no step decided.
#[derive(Clone, Copy)]
pub(super) enum Otherwise {
    Allow,
    Refuse,
}

fn call(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| panic!("bug: a call without a number"))
}
