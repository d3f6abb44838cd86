//! Kernels that do forms of `cvt` on many values at once.
//!
//! A thread reads row `i` of the sources, does each form, and writes the results into slots of 8 bytes. A form appears twice where the
//! rules of operand sizes allow it: with registers of the natural width, and with 64-bit registers whose upper bits hold garbage on the
//! way in and an extension on the way out.

use std::fmt::Write as _;
use std::time::Duration;

use handloom_runtime::{Arg, Device, DeviceBuffer, LaunchConfig, Module, PreparedLaunch};

use super::forms::{Elem, Form, Round};
use super::oracle::{has_bf16, result_bits, sources};
use crate::engines;

/// How the threads of a kernel get their row, and which of them take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A row for each thread, all threads together.
    Whole,
    /// The same, but two threads of each seven leave before the conversions.
    Parted,
    /// A row for each block, so that the value is the same in all threads.
    Uniform,
}

/// A form with the width of its registers.
#[derive(Clone, Copy, Debug)]
pub struct Step<'f> {
    /// The form.
    pub form: &'f Form,
    /// Whether registers have 64 bits.
    pub wide: bool,
}

impl Step<'_> {
    /// Bits of the result register.
    pub fn result_bits(self) -> u32 {
        match result_bits(self.form) {
            _ if self.wide => 64,
            8 if matches!(self.form.to, Elem::Int(..)) && !has_bf16(self.form) => 16,
            bits => bits,
        }
    }

    /// Bits of source `i`, the register's.
    fn source_bits(self, i: usize) -> u32 {
        let form = self.form;
        let own = if form.packed { 1 } else { form.count as usize };
        match form.from.step() * if form.packed { form.count } else { 1 } {
            _ if i >= own => {
                if form.scaled {
                    16
                } else {
                    32
                }
            }
            _ if self.wide => 64,
            8 if matches!(form.from, Elem::Int(..)) && !has_bf16(form) => 16,
            bits => bits,
        }
    }

    /// How a failure calls it.
    pub fn name(self) -> String {
        format!("{}{}", self.form.text, if self.wide { ", 64-bit registers" } else { "" })
    }

    fn statement(self) -> String {
        let source = |i: usize| format!("%s{}_{i}", self.source_bits(i));
        let n = sources(self.form);
        let list: Vec<String> = (0..n).map(source).collect();
        let operands = match (self.form.count, self.form.round) {
            (4, Some(Round::Random)) => format!("{{{}}}, {}", list[..4].join(", "), list[4]),
            _ => list.join(", "),
        };
        format!("{} %d{}, {operands};", self.form.text, self.result_bits())
    }
}

/// Both steps of a form, or the one it has.
pub fn steps(form: &Form) -> impl Iterator<Item = Step<'_>> {
    let wide = form.relaxed();
    [Step { form, wide: false }].into_iter().chain(wide.then_some(Step { form, wide: true }))
}

/// Text of an entry that does steps with the same sources, `rows` rows apart.
pub fn entry(steps: &[Step<'_>], shape: Shape, rows: usize) -> String {
    let mut text = String::new();
    let n = sources(steps[0].form);
    let params: Vec<String> = (0..=n).map(|i| format!(".param .u64 p{i}")).collect();
    let _ = write!(
        text,
        ".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry convert({})\n{{\n\
         .reg .b32 %i, %n, %t;\n.reg .b64 %at, %p;\n.reg .pred %q;\n",
        params.join(", ")
    );
    for bits in [8, 16, 32, 64] {
        let list: Vec<String> = (0..n).map(|i| format!("%s{bits}_{i}")).collect();
        let _ = writeln!(text, ".reg .b{bits} {}, %d{bits};", list.join(", "));
    }
    let index = match shape {
        Shape::Uniform => "mov.u32 %i, %ctaid.x;\n",
        _ => "mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, %n, %t;\n",
    };
    text.push_str(index);
    if shape == Shape::Parted {
        text.push_str("rem.u32 %n, %i, 7;\nsetp.gt.u32 %q, %n, 4;\n@%q bra done;\n");
    }
    text.push_str("mul.wide.u32 %at, %i, 8;\n");
    for i in 0..n {
        let mut widths: Vec<u32> = steps.iter().map(|s| s.source_bits(i)).collect();
        widths.sort_unstable();
        widths.dedup();
        let _ = writeln!(text, "ld.param.u64 %p, [p{i}];\nadd.u64 %p, %p, %at;");
        for bits in widths {
            let _ = writeln!(text, "ld.global.b{bits} %s{bits}_{i}, [%p];");
        }
    }
    let _ = writeln!(text, "ld.param.u64 %p, [p{n}];\nadd.u64 %p, %p, %at;");
    for (k, step) in steps.iter().enumerate() {
        let bits = step.result_bits();
        let _ = writeln!(text, "{}\nst.global.b{bits} [%p+{}], %d{bits};", step.statement(), k * rows * 8);
    }
    text.push_str("done:\nret;\n}\n");
    text
}

/// What runs an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Who runs it.
    pub by: engines::Way,
    /// Its threads and values.
    pub shape: Shape,
}

