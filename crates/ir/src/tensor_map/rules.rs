//! What a tensor map must keep to.

use super::map::*;

/// A rule that a tensor map breaks: a clause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong(pub String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

fn rule(holds: bool, text: impl FnOnce() -> String) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong(text())) }
}

/// Most elements of a box in a dimension, and of the channels of a pixel.
const MAX_BOX: u32 = 256;
/// Most pixels.
const MAX_PIXELS: u32 = 1024;

impl TensorMap {
    /// Whether it is one of the types of fewer than 8 bits that have padding in shared memory.
    fn is_padded(&self) -> bool {
        matches!(self.element, ElementType::B4x16P64 | ElementType::B6x16)
    }

    /// What its address and strides are multiples of.
    fn align(&self) -> u64 {
        if self.interleave == Interleave::Bytes32 || self.is_padded() { 32 } else { 16 }
    }

    /// Whether it keeps to all rules.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), Wrong> {
        let rank = self.rank;
        rule((1..=MAX_RANK).contains(&rank), || format!("a tensor has 1 to 5 dimensions, not {rank}"))?;
        self.check_memory()?;
        self.check_shape()?;
        self.check_layout()
    }

    fn check_memory(&self) -> Result<(), Wrong> {
        let align = self.align();
        let (rank, address) = (self.rank, self.address);
        rule(address.is_multiple_of(align), || format!("the address {address:#x} is no multiple of {align}"))?;
        for (i, n) in self.dims[..rank].iter().enumerate() {
            rule((1..=1 << 32).contains(n), || format!("dimension {i} has {n} elements, not 1 to 2^32"))?;
        }
        for (i, n) in (1..).zip(&self.strides[..rank - 1]) {
            rule(n.is_multiple_of(align), || format!("the stride {n} of dimension {i} is no multiple of {align}"))?;
            rule(*n < 1 << 40, || format!("the stride {n} of dimension {i} is not below 2^40"))?;
        }
        let first = self.dims[0];
        let multiple = if self.is_padded() { 128 } else { u64::from(self.element.group()) };
        rule(first.is_multiple_of(multiple), || {
            format!("dimension 0 has {first} elements, no multiple of {multiple}")
        })?;
        let skip = usize::from(self.interleave == Interleave::None);
        for (i, n) in self.element_strides[..rank].iter().enumerate().skip(skip) {
            rule((1..=8).contains(n), || format!("the element stride {n} of dimension {i} is not 1 to 8"))?;
        }
        Ok(())
    }

    fn check_shape(&self) -> Result<(), Wrong> {
        let rank = self.rank;
        let (channels, pixels, corners) = match self.shape {
            Shape::Tiled { size } => {
                for (i, n) in size[..rank].iter().enumerate() {
                    rule((1..=MAX_BOX).contains(n), || {
                        format!("the box has {n} elements in dimension {i}, not 1 to 256")
                    })?;
                }
                rule(rank >= 3 || self.interleave == Interleave::None, || {
                    format!("an interleaved tensor has 3 to 5 dimensions, not {rank}")
                })?;
                (size[0], 1, vec![])
            }
            Shape::Im2col { lower, upper, channels, pixels } => {
                rule(rank >= 3, || format!("a tensor for im2col has 3 to 5 dimensions, not {rank}"))?;
                let limit = [1 << 15, 1 << 7, 1 << 4][rank - 3];
                let corners: Vec<(i16, i16)> = lower.into_iter().zip(upper).take(rank - 2).collect();
                for n in corners.iter().flat_map(|(l, u)| [i32::from(*l), i32::from(*u)]) {
                    rule((-limit..limit).contains(&n), || {
                        format!("the corner {n} is not from -{limit} to {}", limit - 1)
                    })?;
                }
                (channels, pixels, corners)
            }
            Shape::Wide { lower, upper, channels, pixels } => {
                rule(rank >= 3, || format!("a tensor for im2col has 3 to 5 dimensions, not {rank}"))?;
                rule(self.interleave == Interleave::None, || "im2col along W takes no interleaved tensor".into())?;
                let swizzles = matches!(self.swizzle, Swizzle::Bytes64 | Swizzle::Bytes96 | Swizzle::Bytes128)
                    && matches!(self.atomicity, Atomicity::Bytes16 | Atomicity::Bytes32);
                rule(swizzles, || "im2col along W wants a swizzle of 64 or 128 bytes, by 16 or 32".into())?;
                (channels, pixels, vec![(lower, upper)])
            }
        };
        rule((1..=MAX_BOX).contains(&channels), || format!("a pixel has {channels} channels, not 1 to 256"))?;
        rule((1..=MAX_PIXELS).contains(&pixels), || format!("there are {pixels} pixels, not 1 to 1024"))?;
        for (i, (lower, upper)) in corners.into_iter().enumerate() {
            let dim = self.dims[self.spatial().start + i];
            let extent = i64::try_from(dim).unwrap_or(i64::MAX) + i64::from(upper) - i64::from(lower);
            rule(extent > 0, || format!("the box of pixels from {lower} to {upper} is empty in a dimension of {dim}"))?;
        }
        if self.is_padded() {
            rule(channels == 128, || format!("the box has {channels} elements in dimension 0, not 128"))?;
        }
        let bytes = channels / self.element.group() * self.element.shared_bytes();
        if self.interleave == Interleave::None {
            rule(bytes.is_multiple_of(16), || format!("a line of the box has {bytes} bytes, no multiple of 16"))?;
            let span = self.swizzle.span();
            rule(span == 0 || bytes <= span, || {
                format!("a line of the box has {bytes} bytes, more than the {span} of the swizzle")
            })?;
        }
        Ok(())
    }

    fn check_layout(&self) -> Result<(), Wrong> {
        let plain = self.interleave == Interleave::None;
        rule(self.fill == Fill::Zero || self.element.is_float(), || "only floats are filled with NaNs".into())?;
        rule(self.interleave != Interleave::Bytes32 || self.swizzle == Swizzle::Bytes32, || {
            "slices of 32 bytes want a swizzle of 32 bytes".into()
        })?;
        rule(plain || self.swizzle != Swizzle::Bytes96, || {
            "an interleaved tensor takes no swizzle of 96 bytes".into()
        })?;
        rule(plain || !self.is_padded(), || "elements with padding are not interleaved".into())?;
        rule(self.swizzle == Swizzle::Bytes128 || self.atomicity == Atomicity::Bytes16, || {
            "only a swizzle of 128 bytes has another atomicity than 16 bytes".into()
        })?;
        if self.is_padded() {
            let swizzles = matches!(self.swizzle, Swizzle::None | Swizzle::Bytes128);
            rule(swizzles && self.atomicity != Atomicity::Bytes32Flip8, || {
                "elements with padding take no swizzle or one of 128 bytes, without a flip".into()
            })?;
        }
        Ok(())
    }
}
