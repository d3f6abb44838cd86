//! Litmus tests: small programs of two to four threads with an outcome that the memory consistency model forbids.
//!
//! A file of `tests/litmus` is a *shape*: the bodies of its threads, and what must never come out. Its lines:
//!
//! | line | meaning |
//! |---|---|
//! | `# text` | a remark |
//! | `locations x y=1` | 32-bit locations with their initial values; a body names them as `[x]` |
//! | `place 0 1`, `place 0, 1`, `place 0 \| 1` | threads in one warp, in two warps of a block, in two blocks; repeatable |
//! | `scope cta gpu sys` | values of `{scope}`; `{level}` is the word that `membar` has for it |
//! | `mem global shared generic` | values of `{mem}`, the state space with its dot; shared memory only where all threads share a block |
//! | `with name` and indented lines | values of `{name}`, one a line; `-` is no statement. Behind `?` no claim is made |
//! | `thread 0` and indented lines | the body: PTX; results go to `r0` to `r7` |
//! | `forbidden 1:r0 == 1 && x == 0` | the outcome: registers of threads and last values of locations; `\|\|` binds weaker than `&&` |
//!
//! A *case* is one choice of each. The outcome counts as forbidden if no value behind `?` was chosen and the scope reaches all threads;
//! else the case only has to run. Many instances of a case run in one launch, on memory of their own: all threads meet before each round
//! of up to 32 of them, and set off after delays that come from the seed.
//!
//! How to read it: [`mod@file`] reads a shape, [`kernel`] makes the PTX of a case, [`run`] launches it and counts outcomes.

pub mod file;
pub mod kernel;
pub mod run;
