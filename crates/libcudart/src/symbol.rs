//! Variables of the program on the device. See "Memory Management".

use crate::error::{Answer, Error};
use crate::memory::{copy, copy_async};
use crate::registry;
use crate::types::{Address, Out, put};

/// Where `count` bytes at an offset of a variable are.
pub fn place(symbol: Address, count: usize, offset: usize) -> Answer<u64> {
    let (address, bytes) = registry::variable(symbol).ok_or(Error::INVALID_SYMBOL)?.place()?;
    let end = offset.checked_add(count).ok_or(Error::INVALID_VALUE)?;
    if end > bytes {
        return Err(Error::INVALID_VALUE);
    }
    u64::try_from(offset).ok().and_then(|offset| address.checked_add(offset)).ok_or(Error::INVALID_VALUE)
}

/// Copies to a variable come from anywhere; no other direction has a meaning.
pub fn to_symbol(direction: u32) -> Answer<u32> {
    if matches!(direction, 1 | 3 | 4) { Ok(direction) } else { Err(Error::INVALID_MEMCPY_DIRECTION) }
}

/// Copies from a variable go anywhere.
pub fn from_symbol(direction: u32) -> Answer<u32> {
    if matches!(direction, 2..=4) { Ok(direction) } else { Err(Error::INVALID_MEMCPY_DIRECTION) }
}

calls! {
    fn cudaGetSymbolAddress(address: Out<'_, u64>, symbol: Address) {
        put(address, place(symbol, 0, 0)?)
    }

    fn cudaGetSymbolSize(size: Out<'_, usize>, symbol: Address) {
        let variable = registry::variable(symbol).ok_or(Error::INVALID_SYMBOL)?;
        let bytes = if variable.size() > 0 { variable.size() } else { variable.place()?.1 };
        put(size, bytes)
    }

    fn cudaMemcpyToSymbol / cudaMemcpyToSymbol_ptds(symbol: Address, from: u64, count: usize, offset: usize, direction: u32; on stream) {
        copy(place(symbol, count, offset)?, from, count, to_symbol(direction)?, stream)
    }

    fn cudaMemcpyToSymbolAsync / cudaMemcpyToSymbolAsync_ptsz(
        symbol: Address, from: u64, count: usize, offset: usize, direction: u32; stream: u64
    ) {
        copy_async(place(symbol, count, offset)?, from, count, to_symbol(direction)?, stream)
    }

    fn cudaMemcpyFromSymbol / cudaMemcpyFromSymbol_ptds(to: u64, symbol: Address, count: usize, offset: usize, direction: u32; on stream) {
        copy(to, place(symbol, count, offset)?, count, from_symbol(direction)?, stream)
    }

    fn cudaMemcpyFromSymbolAsync / cudaMemcpyFromSymbolAsync_ptsz(
        to: u64, symbol: Address, count: usize, offset: usize, direction: u32; stream: u64
    ) {
        copy_async(to, place(symbol, count, offset)?, count, from_symbol(direction)?, stream)
    }
}
