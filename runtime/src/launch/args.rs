//! Arguments of a launch: checked against the `.param` list and written into the parameter block.

use handloom_ir::simt::Param;
use handloom_ir::types::{ScalarType, TypeClass};

use crate::device::{DeviceBuffer, DeviceInner};
use crate::error::{Wrong, wrong};
use crate::trap::Binding;

/// One argument, for one kernel parameter.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// The address of a buffer's byte.
    Buffer {
        /// The buffer.
        buffer: &'a DeviceBuffer,
        /// Which byte.
        offset: u64,
    },
    /// The bytes of the parameter, little-endian: as many as it has.
    Bytes(&'a [u8]),
    /// A scalar of up to 8 bytes: cut to the parameter's size, which must not lose set bits unless they repeat the sign.
    Scalar(u64),
}

impl<'a> From<&'a DeviceBuffer> for Arg<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Self {
        Arg::Buffer { buffer, offset: 0 }
    }
}

macro_rules! scalar_arg {
    ($($t:ty => $bits:expr),*) => {$(
        impl From<$t> for Arg<'_> {
            fn from(v: $t) -> Self {
                let bits: fn($t) -> u64 = $bits;
                Arg::Scalar(bits(v))
            }
        }
    )*};
}

scalar_arg! {
    u32 => u64::from,
    u64 => |v| v,
    i32 => |v| i64::from(v).cast_unsigned(),
    i64 => i64::cast_unsigned,
    f32 => |v| u64::from(v.to_bits()),
    f64 => f64::to_bits
}

