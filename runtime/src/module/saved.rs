//! Code of an entry as bytes, which another process of the same build can take.
//!
//! Machine code of both generators can lie anywhere: it has no addresses but distances inside itself, and finds routines, symbols, tables and constants through
//! what it is given when it is called. So its bytes are kept as they are, with the tables that the runtime reads beside it.

use std::borrow::Cow;

use handloom_codegen::Code;
use handloom_ir::simt::{ByFunction, Callee, FrameLayout, FuncId, ParamPlace};
use handloom_plan::abi::Tables;
use serde::{Deserialize, Serialize, Serializer};

use super::program::Codes;
use crate::run::Tier;

/// Code of one tier.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tier: Tier,
    /// What kept the entry from wide code.
    pub(super) refused: Option<String>,
    /// For each function that it may call, in order: bytes that must be there when that is called ([`FrameLayout::reach`]).
    pub(super) reaches: Vec<u64>,
    /// Parameters that are worth to be constants of other code.
    pub(super) places: Vec<ParamPlace>,
    pub(super) codes: Codes,
}

#[derive(Serialize, Deserialize)]
struct Entry<'a, T> {
    tier: u8,
    refused: Cow<'a, Option<String>>,
    reaches: Cow<'a, [u64]>,
    places: Cow<'a, [ParamPlace]>,
    #[serde(borrow)]
    functions: Vec<Function<'a, T>>,
}

#[derive(Serialize, Deserialize)]
struct Function<'a, T> {
    number: u32,
    #[serde(serialize_with = "as_bytes", borrow)]
    code: &'a [u8],
    #[serde(serialize_with = "as_bytes", borrow)]
    pool: &'a [u8],
    tables: T,
}

fn as_bytes<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// Writes code.
pub(super) fn write(
    tier: Tier,
    refused: &Option<String>,
    frames: &ByFunction<FrameLayout>,
    places: &[ParamPlace],
    codes: &Codes,
) -> Option<Vec<u8>> {
    let functions = codes.iter().map(|(f, code)| {
        let (number, code, pool, tables) = (f.0, code.bytes(), code.pool(), &*code.tables);
        Function { number, code, pool, tables }
    });
    let reaches: Vec<u64> = frames.values().map(|f| f.reach).collect();
    let entry = Entry {
        tier: tier as u8,
        refused: Cow::Borrowed(refused),
        reaches: reaches.into(),
        places: places.into(),
        functions: functions.collect(),
    };
    postcard::to_allocvec(&entry).ok()
}

/// Reads and places what was written for an entry that may call functions with these frames.
pub(super) fn read(bytes: &[u8], frames: &ByFunction<FrameLayout>, entry: FuncId) -> Option<Loaded> {
    let (saved, rest): (Entry<'_, Tables>, &[u8]) = postcard::take_from_bytes(bytes).ok()?;
    let tier = *Tier::ALL.get(usize::from(saved.tier))?;
    if !rest.is_empty() || saved.reaches.len() != frames.values().count() {
        return None;
    }
    let mut codes = Vec::new();
    for f in saved.functions {
        let number = FuncId(f.number);
        if !fits(&f.tables, frames) || frames.get(number).is_none() {
            return None;
        }
        // SAFETY: these are bytes and tables of a function that a process of this build kept, under a digest of what it was made from; the store tells
        // that they are the user's own and what was written. So they are a function of the contract, as what the generators make now.
        let code = unsafe { Code::place(f.code, 64, f.tables, f.pool.to_vec()) }.ok()?;
        codes.push((number, code));
    }
    let codes: Codes = codes.into_iter().collect();
    codes.get(entry)?;
    let (refused, reaches, places) =
        (saved.refused.into_owned(), saved.reaches.into_owned(), saved.places.into_owned());
    Some(Loaded { tier, refused, reaches, places, codes })
}

/// Whether the numbers in tables are of things that are there.
fn fits(t: &Tables, frames: &ByFunction<FrameLayout>) -> bool {
    let n_blocks = t.n_blocks;
    let next = t.barriers.iter().map(|s| s.next).chain(t.yields.iter().map(|s| s.next));
    let mut next = next.chain(t.calls.iter().map(|s| s.next)).chain(t.syncs.iter().map(|s| s.next));
    let is_there = |callee: Callee| match callee {
        Callee::Direct(f) => frames.get(f).is_some(),
        Callee::Indirect => true,
    };
    t.block_spans.len() == n_blocks as usize
        && t.ctx_bytes.is_multiple_of(64)
        && u64::from(t.pend_offset) + 4 * u64::from(n_blocks) <= u64::from(t.ctx_bytes)
        && next.all(|b| b < n_blocks)
        && t.calls.iter().all(|c| is_there(c.callee))
}
