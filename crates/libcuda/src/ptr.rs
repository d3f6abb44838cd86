//! Pointers that a program passes.
//!
//! The types of this file are made in one place only: they are parameters of exported functions, which are `unsafe` to call. Whoever calls one promises
//! that each of its pointers is null or points to what the documentation of the function says, for as long as the call lasts; addresses inside
//! structures, of buffers and of images come under the same promise. So it is sound to read and write through them when they are not null, and the
//! methods are safe.

use handloom_driver::{Code, HostMemory, Result};
use handloom_runtime::DeviceMemory;

/// A pointer to something that the call fills, or reads and changes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// A pointer to something that the call reads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct In<T>(*const T);

/// An address of whatever it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Addr(pub u64);

impl<T: Copy> Out<T> {
    /// The null pointer.
    pub fn null() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The same address, of something else.
    pub fn cast<U: Copy>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Refuses a null pointer.
    ///
    /// # Errors
    /// It is one.
    pub fn check(self) -> Result {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes what it points to.
    ///
    /// # Errors
    /// It is null.
    pub fn set(self, value: T) -> Result {
        self.check()?;
        // SAFETY: not null, so it points to a `T` by the promise of the caller; nothing is assumed of its alignment.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes what it points to, if it points to anything.
    pub fn set_any(self, value: T) {
        let _ = self.set(value);
    }

    /// Writes the element of an array.
    pub fn set_at(self, i: usize, value: T) {
        // SAFETY: as in `set`, of the array that the function is documented to fill; callers ask for no more elements than it has.
        unsafe { self.0.add(i).write_unaligned(value) };
    }

    /// Reads what it points to.
    ///
    /// # Errors
    /// It is null.
    pub fn get(self) -> Result<T> {
        self.check()?;
        // SAFETY: as in `set`.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl<T: Copy> In<T> {
    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Reads what it points to.
    ///
    /// # Errors
    /// It is null.
    pub fn get(self) -> Result<T> {
        self.at(0)
    }

    /// Reads the element of an array.
    ///
    /// # Errors
    /// The array is null.
    pub fn at(self, i: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so it points to an array by the promise of the caller; callers ask for no more elements than it has.
        Ok(unsafe { self.0.add(i).read_unaligned() })
    }

    /// Reads an array.
    ///
    /// # Errors
    /// It is null and has elements.
    pub fn array(self, n: usize) -> Result<Vec<T>> {
        (0..n).map(|i| self.at(i)).collect()
    }
}

impl In<u8> {
    /// A text that ends with NUL.
    ///
    /// # Errors
    /// It is null, or no UTF-8: then no name of ours is meant.
    pub fn text(self) -> Result<String> {
        if self.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        text_at(self.address()).ok_or(Code::NOT_FOUND)
    }
}

/// A text that ends with NUL.
pub fn text_at(address: u64) -> Option<String> {
    let mut text = None;
    let bytes = ProcessMemory.text_bytes(address);
    ProcessMemory.read(address, bytes, &mut |b| text = std::str::from_utf8(b).ok().map(str::to_owned));
    text
}

impl Out<u8> {
    /// Writes a text with a NUL, cut to so many bytes.
    ///
    /// # Errors
    /// It is null, or there is no room for the NUL.
    pub fn set_text(self, text: &str, bytes: i32) -> Result {
        self.check()?;
        let room = usize::try_from(bytes).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE)?;
        let text = &text.as_bytes()[..text.floor_char_boundary(room - 1)];
        text.iter().chain(&[0]).enumerate().for_each(|(i, b)| self.set_at(i, *b));
        Ok(())
    }
}

/// The memory of this process, as the program that calls us names it.
pub struct ProcessMemory;

impl HostMemory for ProcessMemory {
    fn read(&self, address: u64, bytes: usize, take: &mut dyn FnMut(&[u8])) {
        if bytes == 0 || address == 0 {
            return take(&[]);
        }
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the program said of this address that so many bytes can be read there, and it does not change them while the call, or the work
        // that it was told to wait for, lasts.
        take(unsafe { std::slice::from_raw_parts(from, bytes) });
    }

    fn write(&self, address: u64, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) {
        if bytes == 0 || address == 0 {
            return fill(&mut []);
        }
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: as in `read`, of bytes that the program wants to be written and does not use meanwhile.
        fill(unsafe { std::slice::from_raw_parts_mut(to, bytes) });
    }

    fn text_bytes(&self, address: u64) -> usize {
        if address == 0 {
            return 0;
        }
        let from = std::ptr::with_exposed_provenance::<std::ffi::c_char>(address as usize);
        // SAFETY: the program said that a text which ends with NUL lies there.
        unsafe { std::ffi::CStr::from_ptr(from) }.to_bytes().len()
    }

    fn open(&self, memory: &DeviceMemory) {
        // SAFETY: who runs the program asked for it, and so vouches for its kernels.
        unsafe { memory.open_to_process() }
    }

    fn lend(&self, memory: &DeviceMemory, address: u64, bytes: u64, is_writable: bool) {
        // SAFETY: the program registered the range, and keeps it until it says otherwise, which waits for work that may use it; or it is an allocation of
        // another device, whose memory stays open as long as the process lives.
        unsafe { memory.lend(address, bytes, is_writable) }
    }
}

impl Addr {
    /// A pointer to what lies there.
    pub fn out<T: Copy>(self) -> Out<T> {
        Out(std::ptr::with_exposed_provenance_mut(self.0 as usize))
    }
}

impl<T: Copy> In<T> {
    /// A pointer that a structure or an array of the program holds.
    pub fn of(address: u64) -> In<T> {
        In(std::ptr::with_exposed_provenance(address as usize))
    }
}