/// Threads of a block.
const THREADS: u32 = 256;

/// The sources of steps on a device, with garbage above the bits of the types.
#[derive(Debug)]
pub struct Rows {
    device: Device,
    buffers: Vec<DeviceBuffer>,
    rows: usize,
}

impl Rows {
    /// Copies sources. The number of rows is rounded up to whole blocks; the last row is repeated.
    ///
    /// # Panics
    /// There is no room.
    pub fn new(form: &Form, src: &[Vec<u64>]) -> Rows {
        let device = Device::new().expect("there is room for a device");
        let rows = src[0].len().next_multiple_of(THREADS as usize);
        let buffers = src.iter().enumerate().map(|(k, list)| {
            let used = Step { form, wide: false }.source_bits(k).min(if k == 0 && !form.packed {
                form.from.step()
            } else {
                64
            });
            let garbage = if used >= 64 { 0 } else { 0x5aa5_c33c_9669_f00f_u64 << used };
            let at = |i: usize| list[i.min(list.len() - 1)] ^ garbage;
            let bytes: Vec<u8> = (0..rows).flat_map(|i| at(i).to_le_bytes()).collect();
            device.copy_of(&bytes).expect("there is room for a buffer")
        });
        let buffers = buffers.collect();
        Rows { device, buffers, rows }
    }

    /// Number of rows, whole blocks.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What the steps give: for each its slots. Slots that no thread writes hold all ones.
    ///
    /// # Errors
    /// What the checker or the launch says.
    pub fn run(&self, steps: &[Step<'_>], way: Way) -> Result<Vec<Vec<u64>>, String> {
        let slots = self.prepare(steps, way)?.run()?;
        Ok(slots.chunks(self.rows).map(<[u64]>::to_vec).collect())
    }

    /// Steps that are to be run several times, with sources that change.
    ///
    /// # Errors
    /// What the checker says.
    pub fn prepare(&self, steps: &[Step<'_>], way: Way) -> Result<Prepared, String> {
        let text = entry(steps, way.shape, self.rows);
        let module = Module::from_text(&self.device, "convert", &text).map_err(|e| format!("{e}\n{text}"))?;
        let function = module.function(Some("convert")).map_err(|e| e.to_string())?;
        let bytes = steps.len() * self.rows * 8;
        let mut out = self.device.zeroed(bytes as u64).map_err(|e| e.to_string())?;
        out.fill(0xff);
        let copy = |b: &DeviceBuffer| self.device.copy_of(&b.to_vec()).map_err(|e| e.to_string());
        let buffers = self.buffers.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
        let rows = u32::try_from(self.rows).map_err(|e| e.to_string())?;
        let (grid, block) = if way.shape == Shape::Uniform { (rows, 32) } else { (rows / THREADS, THREADS) };
        let args: Vec<Arg<'_>> = buffers.iter().chain([&out]).map(Arg::from).collect();
        let config = LaunchConfig {
            engine: way.by.engine,
            backend: way.by.backend,
            bounds: way.by.bounds,
            tier: way.by.tier,
            threads: 1,
            timeout: Some(Duration::from_secs(600)),
            ..LaunchConfig::new([grid, 1, 1], [block, 1, 1])
        };
        let launch = PreparedLaunch::new(&function, &config, &args).map_err(|e| e.to_string())?;
        Ok(Prepared { launch, buffers, out, bytes: vec![0; bytes] })
    }
}

/// Steps with their buffers.
#[derive(Debug)]
pub struct Prepared {
    launch: PreparedLaunch,
    buffers: Vec<DeviceBuffer>,
    out: DeviceBuffer,
    bytes: Vec<u8>,
}

impl Prepared {
    /// Gives source `k` other values.
    pub fn set(&mut self, k: usize, values: &[u64]) {
        self.bytes.resize(8 * values.len(), 0);
        for (bytes, value) in self.bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
        self.buffers[k].write(0, &self.bytes);
    }

    /// The slots of all steps, one step after the other.
    ///
    /// # Errors
    /// What the launch says.
    pub fn run(&mut self) -> Result<Vec<u64>, String> {
        let _ = self.launch.run().map_err(|e| e.to_string())?;
        self.bytes.resize(usize::try_from(self.out.len()).map_err(|e| e.to_string())?, 0);
        self.out.read(0, &mut self.bytes);
        Ok(self.bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
    }
}

/// Whether a row is converted in a shape.
pub fn takes_part(shape: Shape, row: usize) -> bool {
    shape != Shape::Parted || row % 7 <= 4
}

/// Forms whose sources are of one kind, so that one kernel can do them.
pub fn groups(forms: &[Form]) -> Vec<Vec<&Form>> {
    let key = |f: &Form| (f.from, f.packed, f.count, sources(f), f.scaled, f.round == Some(Round::Random));
    let mut groups: Vec<Vec<&Form>> = Vec::new();
    for form in forms {
        match groups.iter_mut().find(|g| key(g[0]) == key(form)) {
            Some(group) => group.push(form),
            None => groups.push(vec![form]),
        }
    }
    groups
}
