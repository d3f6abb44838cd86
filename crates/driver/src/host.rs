//! Memory of the process that is no memory of a device. Only whoever was called by the program can promise that an address of it may be touched.

use handloom_runtime::DeviceMemory;

/// Reads and writes memory of the process by address.
///
/// Those who call it hand on what the program said of an address: that so many bytes lie there, and stay there as long as the interface asks for.
pub trait HostMemory: Send + Sync {
    /// Hands bytes of the process to a function.
    fn read(&self, address: u64, bytes: usize, take: &mut dyn FnMut(&[u8]));
    /// Hands bytes of the process to a function that fills them.
    fn write(&self, address: u64, bytes: usize, fill: &mut dyn FnMut(&mut [u8]));
    /// Bytes before the first NUL from an address on.
    fn text_bytes(&self, address: u64) -> usize;
    /// Lets kernels of a device use all memory of the process, as the user asked.
    fn open(&self, memory: &DeviceMemory);
    /// Lets kernels of a device use memory that the program registered, or an allocation of another device, until it is taken back.
    fn lend(&self, memory: &DeviceMemory, address: u64, bytes: u64, is_writable: bool);
}
