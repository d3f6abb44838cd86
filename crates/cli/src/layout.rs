//! Bytes with addresses in them: structures that are passed by value, and memory that points to other memory.
//!
//! Fields lie behind the one before them at the next multiple of their alignment, as C lays structures out, unless their place is given. Addresses are filled in when
//! the memory that they name has one.

/// What an address points to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A byte of a buffer.
    Buffer {
        /// Number of the buffer.
        index: usize,
        /// The byte.
        offset: u64,
    },
    /// A byte of a variable of the module.
    Global {
        /// Its name.
        name: String,
        /// The byte.
        offset: u64,
    },
}

/// What stands in a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// Numbers as the bytes that the kernel sees.
    Bytes {
        /// Their bytes.
        bytes: Vec<u8>,
        /// Alignment, a power of two.
        align: usize,
    },
    /// An address; the null pointer if it names nothing.
    Address(Option<Place>),
    /// A structure.
    Struct(Struct),
}

/// A part of a structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its byte in the structure, if that is given.
    pub at: Option<u64>,
    /// Its alignment, if that is given.
    pub align: Option<u64>,
    /// What it holds.
    pub item: Item,
}

impl From<Item> for Field {
    fn from(item: Item) -> Field {
        Field { at: None, align: None, item }
    }
}

/// A structure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Struct {
    /// Its parts in order.
    pub fields: Vec<Field>,
    /// All of its bytes, if that is given: else up to the last field, rounded up to the alignment.
    pub size: Option<u64>,
}

/// Largest structure.
const MOST: usize = 1 << 26;

/// A structure in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    /// Where addresses stand, and whose.
    addresses: Vec<(usize, Place)>,
    /// Bytes of an address.
    word: usize,
    align: usize,
    /// Place and size of each field.
    fields: Vec<(usize, usize)>,
}

impl Item {
    /// The item in memory, in a module whose addresses have `word` bytes.
    ///
    /// # Errors
    /// Why there is no such structure.
    pub fn lay_out(&self, word: usize) -> Result<Image, String> {
        let plain = |bytes: Vec<u8>, align, addresses| {
            let fields = vec![(0, bytes.len())];
            Image { bytes, addresses, word, align, fields }
        };
        Ok(match self {
            Item::Bytes { bytes, align } => plain(bytes.clone(), *align, vec![]),
            Item::Address(to) => plain(vec![0; word], word, to.iter().map(|to| (0, to.clone())).collect()),
            Item::Struct(s) => s.lay_out(word)?,
        })
    }
}

impl Struct {
    fn lay_out(&self, word: usize) -> Result<Image, String> {
        let mut all = Image { bytes: vec![], addresses: vec![], word, align: 1, fields: vec![] };
        let mut next: usize = 0;
        for (i, field) in self.fields.iter().enumerate() {
            let wrong = |why: String| format!("field {}: {why}", i + 1);
            let part = field.item.lay_out(word).map_err(wrong)?;
            let align = match field.align {
                Some(n) if n.is_power_of_two() && n <= MAX_ALIGN => to_index(n),
                Some(n) => {
                    return Err(wrong(format!("an alignment of {n}: expected a power of two up to {MAX_ALIGN}")));
                }
                None => part.align,
            };
            let at = match field.at {
                Some(n) => to_index(n),
                None => next.next_multiple_of(align),
            };
            let end = at.saturating_add(part.bytes.len());
            if end > MOST {
                return Err(wrong(format!("it ends at byte {end}: expected at most {MOST} bytes")));
            }
            if let Some(&(other, n)) = all.fields.iter().find(|(other, n)| at < other + n && *other < end) {
                return Err(wrong(format!("{} bytes at {at}, where a field of {n} bytes at {other} lies", end - at)));
            }
            // A place that is no multiple of it: the structure is packed.
            if at.is_multiple_of(align) {
                all.align = all.align.max(align);
            }
            next = end;
            if all.bytes.len() < end {
                all.bytes.resize(end, 0);
            }
            all.bytes[at..end].copy_from_slice(&part.bytes);
            all.addresses.extend(part.addresses.into_iter().map(|(place, to)| (at + place, to)));
            all.fields.push((at, part.bytes.len()));
        }
        let used = all.bytes.len();
        let size = self.size.map_or(used.next_multiple_of(all.align), to_index);
        if size < used || size > MOST {
            return Err(format!("a `size` of {size}, but the fields end at byte {used}"));
        }
        all.bytes.resize(size, 0);
        Ok(all)
    }
}

/// Largest alignment of a field.
const MAX_ALIGN: u64 = 256;

fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl Image {
    /// All of its bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Where addresses stand, and whose.
    pub fn addresses(&self) -> &[(usize, Place)] {
        &self.addresses
    }

    /// Its bytes with the addresses that `address_of` knows.
    ///
    /// # Errors
    /// What `address_of` says.
    pub fn resolve<E>(&self, address_of: impl Fn(&Place) -> Result<u64, E>) -> Result<Vec<u8>, E> {
        let mut bytes = self.bytes.clone();
        for (at, place) in &self.addresses {
            let address = address_of(place)?.to_le_bytes();
            bytes[*at..at + self.word].copy_from_slice(&address[..self.word]);
        }
        Ok(bytes)
    }

    /// `24 bytes, with fields of 8 bytes at 0, 4 at 8`.
    pub fn describe(&self) -> String {
        const SHOWN: usize = 8;
        let words = self.fields.iter().take(SHOWN).enumerate().map(|(i, (at, n))| {
            let bytes = if i == 0 { " bytes" } else { "" };
            format!("{n}{bytes} at {at}")
        });
        let list: Vec<String> = words.collect();
        let more = if self.fields.len() > SHOWN { ", ..." } else { "" };
        match list.as_slice() {
            [] => format!("{} bytes", self.len()),
            _ => format!("{} bytes, with fields of {}{more}", self.len(), list.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: usize) -> Field {
        Item::Bytes { bytes: vec![0xff; n], align: n }.into()
    }

    fn structure(fields: Vec<Field>) -> Item {
        Item::Struct(Struct { fields, size: None })
    }

    fn places(item: &Item) -> (Vec<(usize, usize)>, usize) {
        let image = item.lay_out(8).unwrap();
        (image.fields.clone(), image.len())
    }

    #[test]
    fn fields_lie_as_in_c() {
        // struct { char a; double b; short c; }
        assert_eq!(places(&structure(vec![number(1), number(8), number(2)])), (vec![(0, 1), (8, 8), (16, 2)], 24));
        // struct { int a; struct { char b; int c; } d; char e; }
        let inner = structure(vec![number(1), number(4)]);
        let outer = structure(vec![number(4), inner.into(), number(1)]);
        assert_eq!(places(&outer), (vec![(0, 4), (4, 8), (12, 1)], 16));
        assert_eq!(places(&structure(vec![])), (vec![], 0));
    }

    #[test]
    fn places_may_be_given() {
        let packed = structure(vec![number(1), Field { at: Some(1), ..number(4) }]);
        assert_eq!(places(&packed), (vec![(0, 1), (1, 4)], 5));
        let wide = structure(vec![Field { align: Some(16), ..number(4) }, number(4)]);
        assert_eq!(places(&wide), (vec![(0, 4), (4, 4)], 16));
        let padded = Item::Struct(Struct { fields: vec![number(4)], size: Some(12) });
        assert_eq!(places(&padded), (vec![(0, 4)], 12));
        // The fields may come in any order.
        let turned = structure(vec![Field { at: Some(8), ..number(4) }, Field { at: Some(0), ..number(8) }]);
        assert_eq!(places(&turned), (vec![(8, 4), (0, 8)], 16));
    }

    #[test]
    fn addresses_are_filled_in() {
        let place = |index| Item::Address(Some(Place::Buffer { index, offset: 4 })).into();
        let s = structure(vec![number(1), place(2), Item::Address(None).into(), place(3)]);
        for (word, bytes) in [(4, 16), (8, 32)] {
            let image = s.lay_out(word).unwrap();
            assert_eq!(image.len(), bytes);
            let filled = image.resolve(|p| match p {
                Place::Buffer { index, offset } => Ok(*index as u64 * 256 + offset),
                Place::Global { .. } => Err("no variable"),
            });
            let filled = filled.unwrap();
            assert_eq!(
                (filled[0], &filled[word..word + 2], &filled[3 * word..3 * word + 2]),
                (0xff, &[4, 2][..], &[4, 3][..])
            );
            assert_eq!(filled[2 * word..3 * word], vec![0; word]);
        }
    }

    #[test]
    fn wrong_structures_get_a_sentence() {
        let why = |s: Item| s.lay_out(8).unwrap_err();
        let at = |at, f: Field| Field { at: Some(at), ..f };
        assert!(
            why(structure(vec![number(8), at(4, number(4))])).contains("field 2: 4 bytes at 4, where a field of 8")
        );
        assert!(why(structure(vec![at(u64::MAX, number(4))])).contains("at most"));
        assert!(why(structure(vec![Field { align: Some(3), ..number(4) }])).contains("a power of two"));
        let short = Item::Struct(Struct { fields: vec![number(8)], size: Some(4) });
        assert!(why(short.clone()).contains("a `size` of 4"));
        assert!(why(structure(vec![short.into()])).contains("field 1: a `size`"));
    }
}
