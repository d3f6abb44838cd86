//! Batches of copies and prefetches, and pools by their place. See "Memory Management" and "Stream Ordered Memory Allocator".
//!
//! The structures are laid out as the driver's, and places have the same numbers.

use crate::cu;
use crate::device::ready;
use crate::error::{Answer, Error, driver};
use crate::stream::per_thread;
use crate::types::{Address, Out, put};

/// Copies of a batch: three lists, attributes, and the first copy that each of those belongs to.
#[derive(Clone, Copy)]
struct Batch {
    to: Address,
    from: Address,
    sizes: Address,
    count: usize,
    attributes: Address,
    firsts: Address,
    many: usize,
}

fn copies(batch: Batch, fail: *mut usize, stream: u64) -> Answer {
    ready()?;
    let Batch { to, from, sizes, count, attributes, firsts, many } = batch;
    // SAFETY: the program says that lists of these lengths are there, and memory where it copies; the driver tests for null.
    driver(unsafe { cu::cuMemcpyBatchAsync(to, from, sizes, count, attributes, firsts, many, fail, stream) })
}

fn boxes(count: usize, list: Address, fail: *mut usize, flags: u64, stream: u64) -> Answer {
    ready()?;
    // SAFETY: as above.
    driver(unsafe { cu::cuMemcpy3DBatchAsync(count, list, fail, flags, stream) })
}

const NO_PLACE: *mut usize = std::ptr::null_mut();

calls! {
    in "13" fn cudaMemcpyBatchAsync as copies_13(
        to: Address, from: Address, sizes: Address, count: usize, attributes: Address, firsts: Address, many: usize, stream: u64,
    ) {
        copies(Batch { to, from, sizes, count, attributes, firsts, many }, NO_PLACE, stream)
    }

    in "13" fn cudaMemcpyBatchAsync_ptsz as copies_13_ptsz(
        to: Address, from: Address, sizes: Address, count: usize, attributes: Address, firsts: Address, many: usize, stream: u64,
    ) {
        copies(Batch { to, from, sizes, count, attributes, firsts, many }, NO_PLACE, per_thread(stream))
    }

    in "12" fn cudaMemcpyBatchAsync as copies_12(
        to: Address, from: Address, sizes: Address, count: usize, attributes: Address, firsts: Address, many: usize,
        fail: *mut usize, stream: u64,
    ) {
        copies(Batch { to, from, sizes, count, attributes, firsts, many }, fail, stream)
    }

    in "12" fn cudaMemcpyBatchAsync_ptsz as copies_12_ptsz(
        to: Address, from: Address, sizes: Address, count: usize, attributes: Address, firsts: Address, many: usize,
        fail: *mut usize, stream: u64,
    ) {
        copies(Batch { to, from, sizes, count, attributes, firsts, many }, fail, per_thread(stream))
    }

    in "13" fn cudaMemcpy3DBatchAsync as boxes_13(count: usize, list: Address, flags: u64, stream: u64) {
        boxes(count, list, NO_PLACE, flags, stream)
    }

    in "13" fn cudaMemcpy3DBatchAsync_ptsz as boxes_13_ptsz(count: usize, list: Address, flags: u64, stream: u64) {
        boxes(count, list, NO_PLACE, flags, per_thread(stream))
    }

    in "12" fn cudaMemcpy3DBatchAsync as boxes_12(count: usize, list: Address, fail: *mut usize, flags: u64, stream: u64) {
        boxes(count, list, fail, flags, stream)
    }

    in "12" fn cudaMemcpy3DBatchAsync_ptsz as boxes_12_ptsz(
        count: usize, list: Address, fail: *mut usize, flags: u64, stream: u64,
    ) {
        boxes(count, list, fail, flags, per_thread(stream))
    }

    fn cudaMemcpyWithAttributesAsync / cudaMemcpyWithAttributesAsync_ptsz(
        to: u64, from: u64, bytes: usize, attributes: Address; stream: u64
    ) {
        ready()?;
        // SAFETY: the program says that attributes are there, and memory where it copies; the driver tests for null.
        driver(unsafe { cu::cuMemcpyWithAttributesAsync(to, from, bytes, attributes, stream) })
    }

    fn cudaMemcpy3DWithAttributesAsync / cudaMemcpy3DWithAttributesAsync_ptsz(op: Address, flags: u64; stream: u64) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuMemcpy3DWithAttributesAsync(op, flags, stream) })
    }

    fn cudaMemPrefetchBatchAsync / cudaMemPrefetchBatchAsync_ptsz(
        addresses: Address, sizes: Address, count: usize, places: Address, firsts: Address, many: usize, flags: u64; stream: u64
    ) {
        ready()?;
        // SAFETY: the program says that lists of these lengths are there; the driver tests for null.
        driver(unsafe { cu::cuMemPrefetchBatchAsync(addresses, sizes, count, places, firsts, many, flags, stream) })
    }

    fn cudaMemDiscardAndPrefetchBatchAsync / cudaMemDiscardAndPrefetchBatchAsync_ptsz(
        addresses: Address, sizes: Address, count: usize, places: Address, firsts: Address, many: usize, flags: u64; stream: u64
    ) {
        ready()?;
        // SAFETY: as above. What is discarded may be anything, also what it was.
        driver(unsafe { cu::cuMemPrefetchBatchAsync(addresses, sizes, count, places, firsts, many, flags, stream) })
    }

    fn cudaMemDiscardBatchAsync / cudaMemDiscardBatchAsync_ptsz(
        addresses: Address, sizes: Address, count: usize, flags: u64; stream: u64
    ) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuMemDiscardBatchAsync(addresses, sizes, count, flags, stream) })
    }

    fn cudaMemRangeGetAttributes(
        data: Address, sizes: Address, attributes: Address, count: usize, address: u64, bytes: usize,
    ) {
        ready()?;
        // SAFETY: the program says that lists of this length are there, and room where they say; the driver tests for null.
        driver(unsafe { cu::cuMemRangeGetAttributes(data, sizes, attributes, count, address, bytes) })
    }

    fn cudaMemGetDefaultMemPool(pool: Out<'_, u64>, place: Address, kind: u32) {
        ready()?;
        let pool = pool.ok_or(Error::INVALID_VALUE)?;
        let mut found = 0;
        // SAFETY: the program says that a place is there; the driver tests for null.
        driver(unsafe { cu::cuMemGetDefaultMemPool(&mut found, place, kind) })?;
        put(Some(pool), found)
    }

    fn cudaMemGetMemPool(pool: Out<'_, u64>, place: Address, kind: u32) {
        ready()?;
        let pool = pool.ok_or(Error::INVALID_VALUE)?;
        let mut found = 0;
        // SAFETY: as above.
        driver(unsafe { cu::cuMemGetMemPool(&mut found, place, kind) })?;
        put(Some(pool), found)
    }

    fn cudaMemSetMemPool(place: Address, kind: u32, pool: u64) {
        ready()?;
        // SAFETY: as above.
        driver(unsafe { cu::cuMemSetMemPool(place, kind, pool) })
    }
}
