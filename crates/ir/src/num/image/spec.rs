//! Objects as a person writes them down: in a job, in a file test.

use serde::{Deserialize, Serialize};

use super::object::{AddressMode, Channel, Filter, Image, Kind, MAX_LEVELS, Object, Sampler};

/// A texture, a sampler or a surface in words. What is not given is as plain as can be: one dimension, one component of `.f32`, no filter, clamped to the
/// edge.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with `buffer` and `width`")]
pub struct Spec {
    /// The memory of the texels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// The byte of the buffer where they begin.
    #[serde(skip_serializing_if = "is_plain")]
    pub offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    /// Images of an array, or cubes.
    #[serde(skip_serializing_if = "is_plain")]
    layers: u32,
    #[serde(skip_serializing_if = "is_plain")]
    cube: bool,
    #[serde(skip_serializing_if = "is_plain")]
    samples: u8,
    #[serde(skip_serializing_if = "is_plain")]
    levels: u8,
    /// Bytes from a row to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pitch: Option<u64>,
    /// `u8`, `s16`, `f32`, `unorm8`, `srgb8`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<u8>,
    /// A plain buffer, not an array.
    #[serde(skip_serializing_if = "is_plain")]
    linear: bool,
    #[serde(skip_serializing_if = "is_plain")]
    normalized: bool,
    #[serde(skip_serializing_if = "is_plain")]
    force_unnormalized: bool,
    /// Filters of a cube read on from face to face.
    #[serde(skip_serializing_if = "is_plain")]
    seamless: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mip_filter: Option<String>,
    /// One for all dimensions, or one each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    address: Vec<String>,
    #[serde(skip_serializing_if = "is_plain")]
    border: [f32; 4],
    #[serde(skip_serializing_if = "is_plain")]
    lod_bias: f32,
    #[serde(skip_serializing_if = "is_plain")]
    min_lod: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_lod: Option<f32>,
}

fn is_plain<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The value with a name, or what names there are.
fn named<T: Copy>(what: &str, text: &str, all: &[T], name: impl Fn(T) -> String) -> Result<T, String> {
    let found = all.iter().copied().find(|v| name(*v) == text);
    found.ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|v| format!("`{}`", name(*v))).collect();
        format!("{what} `{text}`: expected one of {}", words.join(", "))
    })
}

impl Spec {
    /// The object, whose memory is not bound yet.
    ///
    /// # Errors
    /// A sentence about what does not fit.
    pub fn object(&self, kind: Kind) -> Result<Object, String> {
        let image = if kind == Kind::Sampler { Image::default() } else { self.image()? };
        let sampler = if kind == Kind::Surface { Sampler::default() } else { self.sampler()? };
        Ok(Object { kind, image, sampler })
    }

    fn image(&self) -> Result<Image, String> {
        let width = self.width.ok_or("`width` is missing")?;
        let size = [width, self.height.unwrap_or(1), self.depth.unwrap_or(1)];
        if size.contains(&0) {
            return Err("a size of 0 texels".into());
        }
        let dims = match (self.height, self.depth) {
            (None, None) => 1,
            (Some(_), None) => 2,
            (_, Some(_)) => 3,
        };
        if self.cube && (dims != 2 || size[0] != size[1]) {
            return Err("a `cube` has as many rows as columns, and no depth".into());
        }
        if self.levels > MAX_LEVELS {
            return Err(format!("`levels` {}: expected at most {MAX_LEVELS}", self.levels));
        }
        let channel = match &self.channel {
            None => Channel::F32,
            Some(text) => named("`channel`", text, &Channel::ALL, |c| format!("{c:?}").to_lowercase())?,
        };
        let components = self.components.unwrap_or(1);
        if !matches!(components, 1 | 2 | 4) {
            return Err(format!("`components` {components}: expected 1, 2 or 4"));
        }
        let mut image = Image {
            base: 0,
            size,
            dims,
            layers: self.layers,
            is_cube: self.cube,
            first_layer: 0,
            layers_in_memory: 0,
            samples: self.samples,
            levels: self.levels.max(1),
            is_linear: self.linear,
            channel,
            components,
            pitch: 0,
            rows: size[1],
        };
        let row = u64::from(width) * u64::from(image.texel());
        image.pitch = self.pitch.unwrap_or(row);
        if image.pitch < row {
            return Err(format!("`pitch` {}: a row has {row} bytes", image.pitch));
        }
        Ok(image)
    }

    fn sampler(&self) -> Result<Sampler, String> {
        let filter = |what: &str, text: &Option<String>| match text {
            None => Ok(Filter::Nearest),
            Some(text) => named(what, text, &Filter::ALL, |f| f.word().to_owned()),
        };
        let mut address = [AddressMode::default(); 3];
        for (i, to) in address.iter_mut().enumerate() {
            if let Some(text) = self.address.get(i).or(self.address.first()) {
                *to = named("`address`", text, &AddressMode::ALL, |a| a.word().to_owned())?;
            }
        }
        Ok(Sampler {
            is_normalized: self.normalized,
            forces_texels: self.force_unnormalized,
            filter: filter("`filter`", &self.filter)?,
            mip_filter: filter("`mip_filter`", &self.mip_filter)?,
            is_seamless: self.seamless,
            address,
            border: self.border,
            lod_bias: self.lod_bias,
            min_lod: self.min_lod,
            max_lod: self.max_lod.unwrap_or(Sampler::default().max_lod),
        })
    }
}
