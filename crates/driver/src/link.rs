//! Linkers: PTX texts that become one image.

use handloom_images::{Want, What, open, parts};

use crate::code::Code;
use crate::image::{self, Refused, Text};

/// A linker.
#[derive(Debug, Default)]
pub struct Link {
    /// Ten times the major number of the capability that it links for, plus the minor one.
    pub capability: u32,
    texts: Vec<Text>,
    /// Where the logs go, and where the sizes of what was written there: see the interface.
    pub log: crate::jit::Options,
    done: Option<Vec<u8>>,
}

impl Link {
    /// A linker for devices of a capability, that writes its logs where `log` says.
    pub fn new(capability: u32, log: crate::jit::Options) -> Link {
        Link { capability, log, ..Link::default() }
    }

    /// Adds an image.
    ///
    /// # Errors
    /// It has no PTX.
    pub fn add(&mut self, bytes: &[u8], name: &str) -> Result<(), Refused> {
        if self.done.is_some() {
            return Err(Refused { code: Code::INVALID_VALUE, log: "the linker has finished".into() });
        }
        if is_device_runtime(bytes) {
            // Its functions are ours to provide.
            return Ok(());
        }
        let name = if name.is_empty() { format!("input {}", self.texts.len() + 1) } else { name.to_owned() };
        self.texts.extend(image::texts(bytes, &name, self.capability)?);
        Ok(())
    }

    /// Links what was added.
    ///
    /// # Errors
    /// The texts are wrong or do not fit each other.
    pub fn complete(&mut self) -> Result<(&[u8], String), Refused> {
        let loaded = image::check(&self.texts)?;
        let done = self.done.get_or_insert_with(|| image::pack(&self.texts));
        Ok((done, loaded.log()))
    }
}

/// Whether an archive is the CUDA device runtime.
fn is_device_runtime(bytes: &[u8]) -> bool {
    let Ok(image) = open(bytes) else { return false };
    if image.what != What::Archive {
        return false;
    }
    // Its PTX may be for newer devices than ours.
    parts(&image, Want::Capability(u32::MAX)).is_ok_and(|p| p.device_runtime && p.parts.is_empty())
}
