//! Arguments of a launch: checked against the `.param` list and written into the parameter block.

use handloom_ir::simt::Param;
use handloom_ir::types::{ScalarType, TypeClass};

use crate::device::{DeviceBuffer, DeviceInner, HostBuffer};
use crate::error::{Wrong, wrong};
use crate::module::type_of;
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
    /// The address of memory of the process.
    Host(&'a HostBuffer),
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
            Arg::Host(buffer) => {
                check_device(i + 1, p, buffer.belongs_to(device))?;
                check_pointer(i + 1, p, is_low)?;
                let address = buffer.address();
                if is_low {
                    return Err(too_high(i + 1, p));
                }
                to.copy_from_slice(&address.to_le_bytes()[..to.len()]);
                bindings.push(Binding { number: i + 1, name: p.name.clone(), base: address });
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

fn check_buffer(
    number: usize,
    p: &Param,
    buffer: &DeviceBuffer,
    offset: u64,
    device: &DeviceInner,
    is_low: bool,
) -> Result<u64, Wrong> {
    check_device(number, p, buffer.belongs_to(device))?;
    check_pointer(number, p, is_low)?;
    if offset > buffer.len() {
        return Err(wrong!(
            InvalidValue,
            "argument {number}: an offset of {offset} for `{}`: the buffer has {} bytes",
            p.name,
            buffer.len()
        ));
    }
    if is_low && !buffer.is_low() {
        return Err(too_high(number, p));
    }
    Ok(buffer.address() + offset)
}

fn check_device(number: usize, p: &Param, is_own: bool) -> Result<(), Wrong> {
    if is_own {
        return Ok(());
    }
    Err(wrong!(InvalidHandle, "argument {number}: the buffer for `{}` belongs to another device", p.name))
}

/// Whether a parameter can hold an address.
fn check_pointer(number: usize, p: &Param, is_low: bool) -> Result<(), Wrong> {
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
    Ok(())
}

fn too_high(number: usize, p: &Param) -> Wrong {
    wrong!(
        InvalidValue,
        "argument {number}: the buffer for `{}` lies above 4 GiB, where a module of address size 32 cannot reach it",
        p.name
    )
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
    use handloom_diag::Style;

    use super::*;
    use crate::device::Device;
    use crate::grid::LaunchReport;
    use crate::launch::{Engine, LaunchConfig, LaunchError, launch};
    use crate::memory::Elements;
    use crate::module::{Function, Module};

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

    fn run(f: &Function, c: &LaunchConfig, n: u32, x: Arg<'_>, y: Arg<'_>) -> Result<LaunchReport, LaunchError> {
        launch(f, c, &[Arg::from(n), Arg::from(0.5_f32), x, y])
    }

    /// The report of a launch that traps.
    fn told(f: &Function, c: &LaunchConfig, n: u32, x: Arg<'_>, y: Arg<'_>) -> String {
        match run(f, c, n, x, y) {
            Err(LaunchError::Trap(report)) => report.human(Style::Plain, None),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memory_of_the_process_is_a_buffer() {
        let d = Device::new().unwrap();
        let text = include_str!("../../../tests/kernels/saxpy.ptx");
        let saxpy = Module::from_text(&d, "saxpy.ptx", text).unwrap().function(None).unwrap();
        let mut all = vec![1.0_f32; 48];
        let at = all.as_mut_ptr().expose_provenance() as u64;
        let elements = Elements { ty: "f32".into(), bytes: 4, shape: vec![4, 4] };
        // SAFETY: `all` lives longer than these, and nobody uses it meanwhile.
        let lend =
            |offset, is_writable| unsafe { HostBuffer::lend(&d, at + offset, 64, is_writable, Some(elements.clone())) };
        for engine in [Engine::Interp, Engine::Jit] {
            let config = LaunchConfig { engine, ..LaunchConfig::for_num_elems(32) };
            let (x, y) = (lend(0, false), lend(128, true));
            y.write(&2.0_f32.to_le_bytes().repeat(16));
            run(&saxpy, &config, 16, Arg::Host(&x), Arg::Host(&y)).unwrap().clean().unwrap();
            assert_eq!(y.to_vec(), 2.5_f32.to_le_bytes().repeat(16));
            let past = told(&saxpy, &config, 17, Arg::Host(&x), Arg::Host(&y));
            assert!(
                past.contains("saxpy_param_2+64, 0 bytes past the end of memory of the process of 64 bytes"),
                "{past}"
            );
            assert!(past.contains("`saxpy_param_2` is argument 3: 16 elements of f32 (4x4)"), "{past}");
            let protected = told(&saxpy, &config, 16, Arg::Host(&y), Arg::Host(&x));
            assert!(protected.contains("in memory of the process that can only be read"), "{protected}");
            let address = x.address();
            drop((x, y));
            assert!(
                told(&saxpy, &config, 1, Arg::from(address), Arg::from(address)).contains("outside every allocation")
            );
        }
        let other = Device::new().unwrap();
        // SAFETY: no bytes are lent.
        let elsewhere = unsafe { HostBuffer::lend(&other, at, 0, true, None) };
        let args = [Arg::from(0_u32), Arg::from(0.0_f32), Arg::Host(&elsewhere), Arg::Host(&elsewhere)];
        let told = launch(&saxpy, &LaunchConfig::for_num_elems(1), &args).unwrap_err().to_string();
        assert_eq!(told, "argument 3: the buffer for `saxpy_param_2` belongs to another device");
    }
}
