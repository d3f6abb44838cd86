//! Values of parameters and variables, from what was typed or written in a job to what a launch takes.

use handloom_ir::simt::Param;
use handloom_runtime::{Arg, Module};

use crate::buffers::{Buffers, Content};
use crate::layout::{Image, Item, Place};
use crate::names::{self, Found};
use crate::report::Failure;

/// The value of a parameter, without addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// The address of a byte of a buffer.
    Buffer {
        /// Number of the buffer.
        index: usize,
        /// The byte.
        offset: u64,
    },
    /// A scalar.
    Scalar(u64),
    /// Bytes with addresses.
    Image(Image),
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bound {
    /// A buffer, which reports name by the parameter.
    Buffer {
        /// Number of the buffer.
        index: usize,
        /// The byte.
        offset: u64,
    },
    /// A scalar.
    Scalar(u64),
    /// All bytes.
    Bytes(Vec<u8>),
}

/// Bytes of an address in a module.
pub fn word(module: &Module) -> usize {
    if module.is_low() { 4 } else { 8 }
}

impl Value {
    /// Lays an item out for a parameter; none if there are too many arguments, of which the runtime tells.
    ///
    /// # Errors
    /// It is no structure of the parameter's size.
    pub fn item(item: &Item, param: Option<&Param>, word: usize) -> Result<Value, String> {
        let image = item.lay_out(word)?;
        if let (Item::Struct(_), Some(p)) = (item, param)
            && image.len() != p.size as usize
        {
            let (is, want) = (image.describe(), p.size);
            return Err(format!("a structure of {is}, for `{}`, which has {want} bytes", p.name));
        }
        Ok(Value::Image(image))
    }

    /// With addresses. `number` of the argument counts from 1.
    ///
    /// # Errors
    /// An address is not known.
    pub fn bind(&self, number: usize, buffers: &Buffers, module: &Module) -> Result<Bound, Failure> {
        Ok(match self {
            Value::Buffer { index, offset } => Bound::Buffer { index: *index, offset: *offset },
            Value::Scalar(bits) => Bound::Scalar(*bits),
            Value::Image(image) => {
                let bytes = image.resolve(|place| address_of(place, buffers, module));
                Bound::Bytes(bytes.map_err(|f| at(&format!("argument {number}"), f))?)
            }
        })
    }
}

impl Bound {
    /// As an argument of a launch.
    pub fn arg<'a>(&'a self, buffers: &'a Buffers) -> Arg<'a> {
        match self {
            Bound::Buffer { index, offset } => Arg::Buffer { buffer: &buffers.0[*index].device, offset: *offset },
            Bound::Scalar(bits) => Arg::Scalar(*bits),
            Bound::Bytes(bytes) => Arg::Bytes(bytes),
        }
    }
}

/// A failure with its place in front.
pub fn at(place: &str, failure: Failure) -> Failure {
    if failure.message.is_empty() {
        return failure;
    }
    Failure { message: format!("{place}: {}", failure.message), ..failure }
}

/// The address of a place, for a module.
///
/// # Errors
/// It lies outside, or there is no such variable.
pub fn address_of(place: &Place, buffers: &Buffers, module: &Module) -> Result<u64, Failure> {
    buffers.address(place, |name, offset| global_address(module, name, offset))
}

/// The address of a byte of a variable.
///
/// # Errors
/// There is no such variable or byte.
pub fn global_address(module: &Module, name: &str, offset: u64) -> Result<u64, Failure> {
    let (address, size) = global(module, name)?;
    if offset > size {
        return Err(Failure::usage(format!("an offset of {offset} in `{name}`, which has {size} bytes")));
    }
    Ok(address + offset)
}

/// Address and size of a variable.
///
/// # Errors
/// There is no such variable: which ones there are.
pub fn global(module: &Module, name: &str) -> Result<(u64, u64), Failure> {
    variable(module, name).and_then(|n| module.global(n)).ok_or_else(|| match names::find(module.globals(), name) {
        Found::Many(many) => {
            Failure::usage(format!("which variable: `{name}` may be {}", names::list(many.iter().copied())))
        }
        Found::None | Found::One(_) => {
            let has = if module.globals().next().is_none() { "none".to_owned() } else { names::list(module.globals()) };
            Failure::usage(format!("no `.global` or `.const` variable `{name}`: the module has {has}"))
        }
    })
}

/// The variable that a name means, as entries are named; none if there is none or there are several.
pub fn variable<'m>(module: &'m Module, name: &str) -> Option<&'m str> {
    match names::find(module.globals(), name) {
        Found::One(found) => Some(found),
        Found::None | Found::Many(_) => None,
    }
}

/// The bytes of a variable; none if there is none of that name.
pub fn read_global(module: &Module, name: &str) -> Vec<u8> {
    variable(module, name).and_then(|n| module.read_global(n)).unwrap_or_default()
}

/// Checks that a variable takes a content as a whole, or from an offset on.
///
/// # Errors
/// It does not.
pub fn check_fill(module: &Module, name: &str, offset: Option<u64>, content: &Content) -> Result<(), Failure> {
    let (_, size) = global(module, name)?;
    let bytes = content.len();
    let fits = match offset {
        None => bytes == size,
        Some(offset) => offset.checked_add(bytes).is_some_and(|end| end <= size),
    };
    if fits {
        return Ok(());
    }
    let from = offset.map_or(String::new(), |o| format!(" from byte {o} on"));
    let help = if offset.is_none() && bytes < size { "; an offset fills a part" } else { "" };
    let why = format!("{bytes} bytes{from} for `{name}`, which has {size} bytes{help}");
    Err(if content.is_file() { Failure::file(why) } else { Failure::usage(why) })
}

/// Fills a variable. [`check_fill`] was asked before.
///
/// # Errors
/// An address is not known.
pub fn fill(
    module: &Module,
    name: &str,
    offset: Option<u64>,
    content: &Content,
    buffers: &Buffers,
) -> Result<(), Failure> {
    let bytes = content.bytes(|place| address_of(place, buffers, module))?;
    if let Some(name) = variable(module, name) {
        module.write_global(name, offset.unwrap_or(0), &bytes);
    }
    Ok(())
}
