//! What can be wrong with an image.

use std::fmt;

use crate::Packing;

/// A fault of an image. Its text is the end of a sentence that begins with the file: `is a fat binary that ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The file ends before what its headers promise.
    Truncated {
        /// What is cut off: `a fat binary`.
        what: &'static str,
        /// Bytes that there should be at least.
        wanted: u64,
        /// Bytes that there are.
        have: u64,
    },
    /// A header says what cannot be.
    Header {
        /// Of what: `a fat binary`.
        what: &'static str,
        /// What is wrong, as `whose member 2 has a header of 3 bytes`.
        why: String,
    },
    /// Compressed data that cannot be unpacked.
    Packed {
        /// How it is packed.
        packing: Packing,
        /// Whose: `member 2`.
        whose: String,
        /// What the decoder says.
        why: String,
    },
    /// More bytes than any PTX has.
    TooLarge {
        /// Whose: `member 2`.
        whose: String,
        /// Bytes that its header promises.
        bytes: u64,
    },
    /// PTX that is no text.
    NotText {
        /// Whose: `member 2`.
        whose: String,
    },
    /// There is no such member.
    NoMember {
        /// The words that asked for it: `member 7`, `PTX for sm_90`.
        wanted: String,
        /// What there is.
        have: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Truncated { what, wanted, have } => {
                write!(f, "is {what} that is cut off: {have} bytes of at least {wanted}")
            }
            Fault::Header { what, why } => write!(f, "is {what} {why}"),
            Fault::Packed { packing, whose, why } => {
                write!(f, "has damaged {} data in {whose}: {why}", packing.word())
            }
            Fault::TooLarge { whose, bytes } => {
                write!(f, "says that {whose} has {bytes} bytes, which is more than its data can become or than is read")
            }
            Fault::NotText { whose } => write!(f, "has PTX in {whose} that is no text"),
            Fault::NoMember { wanted, have } => write!(f, "has no {wanted}: there is {have}"),
        }
    }
}

impl std::error::Error for Fault {}