/// Writes arguments into a parameter block.
///
/// # Errors
/// How many or which arguments were expected.
pub(crate) fn write_args(
    entry: &str,
    params: &[Param],
    args: &[Arg<'_>],
    device: &DeviceInner,
    is_low: bool,
    block: &mut Vec<u8>,
) -> Result<Vec<Binding>, Wrong> {
    if params.len() != args.len() {
        let list: Vec<String> = params.iter().map(|p| format!("{} {}", type_of(p), p.name)).collect();
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        let s = if args.len() == 1 { "" } else { "s" };
        return Err(wrong!(ArgumentCount, "{} argument{s}: `{entry}` takes {} ({list})", args.len(), params.len()));
    }
    let size = params.iter().map(|p| index(p.offset) + index(p.size)).max().unwrap_or(0);
    block.clear();
    block.resize(size, 0);
    let mut bindings = Vec::new();
    for (i, (p, arg)) in params.iter().zip(args).enumerate() {
        let to = &mut block[index(p.offset)..][..index(p.size)];
        match arg {
            Arg::Buffer { buffer, offset } => {
                let address = check_buffer(i + 1, p, buffer, *offset, device, is_low)?;
                to.copy_from_slice(&address.to_le_bytes()[..to.len()]);
                bindings.push(Binding { number: i + 1, name: p.name.clone(), base: buffer.address() });
            }
            Arg::Bytes(bytes) => {
                if bytes.len() != to.len() {
                    return Err(wrong!(
                        ArgumentSize,
                        "argument {}: {} bytes for `{}`, which is {} of {} bytes",
                        i + 1,
                        bytes.len(),
                        p.name,
                        type_of(p),
                        p.size
                    ));
                }
                to.copy_from_slice(bytes);
            }
            Arg::Scalar(value) => {
                let bytes = check_scalar(i + 1, p, *value)?;
                to.copy_from_slice(&bytes[..to.len()]);
            }
        }
    }
    Ok(bindings)
}

fn index(n: u32) -> usize {
    n as usize
}

/// The type as declared.
fn type_of(p: &Param) -> String {
    if p.is_array { format!("{}[{}]", p.ty, p.size / p.ty.bytes().max(1)) } else { p.ty.to_string() }
}

fn check_buffer(
    number: usize,
    p: &Param,
    buffer: &DeviceBuffer,
    offset: u64,
    device: &DeviceInner,
    is_low: bool,
) -> Result<u64, Wrong> {
    if !buffer.belongs_to(device) {
        return Err(wrong!(InvalidHandle, "argument {number}: the buffer for `{}` belongs to another device", p.name));
    }
    let is_int = matches!(p.ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
    let want = if is_low && p.size == 4 { 4 } else { 8 };
    if p.is_array || !is_int || p.size != want {
        return Err(wrong!(
            ArgumentSize,
            "argument {number}: a buffer for `{}`, which is {} and cannot hold an address",
            p.name,
            type_of(p)
        ));
    }
    if offset > buffer.len() {
        return Err(wrong!(
            InvalidValue,
            "argument {number}: an offset of {offset} for `{}`: the buffer has {} bytes",
            p.name,
            buffer.len()
        ));
    }
    if is_low && !buffer.is_low() {
        return Err(wrong!(
            InvalidValue,
            "argument {number}: the buffer for `{}` lies above 4 GiB, where a module of address size 32 cannot reach it",
            p.name
        ));
    }
    Ok(buffer.address() + offset)
}

fn check_scalar(number: usize, p: &Param, value: u64) -> Result<[u8; 8], Wrong> {
    if p.is_array || p.size > 8 || p.ty == ScalarType::Pred {
        return Err(wrong!(
            ArgumentSize,
            "argument {number}: a scalar for `{}`, which is {} of {} bytes",
            p.name,
            type_of(p),
            p.size
        ));
    }
    let bits = p.size * 8;
    let high = if bits == 64 { 0 } else { value >> bits };
    let negative = bits < 64 && high == u64::MAX >> bits && value >> (bits - 1) & 1 == 1;
    if high != 0 && !negative {
        return Err(wrong!(
            InvalidValue,
            "argument {number}: {value:#x} does not fit `{}`, which is {}",
            p.name,
            type_of(p)
        ));
    }
    Ok(value.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    fn param(name: &str, offset: u32, size: u32, ty: ScalarType, is_array: bool) -> Param {
        Param { name: name.into(), offset, size, align: size.min(8), ty, is_array }
    }

    #[test]
    fn arguments_are_laid_out_and_bound() {
        let d = Device::new().unwrap();
        let b = d.zeroed(16).unwrap();
        let params = [
            param("n", 0, 4, ScalarType::U32, false),
            param("p", 8, 8, ScalarType::U64, false),
            param("s", 16, 3, ScalarType::B8, true),
        ];
        let mut block = Vec::new();
        let args = [Arg::from(-1_i32), Arg::Buffer { buffer: &b, offset: 4 }, Arg::Bytes(&[1, 2, 3])];
        let bound = write_args("k", &params, &args, &d.inner, false, &mut block).unwrap();
        assert_eq!(block[..4], [255; 4]);
        assert_eq!(block[8..16], (b.address() + 4).to_le_bytes());
        assert_eq!(block[16..], [1, 2, 3]);
        assert_eq!(bound, [Binding { number: 2, name: "p".into(), base: b.address() }]);
    }

    #[test]
    fn wrong_arguments_are_told() {
        let d = Device::new().unwrap();
        let b = d.zeroed(16).unwrap();
        let params = [param("n", 0, 4, ScalarType::F32, false)];
        let complain = |args: &[Arg<'_>]| {
            let wrong = write_args("k", &params, args, &d.inner, false, &mut Vec::new()).err();
            wrong.map(|wrong| wrong.to_string()).unwrap_or_default()
        };
        assert_eq!(complain(&[]), "0 arguments: `k` takes 1 (.f32 n)");
        assert!(complain(&[Arg::from(&b)]).contains("cannot hold an address"));
        assert!(complain(&[Arg::Bytes(&[0; 8])]).contains("8 bytes for `n`, which is .f32 of 4 bytes"));
        assert!(complain(&[Arg::from(1_u64 << 40)]).contains("does not fit"));
        assert_eq!(complain(&[Arg::from(1.5_f32)]), "");
    }
}
