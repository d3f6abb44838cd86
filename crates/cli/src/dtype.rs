//! Warnings of arrays whose elements have another type than the kernel reads.

use std::collections::BTreeMap;

use handloom_diag::{Code, Diagnostic};
use handloom_ir::types::ScalarType;
use handloom_lower::{Reads, float_reads};
use handloom_runtime::Function;

use crate::buffers::Buffers;
use crate::elements::Kind;
use crate::layout::Place;
use crate::values::Value;

/// Warns of the arguments of a launch.
pub fn warnings(function: &Function, values: &[Value], buffers: &Buffers) -> Vec<Diagnostic> {
    let has_arrays = buffers.0.iter().any(|b| b.array.is_some());
    if !has_arrays {
        return Vec::new();
    }
    let reads = float_reads(function.module().ir(), function.name());
    let mut list = Vec::new();
    for (i, (value, p)) in values.iter().zip(function.params()).enumerate() {
        let mut look = |offset: u32, index: usize, what: &str| {
            list.extend(warning(&reads, p.offset + offset, buffers, index, &format!("argument {}{what}", i + 1)));
        };
        match value {
            Value::Buffer { index, .. } => look(0, *index, ""),
            Value::Scalar(_) => {}
            Value::Image(image) => {
                for (at, place) in image.addresses() {
                    if let (Place::Buffer { index, .. }, Ok(offset)) = (place, u32::try_from(*at)) {
                        look(offset, *index, &format!(", byte {at}"));
                    }
                }
            }
        }
    }
    list
}

fn warning(
    reads: &BTreeMap<u32, Reads>,
    offset: u32,
    buffers: &Buffers,
    index: usize,
    argument: &str,
) -> Option<Diagnostic> {
    let buffer = buffers.0.get(index)?;
    let array = buffer.array.as_ref()?;
    let held = match array.element?.kind {
        Kind::Number(ty) | Kind::Complex(ty) => ty,
        Kind::Bool => return None,
    };
    let (read, span) = reads.get(&offset)?.contradiction(held)?;
    let (read, name) = (read.name().trim_start_matches('.'), &buffer.name);
    let of = if name.is_empty() { argument.to_owned() } else { format!("{argument}: `{name}`") };
    let message = format!("{of} holds {}, and the kernel reads {read}", array.type_name());
    let wide = if held == ScalarType::S64 { "; NumPy makes 64-bit integers of plain lists" } else { "" };
    Some(
        Diagnostic::warning(Code::WElements, span, message)
            .label(format!("the values go into operations of {read} only"))
            .help(format!("save the array as {read}, with `.astype`{wide}")),
    )
}
