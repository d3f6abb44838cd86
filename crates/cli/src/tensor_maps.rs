//! `tensor_maps` of a job: tensors in buffers or variables, and the boxes of them that kernels copy.

use handloom_ir::tensor_map::{
    Atomicity, ElementType, Fill, Interleave, MAX_RANK, Promotion, Shape, Swizzle, TensorMap,
};
use serde::Deserialize;

use crate::layout::{Field, Item, Place, Struct};

/// A tensor map. Lists begin with the innermost dimension, as those of the driver API do.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `buffer` or `global`, `type`, `dims`, and `box` or `im2col`")]
pub struct TensorMapSpec {
    /// Buffer that the tensor lies in.
    pub buffer: Option<String>,
    /// Variable that the tensor lies in.
    pub global: Option<String>,
    /// Its first byte there.
    pub offset: Option<u64>,
    #[serde(rename = "type")]
    ty: String,
    dims: Vec<u64>,
    /// Bytes, from dimension 1 on.
    strides: Option<Vec<u64>>,
    #[serde(rename = "box")]
    size: Option<Vec<u32>>,
    im2col: Option<Im2colSpec>,
    element_strides: Option<Vec<u32>>,
    interleave: Option<String>,
    swizzle: Option<String>,
    fill: Option<String>,
}

/// Pixels of a convolution. Corners are in the order W, H, D.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `lower`, `upper`, `channels` and `pixels`")]
struct Im2colSpec {
    lower: Vec<i16>,
    upper: Vec<i16>,
    channels: u32,
    pixels: u32,
    /// Along W alone.
    #[serde(default)]
    wide: bool,
}

/// Words of types of elements.
const TYPES: &[(&str, ElementType)] = &[
    ("u8", ElementType::U8),
    ("u16", ElementType::U16),
    ("u32", ElementType::U32),
    ("s32", ElementType::S32),
    ("u64", ElementType::U64),
    ("s64", ElementType::S64),
    ("f16", ElementType::F16),
    ("f32", ElementType::F32),
    ("f32.ftz", ElementType::F32Ftz),
    ("f64", ElementType::F64),
    ("bf16", ElementType::BF16),
    ("tf32", ElementType::TF32),
    ("tf32.ftz", ElementType::TF32Ftz),
    ("b4x16", ElementType::B4x16),
    ("b4x16_p64", ElementType::B4x16P64),
    ("b6x16_p32", ElementType::B6x16),
];
const INTERLEAVES: &[(&str, Interleave)] =
    &[("none", Interleave::None), ("16B", Interleave::Bytes16), ("32B", Interleave::Bytes32)];
const SWIZZLES: &[(&str, (Swizzle, Atomicity))] = &[
    ("none", (Swizzle::None, Atomicity::Bytes16)),
    ("32B", (Swizzle::Bytes32, Atomicity::Bytes16)),
    ("64B", (Swizzle::Bytes64, Atomicity::Bytes16)),
    ("96B", (Swizzle::Bytes96, Atomicity::Bytes16)),
    ("128B", (Swizzle::Bytes128, Atomicity::Bytes16)),
    ("128B_atom_32B", (Swizzle::Bytes128, Atomicity::Bytes32)),
    ("128B_atom_32B_flip_8B", (Swizzle::Bytes128, Atomicity::Bytes32Flip8)),
    ("128B_atom_64B", (Swizzle::Bytes128, Atomicity::Bytes64)),
];
const FILLS: &[(&str, Fill)] = &[("zero", Fill::Zero), ("nan", Fill::Nan)];

/// What a word stands for; the first of the list if none is written.
fn word<T: Copy>(key: &str, text: Option<&str>, all: &[(&str, T)]) -> Result<T, String> {
    let Some(text) = text else { return Ok(all[0].1) };
    all.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|(word, _)| format!("`{word}`")).collect();
        format!("`{key}` is `{text}`: expected one of {}", words.join(", "))
    })
}

/// A list of at most `N` numbers, the others `rest`.
fn list<const N: usize, T: Copy>(key: &str, given: &[T], wanted: usize, rest: T) -> Result<[T; N], String> {
    if given.len() != wanted || wanted > N {
        return Err(format!("`{key}` has {} numbers: expected {wanted}", given.len()));
    }
    let mut all = [rest; N];
    all.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    Ok(all)
}

