//! What buffers and variables hold, and scalars that are arguments.

use half::{bf16, f16};

/// A number that lies in memory of a device: integers, `f32`, `f64`, [`f16`](struct@f16) and [`bf16`].
///
/// ```
/// use handloom::{Element, f16};
///
/// assert_eq!((f16::NAME, f16::BYTES), ("f16", 2));
/// ```
pub trait Element: Copy + Default + Send + Sync + 'static + sealed::Number {
    /// Its name in PTX, as reports say it.
    const NAME: &'static str;
    /// Bytes of one.
    const BYTES: usize;
    /// Whether it is a float.
    const IS_FLOAT: bool;
}

pub(crate) mod sealed {
    /// How a number lies in memory.
    pub trait Number: Sized {
        /// Appends its bytes.
        fn put(self, to: &mut Vec<u8>);
        /// Reads as many bytes as it has.
        fn take(from: &[u8]) -> Self;
    }
}

macro_rules! elements {
    ($($t:ty, $name:literal, $is_float:literal);* $(;)?) => {$(
        impl Element for $t {
            const NAME: &'static str = $name;
            const BYTES: usize = size_of::<$t>();
            const IS_FLOAT: bool = $is_float;
        }

        impl sealed::Number for $t {
            fn put(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$t>()];
                bytes.copy_from_slice(from);
                <$t>::from_le_bytes(bytes)
            }
        }
    )*};
}

elements! {
    u8, "u8", false;
    i8, "s8", false;
    u16, "u16", false;
    i16, "s16", false;
    u32, "u32", false;
    i32, "s32", false;
    u64, "u64", false;
    i64, "s64", false;
    f16, "f16", true;
    bf16, "bf16", true;
    f32, "f32", true;
    f64, "f64", true;
}

/// The bytes of numbers, one after another.
pub(crate) fn bytes_of<T: Element>(data: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() * T::BYTES);
    data.iter().for_each(|v| v.put(&mut bytes));
    bytes
}

/// The numbers that bytes are.
pub(crate) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::take).collect()
}
