//! Capabilities and sizes as people write them: in options and in variables of the environment. And text as JSON has it.

/// `8.9`, `89` or `sm_89` as 89.
pub fn capability(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("sm_").unwrap_or(text);
    let (major, minor) = match digits.split_once('.') {
        Some(parts) => parts,
        None => digits.split_at_checked(digits.len().checked_sub(1)?)?,
    };
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (minor < 10 && (5..=12).contains(&major)).then_some(major * 10 + minor)
}

/// `4G`, `512M`, `64K` or bytes.
pub fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        b'T' | b't' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let bytes: u64 = digits.trim().parse().ok()?;
    bytes.checked_mul(1 << shift).filter(|b| *b > 0)
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    // Text can always be written.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_strings_are_quoted() {
        assert_eq!(quoted("a\"b\\\n\u{1}"), "\"a\\\"b\\\\\\n\\u0001\"");
    }

    #[test]
    fn capabilities_and_sizes_are_read() {
        assert_eq!([capability("8.9"), capability("90"), capability("sm_120")], [Some(89), Some(90), Some(120)]);
        assert_eq!([capability("8"), capability("8.10"), capability("x"), capability("")], [None; 4]);
        assert_eq!(
            [size_bytes("4G"), size_bytes("64 KiB"), size_bytes("100")],
            [Some(4 << 30), Some(64 << 10), Some(100)]
        );
        assert_eq!([size_bytes(""), size_bytes("0"), size_bytes("-1"), size_bytes("99999999999T")], [None; 4]);
    }
}