impl TensorMapSpec {
    fn map(&self) -> Result<TensorMap, String> {
        let rank = self.dims.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(format!("`dims` has {rank} numbers: expected 1 to {MAX_RANK}"));
        }
        let element = word("type", Some(&self.ty), TYPES)?;
        let interleave = word("interleave", self.interleave.as_deref(), INTERLEAVES)?;
        let (swizzle, atomicity) = word("swizzle", self.swizzle.as_deref(), SWIZZLES)?;
        let dense = || {
            let unit = match interleave.slice() {
                0 => u64::from(element.group_bytes()),
                slice => u64::from(slice),
            };
            let group = if interleave == Interleave::None { u64::from(element.group()) } else { 1 };
            let mut stride = self.dims[0].div_ceil(group).saturating_mul(unit);
            let mut all = Vec::new();
            for n in &self.dims[1..] {
                all.push(stride);
                stride = stride.saturating_mul(*n);
            }
            all
        };
        let strides = self.strides.clone().unwrap_or_else(dense);
        let steps = self.element_strides.clone().unwrap_or_else(|| vec![1; rank]);
        let shape = match (&self.size, &self.im2col) {
            (Some(size), None) => Shape::Tiled { size: list("box", size, rank, 1)? },
            (None, Some(i)) => {
                let n = if i.wide { 1 } else { rank.saturating_sub(2) };
                let [lower, upper]: [[i16; 3]; 2] = [list("lower", &i.lower, n, 0)?, list("upper", &i.upper, n, 0)?];
                let (channels, pixels) = (i.channels, i.pixels);
                if i.wide {
                    Shape::Wide { lower: lower[0], upper: upper[0], channels, pixels }
                } else {
                    Shape::Im2col { lower, upper, channels, pixels }
                }
            }
            _ => return Err("expected either `box` or `im2col`".into()),
        };
        Ok(TensorMap {
            element,
            rank,
            // Buffers and variables lie at multiples of more than any rule asks for.
            address: self.offset.unwrap_or(0),
            dims: list("dims", &self.dims, rank, 1)?,
            strides: list("strides", &strides, rank - 1, 0)?,
            element_strides: list("element_strides", &steps, rank, 1)?,
            interleave,
            swizzle,
            atomicity,
            promotion: Promotion::None,
            fill: word("fill", self.fill.as_deref(), FILLS)?,
            shape,
        })
    }

    /// The map in memory, of a tensor at a place.
    ///
    /// # Errors
    /// What was expected, or the rule that it breaks.
    pub fn item(&self, place: Place) -> Result<Item, String> {
        let bytes = self.map()?.encode().map_err(|e| e.to_string())?;
        let address = Field { at: Some(0), align: Some(64), item: Item::Address(Some(place)) };
        let rest = Field { at: Some(8), align: Some(8), item: Item::Bytes { bytes: bytes[8..].to_vec(), align: 8 } };
        Ok(Item::Struct(Struct { fields: vec![address, rest], size: Some(bytes.len() as u64) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Result<Item, String> {
        let spec: TensorMapSpec = serde_json::from_str(text).map_err(|e| e.to_string())?;
        spec.item(Place::Buffer { index: 0, offset: spec.offset.unwrap_or(0) })
    }

    #[test]
    fn a_map_holds_what_the_job_says() {
        let text =
            r#"{"buffer": "x", "type": "f16", "dims": [64, 5, 3], "box": [32, 4, 1], "swizzle": "64B", "fill": "nan"}"#;
        let image = item(text).unwrap().lay_out(8).unwrap();
        let bytes: [u8; 128] = image.resolve(|_| Ok::<u64, ()>(4096)).unwrap().try_into().unwrap();
        let map = TensorMap::decode(&bytes).unwrap();
        assert_eq!((map.address, map.rank, map.element, map.fill), (4096, 3, ElementType::F16, Fill::Nan));
        assert_eq!((&map.dims[..3], &map.strides[..2]), (&[64, 5, 3][..], &[128, 640][..]));
        assert_eq!((map.swizzle, map.shape), (Swizzle::Bytes64, Shape::Tiled { size: [32, 4, 1, 1, 1] }));
    }

    #[test]
    fn mistakes_get_a_sentence() {
        let why = |rest: &str| item(&format!("{{\"buffer\": \"x\", \"type\": \"f32\", {rest}}}")).unwrap_err();
        assert!(why("\"dims\": []").contains("`dims` has 0 numbers"));
        assert!(why("\"dims\": [4]").contains("either `box` or `im2col`"));
        assert!(why("\"dims\": [4, 4], \"box\": [4]").contains("`box` has 1 numbers: expected 2"));
        assert!(why("\"dims\": [4], \"box\": [4], \"swizzle\": \"8B\"").contains("expected one of `none`, `32B`"));
        assert!(why("\"dims\": [4, 4], \"box\": [2, 4]").contains("a line of the box has 8 bytes"));
        assert!(why("\"dims\": [4, 4], \"box\": [4, 4], \"offset\": 8").contains("no multiple of 16"));
        assert!(why("\"dims\": [3, 4], \"box\": [4, 4]").contains("the stride 12 of dimension 1"));
        assert!(why("\"dims\": [4], \"boxes\": [4]").contains("unknown field"));
    }
}
