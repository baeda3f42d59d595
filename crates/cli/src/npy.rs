//! The head of a `.npy` file: element type and shape of the array that follows it.
//!
//! ```text
//! file   = "\x93NUMPY" major minor length header data
//! length = u16 in version 1, u32 in versions 2 and 3, little-endian
//! header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }" padded by blanks, "\n"
//! ```

use fieldstone::{Code, DType, Result, element_count};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Numpy aligns the data to this many bytes.
const ALIGN: usize = 64;

/// The head of a file that holds an array.
pub fn head(dtype: DType, shape: &[u64]) -> Vec<u8> {
    let comma = if shape.len() == 1 { "," } else { "" };
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut text =
        format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({extents}{comma}), }}").into_bytes();
    let wide = text.len() + ALIGN + 10 > usize::from(u16::MAX);
    let fixed = MAGIC.len() + 2 + if wide { 4 } else { 2 };
    let padding = (ALIGN - (fixed + text.len() + 1) % ALIGN) % ALIGN;
    text.extend(std::iter::repeat_n(b' ', padding));
    text.push(b'\n');
    let mut head = MAGIC.to_vec();
    match wide {
        true => {
            head.extend([2, 0]);
            head.extend((text.len() as u32).to_le_bytes());
        }
        false => {
            head.extend([1, 0]);
            head.extend((text.len() as u16).to_le_bytes());
        }
    }
    head.extend(text);
    head
}

/// Element type, shape and bytes of the array in a file. Only C order, the order that is stored.
pub fn parse(file: &[u8]) -> Result<(DType, Vec<u64>, &[u8])> {
    let wrong = |why: String| Code::FileFormat.error(format!("not a .npy file: {why}"));
    let body = file.strip_prefix(MAGIC).ok_or_else(|| wrong("it does not begin with \\x93NUMPY".into()))?;
    let short = || wrong("it ends inside its header".into());
    let (length, rest) = match body {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [1..=3, ..] | [] => return Err(short()),
        [version, ..] => return Err(wrong(format!("version {version} is unknown"))),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| wrong("its header is not text".into()))?;
    let value = |name: &str| {
        let quoted = |quote: char| format!("{quote}{name}{quote}:");
        let after = header.split_once(&quoted('\'')).or_else(|| header.split_once(&quoted('"')));
        after.map(|(_, rest)| rest.trim_start()).ok_or_else(|| wrong(format!("its header has no '{name}'")))
    };
    let descr = value("descr")?;
    let descr = match descr.chars().next() {
        Some(quote @ ('\'' | '"')) => descr[1..].split(quote).next().unwrap_or(""),
        _ => {
            return Err(Code::FileFormat
                .error("the .npy file holds records, not an array of numbers")
                .with_hint("save each of their fields as an array of its own"));
        }
    };
    if !value("fortran_order")?.starts_with("False") {
        return Err(Code::FileFormat
            .error("the .npy file is in Fortran order")
            .with_hint("save it with numpy.save(path, numpy.ascontiguousarray(array))"));
    }
    let shape = value("shape")?;
    let inside = shape.strip_prefix('(').and_then(|s| s.split_once(')')).map(|(inside, _)| inside);
    let inside = inside.ok_or_else(|| wrong("its shape is not a tuple".into()))?;
    let extents = inside.split(',').map(str::trim).filter(|n| !n.is_empty());
    let shape = extents
        .map(|n| n.parse::<u64>().map_err(|_| wrong(format!("'{n}' in its shape is not a number"))))
        .collect::<Result<Vec<u64>>>()?;
    let dtype = DType::parse(descr)?;
    let bytes = element_count(&shape)?.checked_mul(dtype.size() as u64);
    if bytes != Some(data.len() as u64) {
        let found = data.len();
        return Err(wrong(format!("its shape needs {} bytes and it has {found}", bytes.unwrap_or(u64::MAX))));
    }
    Ok((dtype, shape, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for shape in [vec![], vec![3], vec![2, 3], vec![0, 5], vec![1; 20]] {
            let bytes = vec![7; shape.iter().product::<u64>() as usize * 8];
            let mut file = head(DType::F8, &shape);
            assert_eq!(file.len() % ALIGN, 0);
            file.extend(&bytes);
            assert_eq!(parse(&file).unwrap(), (DType::F8, shape, &bytes[..]));
        }
    }

    #[test]
    fn damage_is_named() {
        let mut good = head(DType::F4, &[2]);
        good.extend([0; 8]);
        for n in 0..good.len() {
            assert!(parse(&good[..n]).is_err(), "{n} bytes");
        }
        let changed = |from: &str, to: &str| {
            let text = String::from_utf8_lossy(&good).replace(from, to);
            let mut file = good[..10].to_vec();
            file.extend(&text.as_bytes()[text.find('{').unwrap()..]);
            parse(&file).unwrap_err().message().to_owned()
        };
        assert!(changed("False", "True ").contains("Fortran order"));
        assert!(changed("(2,)", "(3,)").contains("needs 12 bytes and it has 8"));
        assert!(changed("'<f4'", "[('a'").contains("records"));
        assert!(changed("shape", "shope").contains("no 'shape'"));
    }
}
