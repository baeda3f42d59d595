//! Names and texts in CDL: escaped as ncdump escapes them.

/// Names after which ncdump prints a blank, because ncgen would take them for keywords of CDL.
const WORDS: [&str; 5] = ["variables", "dimensions", "data", "group", "types"];

/// Whether `name` is a keyword of CDL.
pub fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// The part of a name that C sees, up to the first zero byte (old files pad names inside their length).
pub fn visible(name: &str) -> &str {
    name.split('\0').next().unwrap_or(name)
}

/// Writes a name, with CDL's special characters escaped.
pub fn name(name: &str, to: &mut Vec<u8>) {
    let name = visible(name);
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        to.push(b'\\');
    }
    for byte in name.bytes() {
        match byte {
            0..=0x1f | 0x7f => to.extend_from_slice(format!("\\%{byte:02x}").as_bytes()),
            b' ' | b'!' | b'"' | b'#' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b',' | b':' | b';'
            | b'<' | b'=' | b'>' | b'?' | b'[' | b']' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'~' => {
                to.extend_from_slice(&[b'\\', byte]);
            }
            _ => to.push(byte),
        }
    }
}

/// The context of a text: it decides how a text continues after a line end, and which bytes are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextContext {
    /// An attribute's value: bytes above 127 stay, so that UTF-8 remains readable.
    Attribute,
    /// A row of a variable: bytes above 127 are written as octal numbers.
    Data,
}

/// Writes one byte of a text between its quotes.
pub fn byte(byte: u8, context: TextContext, to: &mut Vec<u8>) {
    let escaped: &[u8] = match byte {
        0x08 => b"\\b",
        0x0c => b"\\f",
        b'\n' if context == TextContext::Attribute => b"\\n\",\n\t\t\t\"",
        b'\n' => b"\\n\",\n    \"",
        b'\r' => b"\\r",
        b'\t' => b"\\t",
        0x0b => b"\\v",
        b'\\' => b"\\\\",
        b'\'' => b"\\'",
        b'"' => b"\\\"",
        0..=0x1f | 0x7f => return octal(byte, to),
        0x80.. if context == TextContext::Data => return octal(byte, to),
        _ => return to.push(byte),
    };
    to.extend_from_slice(escaped);
}

fn octal(byte: u8, to: &mut Vec<u8>) {
    to.extend_from_slice(format!("\\{byte:03o}").as_bytes());
}

/// Writes an attribute's text in quotes, without trailing zero bytes.
pub fn quoted(text: &[u8], to: &mut Vec<u8>) {
    let len = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    to.push(b'"');
    text[..len].iter().for_each(|one| byte(*one, TextContext::Attribute, to));
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        let mut to = Vec::new();
        name(text, &mut to);
        String::from_utf8_lossy(&to).into_owned()
    }

    #[test]
    fn names_are_escaped_as_ncgen_reads_them() {
        assert_eq!(named("plain_name-1.x@y+z%a/b"), "plain_name-1.x@y+z%a/b");
        assert_eq!(named("2m temp"), "\\2m\\ temp");
        assert_eq!(named("a~.b\u{7}"), "a\\~.b\\%07");
        assert_eq!(named("größe"), "größe");
        assert_eq!(named("pp\0\0\0"), "pp");
    }

    #[test]
    fn texts_lose_zero_bytes_at_their_end_only() {
        let mut to = Vec::new();
        quoted(b"a\0b\0\0", &mut to);
        quoted(b"line\nnext\x01\xc3\xa4", &mut to);
        quoted(b"", &mut to);
        // A line end closes the text and opens its next part.
        assert_eq!(to, b"\"a\\000b\"\"line\\n\",\n\t\t\t\"next\\001\xc3\xa4\"\"\"");
    }
}
