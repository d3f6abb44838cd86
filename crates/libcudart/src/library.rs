//! Images that a program loads by hand. See "Library Management".

use std::ffi::c_char;

use crate::cu;
use crate::device::{init, ready};
use crate::error::{Error, driver};
use crate::types::{Address, Out, put, put_if};

calls! {
    fn cudaLibraryLoadData(
        library: Out<'_, u64>, image: Address, options: Address, values: Address, count: u32, library_options: Address,
        library_values: Address, library_count: u32,
    ) {
        init()?;
        let mut made = 0;
        // SAFETY: the program says that an image and the options are there; the driver tests for null.
        driver(unsafe {
            cu::cuLibraryLoadData(&mut made, image, options, values, count, library_options, library_values, library_count)
        })?;
        put(library, made)
    }

    fn cudaLibraryLoadFromFile(
        library: Out<'_, u64>, file: *const c_char, options: Address, values: Address, count: u32, library_options: Address,
        library_values: Address, library_count: u32,
    ) {
        init()?;
        let mut made = 0;
        // SAFETY: the program says that a name and the options are there; the driver tests for null.
        driver(unsafe {
            cu::cuLibraryLoadFromFile(&mut made, file, options, values, count, library_options, library_values, library_count)
        })?;
        put(library, made)
    }

    fn cudaLibraryUnload(library: u64) {
        init()?;
        driver(cu::cuLibraryUnload(library))
    }

    fn cudaLibraryGetKernel(kernel: Out<'_, u64>, library: u64, name: *const c_char) {
        init()?;
        let mut found = 0;
        // SAFETY: the program says that a name is there; the driver tests for null.
        driver(unsafe { cu::cuLibraryGetKernel(&mut found, library, name) })?;
        put(kernel, found)
    }

    fn cudaLibraryGetGlobal(address: Out<'_, u64>, bytes: Out<'_, usize>, library: u64, name: *const c_char) {
        ready()?;
        let (mut at, mut size) = (0, 0);
        // SAFETY: the program says that a name is there; the driver tests for null.
        driver(unsafe { cu::cuLibraryGetGlobal(&mut at, &mut size, library, name) })?;
        put_if(address, at);
        put_if(bytes, size);
        Ok(())
    }

    fn cudaLibraryGetManaged(address: Out<'_, u64>, bytes: Out<'_, usize>, library: u64, name: *const c_char) {
        ready()?;
        let (mut at, mut size) = (0, 0);
        // SAFETY: the program says that a name is there; the driver tests for null.
        driver(unsafe { cu::cuLibraryGetManaged(&mut at, &mut size, library, name) })?;
        put_if(address, at);
        put_if(bytes, size);
        Ok(())
    }

    fn cudaLibraryGetUnifiedFunction(function: *mut u64, library: u64, name: *const c_char) {
        init()?;
        // SAFETY: the program says that a name is there, and that the result may be written; the driver tests for null.
        driver(unsafe { cu::cuLibraryGetUnifiedFunction(function, library, name) })
    }

    fn cudaLibraryGetKernelCount(count: Out<'_, u32>, library: u64) {
        init()?;
        let mut found = 0;
        driver(cu::cuLibraryGetKernelCount(&mut found, library))?;
        put(count, found)
    }

    fn cudaLibraryEnumerateKernels(kernels: *mut u64, count: u32, library: u64) {
        init()?;
        if kernels.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the program says that `count` handles may be written there.
        driver(unsafe { cu::cuLibraryEnumerateKernels(kernels, count, library) })
    }
}
