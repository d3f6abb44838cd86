//! Code memory: places machine code, makes it executable, frees it.

use cranelift_codegen::CompiledCode;
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider, SystemMemoryProvider};

use handloom_plan::abi::{CtaCtx, Tables};

use crate::failure::Failure;

type Entry = extern "sysv64" fn(*mut CtaCtx, *const u8) -> u32;

/// Machine code of one function.
pub struct Code {
    /// What the runtime must know.
    pub tables: Box<Tables>,
    /// Bytes of machine code.
    pub code_bytes: usize,
    entry: Entry,
    stack_bytes: u32,
    pool: Box<[Aligned]>,
    memory: SystemMemoryProvider,
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Aligned([u8; 16]);

// SAFETY: the code memory is written once, before the value exists, and only executed and read afterwards; it is freed by `drop`, which
// owns the value. Nothing in it belongs to a thread.
unsafe impl Send for Code {}
// SAFETY: as above: shared use only executes the code and reads the pool.
unsafe impl Sync for Code {}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("name", &self.tables.name).field("code_bytes", &self.code_bytes).finish()
    }
}

impl Code {
    /// Places compiled code.
    ///
    /// # Errors
    /// When memory cannot be had, or the code needs relocations (calls go through tables: a bug).
    pub(crate) fn load(compiled: &CompiledCode, mut tables: Tables, pool: Vec<u8>) -> Result<Code, Failure> {
        if !compiled.buffer.relocs().is_empty() {
            let why = format!("codegen: `{}` needs relocations: {:?}", tables.name, compiled.buffer.relocs());
            return Err(Failure::Bug(why));
        }
        tables.stack_bytes = compiled.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset);
        let align = u64::from(compiled.buffer.alignment).max(64);
        // SAFETY: the bytes are a function that was compiled with exactly this signature and calling convention.
        unsafe { Code::place(compiled.code_buffer(), align, tables, pool) }
    }

    /// Places machine code of any generator at a multiple of `align`.
    ///
    /// # Errors
    /// When memory cannot be had.
    ///
    /// # Safety
    /// The bytes must be a function of the contract of [`handloom_plan::abi`], which the tables describe: its start is the entry, which takes the CTA and
    /// the pool, and returns the number of a reason, in the System V calling convention.
    pub unsafe fn place(bytes: &[u8], align: u64, tables: Tables, pool: Vec<u8>) -> Result<Code, Failure> {
        let mut memory = SystemMemoryProvider::new();
        let no_memory = |e: &dyn std::fmt::Display| Failure::Limit(format!("code memory: {e}"));
        let place = memory.allocate(bytes.len(), align, JITMemoryKind::Executable).map_err(|e| no_memory(&e))?;
        // SAFETY: `place` is a fresh allocation of `bytes.len()` bytes, writable until `finalize`, and overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        memory.finalize(BranchProtection::None).map_err(|e| no_memory(&e))?;
        // SAFETY: the caller says that the bytes are such a function.
        let entry = unsafe { std::mem::transmute::<*mut u8, Entry>(place) };
        let pool = pool.chunks(16).map(|c| Aligned(std::array::from_fn(|i| c.get(i).copied().unwrap_or(0)))).collect();
        let stack_bytes = tables.stack_bytes;
        Ok(Code { tables: Box::new(tables), code_bytes: bytes.len(), entry, stack_bytes, pool, memory })
    }

    /// The machine code. It may be placed anywhere else.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `place` wrote so many bytes there, which are never written again, and lie there as long as this value.
        unsafe { std::slice::from_raw_parts(self.entry as *const u8, self.code_bytes) }
    }

    /// What it reads beside the cta.
    pub fn pool(&self) -> &[u8] {
        // SAFETY: the pool is an array of arrays of bytes.
        unsafe { std::slice::from_raw_parts(self.pool.as_ptr().cast(), 16 * self.pool.len()) }
    }

    /// Bytes that it takes of the stack of the host thread that calls it.
    #[inline]
    pub fn stack_bytes(&self) -> u32 {
        self.stack_bytes
    }

    /// Runs contexts of a cta until something happens; gives the number of a [`handloom_plan::abi::Reason`].
    ///
    /// # Safety
    /// `cta` and all that it points to must be as [`handloom_plan::abi`] describes, and the thread's stack has [`Self::stack_bytes`] and what routines take.
    pub unsafe fn call(&self, cta: *mut CtaCtx) -> u32 {
        (self.entry)(cta, self.pool.as_ptr().cast())
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: `self` owns the only handle to the code; nobody can be executing it while it is dropped.
        unsafe { self.memory.free_memory() };
    }
}
