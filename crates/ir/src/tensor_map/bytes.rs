//! A tensor map as 128 bytes. The page of the module says where each field stands.

use super::map::*;
use super::rules::Wrong;

const SHAPE: usize = 106;
const PROMOTION: usize = 107;
const CORNERS: usize = 108;

impl TensorMap {
    /// Its 128 bytes, if it keeps to all rules.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn encode(&self) -> Result<[u8; SIZE], Wrong> {
        self.check()?;
        let mut out = [0; SIZE];
        let mut put = |field: Field, value: u64| {
            let (at, n) = field.place();
            let (at, n) = (at as usize, n as usize);
            out[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
        };
        put(Field::Address, self.address);
        put(Field::Rank, self.rank as u64 - 1);
        for i in 0..MAX_RANK as u8 {
            let d = usize::from(i);
            put(Field::Dim(i), self.dims[d].min(u64::from(u32::MAX)));
            put(Field::ElementStride(i), self.element_strides[d].into());
            if d < MAX_RANK - 1 {
                put(Field::Stride(i), self.strides[d]);
            }
        }
        put(Field::ElementType, self.element as u64);
        put(Field::Interleave, self.interleave as u64);
        put(Field::Swizzle, self.swizzle as u64);
        put(Field::Atomicity, self.atomicity as u64);
        put(Field::Fill, self.fill as u64);
        let (kind, sizes, lower, upper) = match self.shape {
            Shape::Tiled { size } => (0, size, [0; 3], [0; 3]),
            Shape::Im2col { lower, upper, channels, pixels } => (1, [channels, pixels, 0, 0, 0], lower, upper),
            Shape::Wide { lower, upper, channels, pixels } => {
                (2, [channels, pixels, 0, 0, 0], [lower, 0, 0], [upper, 0, 0])
            }
        };
        for (i, size) in (0..).zip(sizes) {
            put(Field::Box(i), size.into());
        }
        out[SHAPE] = kind;
        out[PROMOTION] = self.promotion as u8;
        for (i, corner) in lower.into_iter().chain(upper).enumerate() {
            out[CORNERS + 2 * i..][..2].copy_from_slice(&corner.to_le_bytes());
        }
        Ok(out)
    }

    /// The map in 128 bytes.
    ///
    /// # Errors
    /// They are none, or the first rule that it breaks.
    pub fn decode(bytes: &[u8; SIZE]) -> Result<TensorMap, Wrong> {
        let get = |field: Field| {
            let (at, n) = field.place();
            let mut word = [0; 8];
            word[..n as usize].copy_from_slice(&bytes[at as usize..][..n as usize]);
            u64::from_le_bytes(word)
        };
        let small = |field: Field| bytes[field.place().0 as usize];
        let four = |field: Field| u32::try_from(get(field)).unwrap_or(u32::MAX);
        let corner = |i: usize| i16::from_le_bytes([bytes[CORNERS + 2 * i], bytes[CORNERS + 2 * i + 1]]);
        let [channels, pixels] = [four(Field::Box(0)), four(Field::Box(1))];
        let shape = match bytes[SHAPE] {
            0 => Shape::Tiled { size: [0, 1, 2, 3, 4].map(|i| four(Field::Box(i))) },
            1 => Shape::Im2col { lower: [0, 1, 2].map(corner), upper: [3, 4, 5].map(corner), channels, pixels },
            2 => Shape::Wide { lower: corner(0), upper: corner(3), channels, pixels },
            _ => return Err(Wrong("it is not made by Handloom".into())),
        };
        let numbered = |what: &str, n: u8| Wrong(format!("there is no {what} of number {n}"));
        macro_rules! number {
            ($ty:ident, $field:expr, $what:literal) => {
                $ty::of(small($field)).ok_or_else(|| numbered($what, small($field)))?
            };
        }
        let map = TensorMap {
            element: number!(ElementType, Field::ElementType, "element type"),
            rank: usize::from(small(Field::Rank)) + 1,
            address: get(Field::Address),
            dims: [0, 1, 2, 3, 4].map(|i| get(Field::Dim(i))),
            strides: [0, 1, 2, 3].map(|i| get(Field::Stride(i))),
            element_strides: [0, 1, 2, 3, 4].map(|i| four(Field::ElementStride(i))),
            interleave: number!(Interleave, Field::Interleave, "interleave layout"),
            swizzle: number!(Swizzle, Field::Swizzle, "swizzle mode"),
            atomicity: number!(Atomicity, Field::Atomicity, "swizzle atomicity"),
            promotion: Promotion::of(bytes[PROMOTION]).ok_or_else(|| numbered("promotion", bytes[PROMOTION]))?,
            fill: number!(Fill, Field::Fill, "fill mode"),
            shape,
        };
        map.check()?;
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiled() -> TensorMap {
        TensorMap {
            element: ElementType::F16,
            rank: 3,
            address: 0x1000,
            dims: [64, 32, 1 << 32, 0, 0],
            strides: [128, 4096, 0, 0],
            element_strides: [1, 2, 1, 0, 0],
            interleave: Interleave::None,
            swizzle: Swizzle::Bytes128,
            atomicity: Atomicity::Bytes32,
            promotion: Promotion::Bytes256,
            fill: Fill::Nan,
            shape: Shape::Tiled { size: [64, 8, 2, 0, 0] },
        }
    }

    #[test]
    fn a_map_is_what_was_encoded() {
        let map = tiled();
        let read = TensorMap::decode(&map.encode().unwrap()).unwrap();
        // No coordinate can tell these two sizes apart.
        assert_eq!(read, TensorMap { dims: [64, 32, (1 << 32) - 1, 0, 0], ..map });
        let lower = [-3, 2, 0];
        let shape = Shape::Im2col { lower, upper: [0, -1, 0], channels: 64, pixels: 1024 };
        let map = TensorMap { rank: 4, dims: [64, 9, 9, 2, 0], element_strides: [1, 1, 1, 1, 0], shape, ..map };
        assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map));
        let map = TensorMap { shape: Shape::Wide { lower: -1, upper: 1, channels: 8, pixels: 3 }, ..map };
        assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map));
    }

    #[test]
    fn each_field_has_its_own_place() {
        let of_dims = |field: fn(u8) -> Field| (0..5).map(move |i| field(i).place());
        let mut places: Vec<(u32, u32)> = [Field::Address, Field::Rank, Field::ElementType, Field::Interleave]
            .into_iter()
            .chain([Field::Swizzle, Field::Atomicity, Field::Fill])
            .map(Field::place)
            .chain(of_dims(Field::Dim))
            .chain(of_dims(Field::Box))
            .chain(of_dims(Field::Stride))
            .chain(of_dims(Field::ElementStride))
            .collect();
        places.sort_unstable();
        assert!(
            places.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0) && places.last().is_some_and(|p| p.0 + p.1 <= 128)
        );
        // A field that is written changes itself alone.
        let mut bytes = tiled().encode().unwrap();
        bytes[Field::Box(1).place().0 as usize] = 5;
        let read = TensorMap::decode(&bytes).unwrap();
        assert_eq!(read.shape, Shape::Tiled { size: [64, 5, 2, 0, 0] });
    }

    #[test]
    fn rules_are_kept() {
        let why = |map: TensorMap| map.encode().unwrap_err().0;
        let map = tiled();
        assert!(why(TensorMap { rank: 6, ..map }).contains("1 to 5 dimensions, not 6"));
        assert!(why(TensorMap { address: 8, ..map }).contains("0x8 is no multiple of 16"));
        assert!(why(TensorMap { dims: [64, 0, 1, 1, 1], ..map }).contains("dimension 1 has 0 elements"));
        assert!(why(TensorMap { strides: [100, 4096, 0, 0], ..map }).contains("the stride 100 of dimension 1"));
        assert!(why(TensorMap { strides: [128, 1 << 40, 0, 0], ..map }).contains("not below 2^40"));
        assert!(why(TensorMap { element_strides: [1, 9, 1, 1, 1], ..map }).contains("the element stride 9"));
        let size = |size| Shape::Tiled { size };
        assert!(why(TensorMap { shape: size([64, 257, 1, 1, 1]), ..map }).contains("257 elements in dimension 1"));
        assert!(why(TensorMap { shape: size([4, 1, 1, 1, 1]), ..map }).contains("8 bytes, no multiple of 16"));
        assert!(why(TensorMap { shape: size([128, 1, 1, 1, 1]), ..map }).contains("256 bytes, more than the 128"));
        assert!(why(TensorMap { element: ElementType::U16, ..map }).contains("only floats"));
        assert!(
            why(TensorMap { swizzle: Swizzle::Bytes64, shape: size([32, 8, 2, 0, 0]), ..map }).contains("atomicity")
        );
        assert!(why(TensorMap { interleave: Interleave::Bytes32, ..map }).contains("a swizzle of 32 bytes"));
        let im2col =
            |lower, upper| Shape::Im2col { lower: [lower, 0, 0], upper: [upper, 0, 0], channels: 64, pixels: 8 };
        assert!(why(TensorMap { shape: im2col(16, -16), ..map }).contains("is empty"));
        assert!(why(TensorMap { rank: 2, shape: im2col(0, 0), ..map }).contains("3 to 5 dimensions"));
        // Zeros are a map to start from, not one to use.
        assert!(TensorMap::decode(&[0; SIZE]).is_err());
    }

    #[test]
    fn types_and_swizzles_have_other_numbers_in_the_driver() {
        use ElementType::*;
        assert_eq!(
            [8, 9, 10, 11, 15, 16].map(ElementType::of_driver),
            [Some(F64), Some(BF16), Some(F32Ftz), Some(TF32), Some(B6x16), None]
        );
        assert_eq!(Swizzle::of_driver(3), Some((Swizzle::Bytes128, Atomicity::Bytes16)));
        assert_eq!(Swizzle::of_driver(6), Some((Swizzle::Bytes128, Atomicity::Bytes64)));
        assert_eq!(Swizzle::of_driver(7), None);
    }
}
